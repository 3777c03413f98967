"""The problems of the benchmark by name, in suites, each with a half for development and a held-out half.

    bbob, bbob-mixint, bbob-noisy, bbob-largescale,  Coco: "bbob/f01/i01/d05" is function 1, instance 1, 5 dimensions
    bbob-constrained
    tables                                           "hpolib/protein_structure", "nasbench201/cifar10", ...
    tables-single                                    one training run, not the mean: "tables-single/nasbench201/cifar10"
    training                                         TrainingRun: "training/svm-digits", ...
    levels                                           the same, each range on ten levels: "levels/svm-digits", ...
    networks, networks-noisy                         NetworkRun: "networks/optimizers-digits", ...
    branches                                         Branches: "branches/6x3-0" is the first of six models, 3 parameters
    choices                                          Choices: "choices/nested-0", ...
    bits                                             Bits: "bits/quadratic-0", ... with 18 binary parameters
    ground                                           GroundRun: "ground/boosting/xgboost-party", ...
    noisy                                            Noisy functions: "noisy/hartmann6-normal", ...
    functions                                        "branin", "hartmann6", ...
    papers                                           problems of the papers in no other suite: "robot-pushing",
                                                     "racing/ucb", "noisy/forrester", ...
    batch-bore                                       six functions for figure 1 of batch BORE (Oliveira et al. 2022),
                                                     which names Six-hump Camel and Hartmann 3-D; the others are ours
    long                                             Levy in 20-D, its lowest point elsewhere: "long/levy20-0", ...
    thousands                                        for runs of thousands, in 14 to 300 dimensions: "thousands/rover",
                                                     "thousands/lasso-high", "thousands/levy20", ...
    control                                          PolicySearch: "control/lander", ..., in 18 to 100 dimensions
    cec                                              Cec in 10-D: "cec/2020/f01" is the first function of 2020
    statsmodels                                      TrainingRun on data of statsmodels: "statsmodels/knn-fair", ...
    designs                                          under black-box constraints: "pressure-vessel", "welded-beam",
                                                     "digits-under-limit"

"racing/ethz_a" and "racing/ethz_b" read the file named by the environment variable DEEPBORE_TRACKS: see RacingLine.

| suite | for development | held out |
|---|---|---|
| COCO's | instances 1 to 5 | instances above 5 |
| tables, training, networks, branches, choices, bits | first half of the names, sorted by their SHA-256 | second half |
| tables-single | as the same table | as the same table |
| levels | as the same run of training | as the same run of training |
| networks-noisy | as the same run of networks | as the same run of networks |
| thousands | first two thirds of the names, sorted so | last third |
| ground | first half of each kind of task, sorted so | last sixth; the third between is for validation |
| functions, noisy, papers, batch-bore, long, designs | all: they are too well known to hold any out | none |
| control, cec, statsmodels | none: no default was chosen by them | all |
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from itertools import product
from typing import Literal

from deepbore.errors import SettingError
from deepbore.problems.base import Problem
from deepbore.problems.benchmarks.bits import BIT_FAMILIES, Bits
from deepbore.problems.benchmarks.cec import Cec
from deepbore.problems.benchmarks.choices import FAMILIES, Choices
from deepbore.problems.benchmarks.coco import Coco
from deepbore.problems.benchmarks.control import LOCOMOTION, TASKS, PolicySearch
from deepbore.problems.benchmarks.digits import DigitsUnderLimit
from deepbore.problems.benchmarks.engineering import PressureVessel, WeldedBeam
from deepbore.problems.benchmarks.ground import KINDS as GROUND_KINDS, GroundRun
from deepbore.problems.benchmarks.lasso import SIZES, Lasso
from deepbore.problems.benchmarks.networks import TASKS as NETWORK_TASKS, NetworkRun
from deepbore.problems.benchmarks.noise import Kind, Noisy
from deepbore.problems.benchmarks.racing import RacingLine
from deepbore.problems.benchmarks.robot_pushing import RobotPushing
from deepbore.problems.benchmarks.rotated import FORMULAS, Rotated, RotatedChoices
from deepbore.problems.benchmarks.rover import Rover
from deepbore.problems.benchmarks.synthetic import (
    Ackley,
    Branches,
    Branin,
    Flat,
    Forrester,
    Hartmann,
    Levy,
    Michalewicz,
    Rosenbrock,
    SineParabola,
    SixHumpCamel,
)
from deepbore.problems.benchmarks.tables import DigitsArchitecture, HPOLib, NASBench201
from deepbore.problems.benchmarks.training import RUNS, RUNS_OF_STATSMODELS, TrainingRun
from deepbore.validation import one_of, whole

Half = Literal["development", "validation", "held_out", "all"]

DEVELOPMENT_INSTANCES = range(1, 6)
HELD_OUT_INSTANCES = range(6, 16)  # with those for development COCO's usual 15
NUMBER = r"\d\d|[1-9]\d\d+"  # unique, as results are looked up by name
COCO_NAME = re.compile(rf"(?P<suite>[a-z-]+)/f(?P<function>{NUMBER})/i(?P<instance>{NUMBER})/d(?P<dimension>{NUMBER})")

FUNCTIONS: dict[str, Callable[[], Problem]] = {
    "branin": Branin,
    "camel": SixHumpCamel,
    "hartmann3": lambda: Hartmann(3),
    "hartmann6": lambda: Hartmann(6),
    "ackley10": lambda: Ackley(10),
    "rosenbrock5": lambda: Rosenbrock(5),
    "levy10": lambda: Levy(10),
    "michalewicz5": lambda: Michalewicz(5),
}
LONG: dict[str, Callable[[], Problem]] = {f"long/levy20-{seed}": partial(Levy, 20, seed) for seed in range(3)}
CENTRED = ("ackley10", "levy10")  # best near the centre, where a wide design begins: left out of our suites
# the standard deviation of a function's values at random points
SPREADS = {"branin": 51.2, "hartmann3": 0.955, "hartmann6": 0.384, "ackley10": 0.422, "levy10": 48.1}
NOISY: dict[str, tuple[str, Kind, float]] = {  # function, kind of noise, its scale as a share of `SPREADS`
    "noisy/branin-normal": ("branin", "normal", 0.1),
    "noisy/branin-cauchy": ("branin", "cauchy", 0.05),
    "noisy/hartmann3-loud": ("hartmann3", "normal", 0.5),
    "noisy/hartmann3-student": ("hartmann3", "student", 0.2),
    "noisy/hartmann6-normal": ("hartmann6", "normal", 0.1),
    "noisy/hartmann6-loud": ("hartmann6", "normal", 0.5),
    "noisy/hartmann6-cauchy": ("hartmann6", "cauchy", 0.05),
    "noisy/ackley10-normal": ("ackley10", "normal", 0.1),
    "noisy/levy10-normal": ("levy10", "normal", 0.1),
    "noisy/levy10-student": ("levy10", "student", 0.2),
}
TABLES: dict[str, Callable[[], Problem]] = {
    **{f"hpolib/{name}": partial(HPOLib, name) for name in HPOLib.names},
    **{f"nasbench201/{name}": partial(NASBench201, name) for name in NASBench201.names},
}
SINGLE_TABLES: dict[str, Callable[[], Problem]] = {
    **{f"tables-single/hpolib/{name}": partial(HPOLib, name, run=0) for name in HPOLib.names},
    **{f"tables-single/nasbench201/{name}": partial(NASBench201, name, run=0) for name in NASBench201.names},
}
TRAINING: dict[str, Callable[[], Problem]] = {f"training/{name}": partial(TrainingRun, name) for name in RUNS}
LEVELS: dict[str, Callable[[], Problem]] = {f"levels/{name}": partial(TrainingRun, name, levels=10) for name in RUNS}
NETWORKS: dict[str, Callable[[], Problem]] = {f"networks/{name}": partial(NetworkRun, name) for name in NETWORK_TASKS}
NOISY_NETWORKS: dict[str, Callable[[int], Problem]] = {  # the seed is that of the first evaluation
    f"networks-noisy/{name}": partial(NetworkRun, name, True) for name in NETWORK_TASKS
}
BRANCHES: dict[str, Callable[[], Problem]] = {
    f"branches/{models}x{parameters}-{seed}": partial(Branches, models, parameters, seed)
    for models, parameters in ((6, 3), (12, 2))
    for seed in range(8)
}
CHOICES: dict[str, Callable[[], Problem]] = {
    f"choices/{family}-{seed}": partial(Choices, family, seed) for family in FAMILIES for seed in range(10)
}
BITS: dict[str, Callable[[], Problem]] = {
    f"bits/{family}-{seed}": partial(Bits, family, seed) for family in BIT_FAMILIES for seed in range(8)
}
GROUND: dict[str, Callable[[], Problem]] = {
    f"ground/{kind}/{name}": partial(GroundRun, f"{kind}/{name}")
    for kind, tasks in GROUND_KINDS.items()
    for name in tasks
}
LARGE = {"f02-40": (2, 40), "f09-80": (9, 80), "f17-40": (17, 40), "f20-80": (20, 80)}  # of bbob-largescale
THOUSANDS: dict[str, Callable[[], Problem]] = {
    "thousands/rover": Rover,
    "thousands/pushing": RobotPushing,
    "thousands/lander": partial(PolicySearch, "lander"),
    **{f"thousands/lasso-{name}": partial(Lasso, name) for name in SIZES},
    **{f"thousands/{name}": partial(PolicySearch, name) for name in LOCOMOTION},
    **{f"thousands/{name}20": partial(Rotated, name, 20) for name in FORMULAS},
    **{f"thousands/{name}20-straight": partial(Rotated, name, 20, turned=False) for name in ("levy", "rastrigin")},
    **{f"thousands/{name}50-choices": partial(RotatedChoices, name) for name in ("ellipsoid", "levy", "rastrigin")},
    **{f"thousands/{key}": partial(Coco, "bbob-largescale", n, 1, d) for key, (n, d) in LARGE.items()},
}
PAPERS: dict[str, Callable[[int], Problem]] = {  # the seed is that of the noise
    "robot-pushing": lambda _: RobotPushing(),
    "racing/ucb": lambda _: RacingLine("ucb"),
    "racing/ethz_a": lambda _: RacingLine("ethz_a", tracks=os.environ.get("DEEPBORE_TRACKS")),
    "racing/ethz_b": lambda _: RacingLine("ethz_b", tracks=os.environ.get("DEEPBORE_TRACKS")),
    "digits-architecture": lambda _: DigitsArchitecture(),
    "forrester": lambda _: Forrester(),
    "sine-parabola": lambda _: SineParabola(),
    "rosenbrock3": lambda _: Rosenbrock(3),
    "rosenbrock4": lambda _: Rosenbrock(4),
    "noisy/robot-pushing": lambda seed: RobotPushing(noise=0.01, seed=seed),  # as in the original code
    "noisy/forrester": lambda seed: Noisy(Forrester(), 0.05, seed=seed),  # BORE's appendix E
    "noisy/sine-parabola": lambda seed: Noisy(SineParabola(), 0.2, seed=seed),  # BORE's figure 1
    "noisy/rosenbrock3": lambda seed: Noisy(Rosenbrock(3), 0.01, seed=seed),  # batch BORE's appendix E
    "noisy/rosenbrock4": lambda seed: Noisy(Rosenbrock(4), 0.01, seed=seed),
    "noisy/rosenbrock5": lambda seed: Noisy(Rosenbrock(5), 0.01, seed=seed),
    "noise-only": lambda seed: Noisy(Flat(2), 1.0, seed=seed),
}
CONTROL: dict[str, Callable[[], Problem]] = {f"control/{name}": partial(PolicySearch, name) for name in TASKS}
CEC: dict[str, Callable[[], Problem]] = {
    f"cec/{year}/f{function:02d}": partial(Cec, year, function)
    for year, count in Cec.FUNCTIONS.items()
    for function in range(1, count + 1)
}
STATSMODELS: dict[str, Callable[[], Problem]] = {
    f"statsmodels/{name}": partial(TrainingRun, name) for name in RUNS_OF_STATSMODELS
}
DESIGNS: dict[str, Callable[[], Problem]] = {
    "pressure-vessel": PressureVessel,
    "welded-beam": WeldedBeam,
    "digits-under-limit": DigitsUnderLimit,
}
BATCH_BORE = ["camel", "hartmann3", "branin", "hartmann6", "rosenbrock5", "ackley10"]
HALVED: dict[str, dict[str, Callable[[], Problem]]] = {
    "tables": TABLES,
    "tables-single": SINGLE_TABLES,
    "training": TRAINING,
    "levels": LEVELS,
    "networks": NETWORKS,
    "branches": BRANCHES,
    "choices": CHOICES,
    "bits": BITS,
}
SAME_HALVES = {"tables-single/": "", "levels/": "training/", "networks-noisy/": "networks/"}
WHOLE = {
    "noisy": [name for name, (function, _, _) in NOISY.items() if function not in CENTRED],
    "functions": [name for name in FUNCTIONS if name not in CENTRED],
    "papers": list(PAPERS),
    "batch-bore": BATCH_BORE,
    "long": list(LONG),
    "designs": list(DESIGNS),
}
HELD_OUT = {"control": list(CONTROL), "cec": list(CEC), "statsmodels": list(STATSMODELS)}
SUITES = (*Coco.DIMENSIONS, *HALVED, "networks-noisy", "ground", "thousands", *WHOLE, *HELD_OUT)


def problem(name: str, seed: int = 0) -> Problem:
    """A problem of the benchmark.

    Args:
        name: as `suite` gives it.
        seed: of the noise, >= 0, where there is any.

    Raises:
        SettingError: for an unknown name.
        MissingPackage: without the package that the problem needs.

    Example:
        >>> problem("bbob/f01/i01/d05").space.names
        ['x0', 'x1', 'x2', 'x3', 'x4']
    """
    whole(0, seed=seed)
    if name in NOISY:
        function, kind, share = NOISY[name]
        return Noisy(FUNCTIONS[function](), share * SPREADS[function], kind, seed)
    for seeded in (PAPERS, NOISY_NETWORKS):
        if name in seeded:
            return seeded[name](seed)
    for makers in (FUNCTIONS, LONG, DESIGNS, CONTROL, CEC, STATSMODELS, GROUND, THOUSANDS, *HALVED.values()):
        if name in makers:
            return makers[name]()
    if (match := COCO_NAME.fullmatch(name)) and match["suite"] in Coco.DIMENSIONS:
        return Coco(match["suite"], int(match["function"]), int(match["instance"]), int(match["dimension"]), seed)
    raise SettingError(f"name must be that of a problem, but got {name!r}. See `suite`, e.g. suite('bbob').")


def suite(
    name: str,
    half: Half = "development",
    dimensions: Sequence[int] | None = None,
    instances: Sequence[int] | None = None,
) -> list[str]:
    """The names of a suite's problems, in a fixed order.

    Args:
        name: bbob, bbob-mixint, bbob-noisy, bbob-largescale, bbob-constrained, tables, tables-single, training, levels,
            networks, networks-noisy, ground, thousands, branches, choices, bits, noisy, functions, papers, batch-bore,
            long, control, cec, statsmodels or designs.
        half: "development", "held_out", "all", or, of ground, "validation", which is empty elsewhere.
        dimensions: d, of a COCO suite; None for all.
        instances: of a COCO suite and of this half; None for 1 to 5, 6 to 15, or 1 to 15.

    Raises:
        SettingError: for an unknown suite, half or dimension, an instance of the other half, and for dimensions or
            instances of a suite that is not COCO's.

    Example:
        >>> suite("bbob", dimensions=[5], instances=[1])[:2]
        ['bbob/f01/i01/d05', 'bbob/f02/i01/d05']
        >>> suite("functions", half="held_out")
        []
    """
    one_of(SUITES, name=name)
    one_of(("development", "validation", "held_out", "all"), half=half)
    if name == "ground":
        return [each for kind in GROUND_KINDS for each in thirds(n for n in GROUND if n.split("/")[1] == kind)[half]]
    if half == "validation":
        return []
    if name in Coco.DIMENSIONS:
        return _coco_names(name, _dimensions(name, dimensions), _instances(half, instances))
    if dimensions is not None or instances is not None:
        raise SettingError(
            f"dimensions and instances are of COCO's suites, but got the suite {name!r}. Leave them out."
        )
    if name in WHOLE:
        return [] if half == "held_out" else list(WHOLE[name])
    if name in HELD_OUT:
        return [] if half == "development" else list(HELD_OUT[name])
    if name == "thousands":
        parts = two_thirds(THOUSANDS)
    else:
        parts = halves(NOISY_NETWORKS if name == "networks-noisy" else HALVED[name])
    return parts[half]


def halves(names: Iterable[str]) -> dict[Half, list[str]]:
    """Names sorted by their SHA-256 and cut in the middle; of an odd number, one more is for development.

    A run on levels is sorted by the name of the run without levels, one with noise by that of the run without, and
    one training run of a table as the table.
    """

    def digest(name: str) -> str:
        for suite, same in SAME_HALVES.items():
            name = name.replace(suite, same)
        return sha256(name.encode()).hexdigest()

    drawn = sorted(names, key=digest)
    middle = (len(drawn) + 1) // 2
    return {"development": drawn[:middle], "held_out": drawn[middle:], "all": drawn}


def two_thirds(names: Iterable[str]) -> dict[Half, list[str]]:
    """Names sorted by their SHA-256: two thirds for development (rounded up), the others held out."""
    drawn = sorted(names, key=lambda name: sha256(name.encode()).hexdigest())
    end = len(drawn) - len(drawn) // 3
    return {"development": drawn[:end], "held_out": drawn[end:], "all": drawn}


def thirds(names: Iterable[str]) -> dict[Half, list[str]]:
    """Names sorted by their SHA-256: half for development (rounded down), a third for validation (rounded up)."""
    drawn = sorted(names, key=lambda name: sha256(name.encode()).hexdigest())
    middle = len(drawn) // 2
    end = middle - (-len(drawn) // 3)
    return {"development": drawn[:middle], "validation": drawn[middle:end], "held_out": drawn[end:], "all": drawn}


def _coco_names(name: str, dimensions: Iterable[int], instances: Iterable[int]) -> list[str]:
    numbers = product(dimensions, instances, Coco.functions(name))
    return [f"{name}/f{function:02d}/i{instance:02d}/d{dimension:02d}" for dimension, instance, function in numbers]


def _dimensions(name: str, dimensions: Sequence[int] | None) -> Sequence[int]:
    for dimension in dimensions or ():
        one_of(Coco.DIMENSIONS[name], dimension=dimension)
    return Coco.DIMENSIONS[name] if dimensions is None else dimensions


def _instances(half: Half, instances: Sequence[int] | None) -> Sequence[int]:
    """The given instances, or all of the half. Raises SettingError for one of the other half."""
    if instances is None:
        held_out, development = list(HELD_OUT_INSTANCES), list(DEVELOPMENT_INSTANCES)
        return {"development": development, "held_out": held_out, "all": development + held_out}[half]
    for instance in instances:
        whole(1, instance=instance)
        if half != "all" and (instance in DEVELOPMENT_INSTANCES) != (half == "development"):
            rule = "instances 1 to 5 are for development, those above are held out"
            raise SettingError(f"{rule}, but got instance={instance} for half={half!r}.")
    return instances
