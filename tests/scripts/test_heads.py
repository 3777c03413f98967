"""The problems and the figures of `scripts/heads.py`."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import heads


@pytest.mark.parametrize("name", heads.FUNCTIONS)
@pytest.mark.parametrize("seed", [0, 7])
def test_a_shifted_function_has_its_minimum_where_it_was_drawn(name, seed):
    shifted = heads.Shifted(name, seed)
    low, high = heads.FUNCTIONS[name][1:3]
    at = np.array(heads.FUNCTIONS[name][3]) + shifted.shift
    assert ((at > low + 0.14 * (high - low)) & (at < low + 0.86 * (high - low))).all()

    def value(x):
        return shifted(dict(zip(shifted.space.names, x, strict=True)))

    found = minimize(value, at, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxfev": 4000})
    assert shifted.regret(found.fun) == pytest.approx(0, abs=1e-6)
    points = np.random.default_rng(seed).uniform(low, high, (2000, len(at)))
    assert min(map(value, points)) >= shifted.optimum - 1e-9
    assert not np.allclose(at, np.array(heads.FUNCTIONS[name][3]))


def rows_of(**regrets):
    """Rows of one problem: by method the regret of each seed."""
    return [
        {"problem": "shifted/levy-8", "method": name, "seed": seed, "regret": r, "best": {"60": r}, "cpu": 6.0}
        for name, each in regrets.items()
        for seed, r in enumerate(each)
    ]


def test_a_ratio_is_the_geometric_mean_over_the_seeds_that_both_have():
    found = heads.by_problem(rows_of(random=[1.0, 4.0, 9.0], DeepPLS=[0.1, 0.1]), "main")
    assert heads.log_ratio(found["shifted/levy-8"]["DeepPLS"], found["shifted/levy-8"]["random"]) == pytest.approx(
        (math.log(0.1) + math.log(0.1 / 4)) / 2
    )
    assert heads.ratio(found, ["shifted/levy-8"], "DeepPLS", "random") == f"{0.05:.2g} (1)"
    assert heads.ahead(found, ["shifted/levy-8"], "DeepPLS", "random").startswith("1:0")
    assert heads.ahead(found, ["shifted/levy-8"], "random", "DeepPLS").startswith("0:1")
