"""What is known of a problem: its suite, its dimension, its half and its best possible value.

Names say most of it; `deepbore.problems.suites` says the rest. Its answers are kept in docs/results/problems.json,
so that a report needs neither torch nor tables of 62,208 configurations; delete the file to have it asked anew.
"""

import json
import math
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

COCO = ("bbob", "bbob-mixint", "bbob-noisy", "bbob-largescale", "bbob-constrained")
CONSTRAINED = "bbob-constrained"
TABLES = ("hpolib", "nasbench201")
TRAINING = ("training", "levels", "networks", "networks-noisy", "statsmodels")  # nobody knows their optima
NOISY = ("bbob-noisy", "noisy", "networks-noisy")
DESIGNS = ("pressure-vessel", "welded-beam", "digits-under-limit")
ORDER = (
    *COCO[:4],
    *("tables", "tables-single", "training", "levels", "networks", "networks-noisy", "branches", "choices", "bits"),
    *("noisy", "functions", "bbob-constrained", "designs", "control", "cec", "statsmodels"),
)
INSTANCES_OF_DEVELOPMENT = range(1, 6)


@dataclass(frozen=True)
class Fact:
    """What a problem's name does not say.

    Attributes:
        optimum: the best possible value, in the sign that is minimised; None if unknown.
        half: "development", "held_out", "look 0.3" if release 0.3 had its one look at it, or "all" where nobody knows.
    """

    optimum: float | None
    half: str


def suite_of(problem: str) -> str:
    """The suite of a problem.

    Example:
        >>> suite_of("bbob-mixint/f01/i01/d05"), suite_of("hpolib/naval_propulsion"), suite_of("branin")
        ('bbob-mixint', 'tables', 'functions')
    """
    first, slash, _ = problem.partition("/")
    if not slash:
        return "designs" if problem in DESIGNS else "functions"
    return "tables" if first in TABLES else "papers" if first == "racing" else first


def place_of(suite: str) -> int:
    """Where a suite stands in a report; unknown ones come last."""
    return ORDER.index(suite) if suite in ORDER else len(ORDER)


def dimension_of(problem: str) -> int | None:
    """The dimension of one of COCO's problems; None of others, whose dimensions differ within a suite."""
    found = re.search(r"/d(\d+)$", problem)
    return int(found[1]) if found and suite_of(problem) in COCO else None


def instance_of(problem: str) -> int | None:
    """The instance of one of COCO's problems; None of others."""
    found = re.search(r"/i(\d+)/", problem)
    return int(found[1]) if found and suite_of(problem) in COCO else None


def cluster_of(problem: str) -> str:
    """What the bootstrap draws: one of COCO's functions with all its instances, else a problem."""
    return "/".join(problem.split("/")[:2]) if suite_of(problem) in COCO else problem


def gather(problems: Iterable[str], kept: Path | None = None) -> dict[str, Fact]:
    """What is known of each problem, from its name, from the file `kept`, or else from deepbore."""
    known = read(kept) if kept else {}
    return {problem: known[problem] if problem in known else _fact(problem) for problem in sorted(set(problems))}


def with_looks(facts: dict[str, Fact], register: dict[str, Any]) -> dict[str, Fact]:
    """The facts, with the problems that a register holds out for one look of a release as a half of their own."""
    kept = {problem: each["release"] for each in register.get("sets", {}).values() for problem in each["problems"]}
    return {
        problem: replace(fact, half=f"look {kept[problem]}") if problem in kept else fact
        for problem, fact in facts.items()
    }


def read(path: Path) -> dict[str, Fact]:
    """The facts in a file; none if there is no file."""
    return {name: Fact(**fact) for name, fact in json.loads(path.read_text()).items()} if path.exists() else {}


def write(facts: dict[str, Fact], path: Path) -> None:
    """Keeps the facts that names do not say, beside those in the file already."""
    told = {name: fact for name, fact in facts.items() if not _is_named(name) and fact.half != "all"}
    lines = [f"{json.dumps(name)}: {json.dumps(asdict(fact))}" for name, fact in sorted((read(path) | told).items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n" if lines else "{}\n")


def _fact(problem: str) -> Fact:
    if _is_named(problem):
        return Fact(0.0, _half_of(problem))
    try:
        return _told(problem)
    except Exception as error:  # a package that is missing, a name nobody knows: the runs are compared all the same
        print(f"little is known of {problem}: {type(error).__name__}: {error}", file=sys.stderr)
        return Fact(None, "all")


def _told(problem: str) -> Fact:
    """The fact as deepbore tells it."""
    from deepbore.problems import suites  # most reports do without

    suite = suite_of(problem)
    if suite in COCO:
        half = _half_of(problem)
    else:  # functions that are in no suite any more have been looked at, too
        half = "held_out" if problem in suites.suite(suite, half="held_out") else "development"
    if suite in TRAINING:
        return Fact(None, half)
    made = suites.problem(problem)
    known = made.optimum is not None and math.isfinite(made.optimum)
    sign = -1 if made.direction == "maximize" else 1
    return Fact(float(sign * made.optimum) if known else None, half)


def _is_named(problem: str) -> bool:
    """Whether the name of a problem says all: it is one of COCO's with its optimum at 0."""
    return suite_of(problem) in COCO and suite_of(problem) != CONSTRAINED


def _half_of(problem: str) -> str:
    """The half of one of COCO's problems."""
    return "development" if instance_of(problem) in (None, *INSTANCES_OF_DEVELOPMENT) else "held_out"
