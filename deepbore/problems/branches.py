"""`Branches`: one of several models is to be chosen and tuned, each with parameters of its own."""

import numpy as np

from deepbore.checks import whole
from deepbore.problems.base import Problem
from deepbore.space import Categorical, Condition, Params, Real, SearchSpace

OFFSET = 0.1  # what the best values of the models are apart, on average


class Branches(Problem):
    """Which of k bowls is the deepest, and where: a space with a branch for each, in d parameters of its own.

        f(model, x) = b_model + sum_j s_j (x_j - o_j)^2 + 3/10 |x_0 - o_0| |x_1 - o_1|,    x in [0, 1]^d

    where every model has its own o, uniform in [0, 1]^d, its own s, uniform in [1/2, 5/2]^d, and a least value b, from
    an exponential distribution, less the least of all. So a run that goes on in the first branch that is good finds
    the last digit of the wrong model.

    Args:
        models: k >= 2.
        parameters: d >= 2 of each.
        seed: of the bowls, >= 0.

    Raises:
        SettingError: for a number below its least.

    Example:
        >>> problem = Branches(models=3, parameters=2)
        >>> problem.space.names
        ['model', 'm0_x0', 'm0_x1', 'm1_x0', 'm1_x1', 'm2_x0', 'm2_x1']
        >>> problem({"model": "m1", "m1_x0": 0.5, "m1_x1": 0.5}) > problem.optimum
        True
    """

    optimum = 0.0

    def __init__(self, models: int = 6, parameters: int = 3, seed: int = 0):
        whole(2, models=models, parameters=parameters)
        whole(0, seed=seed)
        stream = np.random.default_rng([models, parameters, seed])
        self.places = stream.random((models, parameters))
        self.scales = 0.5 + 2 * stream.random((models, parameters))
        least = stream.exponential(OFFSET, models)
        self.offsets = least - least.min()
        self.names = [[f"m{k}_x{j}" for j in range(parameters)] for k in range(models)]
        space: dict[str, Categorical | Real] = {"model": Categorical([f"m{k}" for k in range(models)])}
        for k, names in enumerate(self.names):
            space |= {name: Real(0, 1, when=Condition("model", f"m{k}")) for name in names}
        self.space = SearchSpace(space)

    def __call__(self, params: Params) -> float:
        """The depth of a model's bowl at a configuration."""
        k = int(str(params["model"])[1:])
        away = np.array([params[name] for name in self.names[k]]) - self.places[k]
        return float(self.offsets[k] + self.scales[k] @ away**2 + 0.3 * abs(away[0] * away[1]))
