"""The exports of the room, each imported when it is first used."""

from . import suites as suites
from .base import FunctionProblem as FunctionProblem, Problem as Problem, VectorProblem as VectorProblem
from .benchmarks.coco import Coco as Coco
from .benchmarks.control import PolicySearch as PolicySearch
from .benchmarks.digits import Digits as Digits, DigitsUnderLimit as DigitsUnderLimit
from .benchmarks.engineering import PressureVessel as PressureVessel, WeldedBeam as WeldedBeam
from .benchmarks.noise import Noisy as Noisy
from .benchmarks.racing import RacingLine as RacingLine
from .benchmarks.robot_pushing import RobotPushing as RobotPushing
from .benchmarks.synthetic import (
    Ackley as Ackley,
    Branches as Branches,
    Branin as Branin,
    Flat as Flat,
    Forrester as Forrester,
    Hartmann as Hartmann,
    Levy as Levy,
    Michalewicz as Michalewicz,
    Rosenbrock as Rosenbrock,
    SineParabola as SineParabola,
    SixHumpCamel as SixHumpCamel,
)
from .benchmarks.tables import (
    DigitsArchitecture as DigitsArchitecture,
    HPOLib as HPOLib,
    LearningCurves as LearningCurves,
    NASBench201 as NASBench201,
)
from .benchmarks.trade_offs import (
    DTLZ2 as DTLZ2,
    WFG as WFG,
    ZDT as ZDT,
    CocoBiobjective as CocoBiobjective,
    DigitsTradeOff as DigitsTradeOff,
)
from .benchmarks.training import TrainingRun as TrainingRun
from .lightning_cli import LightningCLIProblem as LightningCLIProblem
