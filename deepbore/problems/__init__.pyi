"""The exports of the room, each imported when it is first used."""

from . import suites
from .base import FunctionProblem, Problem, VectorProblem
from .benchmarks.bits import Bits
from .benchmarks.cec import Cec
from .benchmarks.choices import Choices
from .benchmarks.coco import Coco
from .benchmarks.control import PolicySearch
from .benchmarks.digits import Digits, DigitsUnderLimit
from .benchmarks.engineering import PressureVessel, WeldedBeam
from .benchmarks.ground import GroundRun
from .benchmarks.lasso import Lasso
from .benchmarks.networks import NetworkRun
from .benchmarks.noise import Noisy
from .benchmarks.racing import RacingLine
from .benchmarks.robot_pushing import RobotPushing
from .benchmarks.rotated import Rotated, RotatedChoices
from .benchmarks.rover import Rover
from .benchmarks.synthetic import (
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
from .benchmarks.tables import (
    DigitsArchitecture,
    HPOLib,
    LearningCurves,
    NASBench201,
)
from .benchmarks.trade_offs import (
    DTLZ2,
    WFG,
    ZDT,
    CocoBiobjective,
    DigitsTradeOff,
)
from .benchmarks.training import TrainingRun
from .lightning_cli import LightningCLIProblem

__all__ = [
    "DTLZ2",
    "WFG",
    "ZDT",
    "Ackley",
    "Bits",
    "Branches",
    "Branin",
    "Cec",
    "Choices",
    "Coco",
    "CocoBiobjective",
    "Digits",
    "DigitsArchitecture",
    "DigitsTradeOff",
    "DigitsUnderLimit",
    "Flat",
    "Forrester",
    "FunctionProblem",
    "GroundRun",
    "HPOLib",
    "Hartmann",
    "Lasso",
    "LearningCurves",
    "Levy",
    "LightningCLIProblem",
    "Michalewicz",
    "NASBench201",
    "NetworkRun",
    "Noisy",
    "PolicySearch",
    "PressureVessel",
    "Problem",
    "RacingLine",
    "RobotPushing",
    "Rosenbrock",
    "Rotated",
    "RotatedChoices",
    "Rover",
    "SineParabola",
    "SixHumpCamel",
    "TrainingRun",
    "VectorProblem",
    "WeldedBeam",
    "suites",
]
