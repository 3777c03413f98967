"""A rover's path between trees: 30 points that a smoothing spline follows, in 60 dimensions.

The trees' places are those of the authors (github.com/zi-w/Ensemble-Bayesian-Optimization).
"""

import numpy as np
from scipy.interpolate import splev, splprep

from deepbore.problems.base import Array, VectorProblem

START, GOAL = np.array([0.05, 0.05]), np.array([0.95, 0.95])
LOW, HIGH = -0.1, 1.1  # of the points: some may lie outside the unit square, where driving is as bad as in a tree
SIDE = 0.05  # of a tree
COST, IN_TREE, MISSED = 0.05, 20.0, 10.0  # of a unit of length, more in a tree, and of a unit from start or goal
STEPS = 1000  # points at which the path is looked at
JITTER = np.random.default_rng(0).normal(0, 1e-4, 60)  # so that no two neighbours are the same, which FITPACK refuses
# fmt: off
TREES = np.array(  # centres, as wide as high
    [
        [0.43143755, 0.20876147], [0.38485367, 0.39183579], [0.02985961, 0.22328303], [0.7803707, 0.3447003],
        [0.93685657, 0.56297285], [0.04194252, 0.23598362], [0.28049582, 0.40984475], [0.6756053, 0.70939481],
        [0.01926493, 0.86972335], [0.5993437, 0.63347932], [0.57807619, 0.40180792], [0.56824287, 0.75486851],
        [0.35403502, 0.38591056], [0.72492026, 0.59969313], [0.27618746, 0.64322757], [0.54029566, 0.25492943],
        [0.30903526, 0.60166842], [0.2913432, 0.29636879], [0.78512072, 0.62340245], [0.29592116, 0.08400595],
        [0.87548394, 0.04877622], [0.21714791, 0.9607346], [0.92624074, 0.53441687], [0.53639253, 0.45127928],
        [0.99892031, 0.79537837], [0.84621631, 0.41891986], [0.39432819, 0.06768617], [0.92365693, 0.72217512],
        [0.95520914, 0.73956575], [0.820383, 0.53880139], [0.22378049, 0.9971974], [0.34023233, 0.91014706],
        [0.64960636, 0.35661133], [0.29976464, 0.33578931], [0.43202238, 0.11563227], [0.66764947, 0.52086962],
        [0.45431078, 0.94582745], [0.12819915, 0.33555344], [0.19287232, 0.8112075], [0.61214791, 0.71940626],
        [0.4522542, 0.47352186], [0.95623345, 0.74174186], [0.17340293, 0.89136853], [0.04600255, 0.53040724],
        [0.42493468, 0.41006649], [0.37631485, 0.88033853], [0.66951947, 0.29905739], [0.4151516, 0.77308712],
        [0.55762991, 0.26400156], [0.6280609, 0.53201974], [0.92727447, 0.61054975], [0.93206587, 0.42107549],
        [0.63885574, 0.37540613], [0.15303425, 0.57377797], [0.8208471, 0.16566631], [0.14889043, 0.35157346],
        [0.71724622, 0.57110725], [0.32866327, 0.8929578], [0.74435871, 0.47464421], [0.9252026, 0.21034329],
        [0.57039306, 0.54356078], [0.56611551, 0.02531317], [0.84830056, 0.01180542], [0.51282028, 0.73916524],
        [0.58795481, 0.46527371], [0.83259048, 0.98598188], [0.00242488, 0.83734691], [0.72505789, 0.04846931],
        [0.07312971, 0.30147979], [0.55250344, 0.23891255], [0.51161315, 0.46466442], [0.802125, 0.93440495],
        [0.9157825, 0.32441602], [0.44927665, 0.53380074], [0.67708372, 0.67527231], [0.81868924, 0.88356194],
        [0.48228814, 0.88668497], [0.39805433, 0.99341196], [0.86671752, 0.79016975], [0.01115417, 0.6924913],
        [0.34272199, 0.89543756], [0.40721675, 0.86164495], [0.26317679, 0.37334193], [0.74446787, 0.84782643],
        [0.55560143, 0.46405104], [0.73567977, 0.12776233], [0.28080322, 0.26036748], [0.17507419, 0.95540673],
        [0.54233783, 0.1196808], [0.76670967, 0.88396285], [0.61297539, 0.79057776], [0.9344029, 0.86252764],
        [0.48746839, 0.74942784], [0.18657635, 0.58127321], [0.10377802, 0.71463978], [0.7771771, 0.01463505],
        [0.7635042, 0.45498358], [0.83345861, 0.34749363], [0.38273809, 0.51890558], [0.33887574, 0.82842507],
        [0.02073685, 0.41776737], [0.68754547, 0.96430979], [0.4704215, 0.92717361], [0.72666234, 0.63241306],
        [0.48494401, 0.72003268], [0.52601215, 0.81641253], [0.71426732, 0.47077212], [0.00258906, 0.30377501],
        [0.35495269, 0.98585155], [0.65507544, 0.03458909], [0.10550588, 0.62032937], [0.60259145, 0.87110846],
        [0.04959159, 0.535785],
    ]
)
# fmt: on


class Rover(VectorProblem):
    """Five minus the costs of a rover's path from (0.05, 0.05) to (0.95, 0.95), maximised.

        f(x) = 5 - integral of c(p) dp - 10 |p(0) - start|_1 - 10 |p(1) - goal|_1

    The path p is a smoothing spline of 30 points (x0, x1), (x2, x3), ..., each from -0.1 to 1.1. Its cost c is 0.05 a
    unit of length, and 20 more in a tree or outside the unit square. Five minus the shortest way, 4.94, is an upper
    bound that trees may not allow; the optimum is unknown. As in the original, FITPACK's default smoothing is large, so
    many sets of points have nearly the same path.

    Example:
        >>> problem = Rover()
        >>> problem(dict.fromkeys(problem.space.names, 0.5)) < 0, problem.direction  # it stays in the middle
        (True, 'maximize')

    References:
        Wang, Gehring, Kohli & Jegelka, Batched Large-Scale Bayesian Optimization in High-Dimensional Spaces, AISTATS
        2018, section 4.4.
    """

    directions = ("maximize",)

    def __init__(self) -> None:
        super().__init__([(LOW, HIGH)] * 60)

    def value(self, x: Array) -> float:
        """The value at a vector (60)."""
        path = self.path(x)
        costs = COST + IN_TREE * blocked(path)
        lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
        driven = float(np.sum(lengths * (costs[:-1] + costs[1:]) / 2))
        missed = MISSED * float(np.abs(path[0] - START).sum() + np.abs(path[-1] - GOAL).sum())
        return 5.0 - driven - missed

    def path(self, x: Array) -> Array:
        """A vector (60) -> places on its path (1000 x 2)."""
        spline, _ = splprep((x + JITTER).reshape(-1, 2).T, k=3)
        return np.stack(splev(np.linspace(0, 1, STEPS), spline), axis=-1)


def blocked(places: Array) -> Array:
    """Whether places (n x 2) are in a tree or outside the unit square, as numbers (n)."""
    off = places[:, None] - TREES
    in_tree = ((off >= -SIDE / 2) & (off < SIDE / 2)).all(-1).any(-1)
    outside = ((places < 0) | (places >= 1)).any(-1)
    return np.asarray(in_tree | outside, dtype=np.float64)
