"""Begins with what was learned elsewhere: two older machines, whose best settings are near, on other scales.

    python examples/earlier_tasks.py --trials 12

Each machine's results are a task of its own: values are compared within it only. What its rows say of the new machine
decides how much they count. `study.add_csv("bakery.csv", task="bakery")` reads a file; `deepbore fit` has
`--earlier_tasks.bakery bakery.csv`.
"""

import argparse

import numpy as np

import deepbore

SPACE = deepbore.SearchSpace(
    {
        "temperature": deepbore.Real(100, 300),
        "minutes": deepbore.Real(5, 120, log=True),
        "steam": deepbore.Categorical(["none", "little", "much"]),
    }
)


def waste(params: dict, hotter: float = 0.0, unit: float = 1.0) -> float:
    """What an oven throws away: a formula in the place of an experiment."""
    heat = (params["temperature"] - 215 - hotter) / 40
    time = np.log(params["minutes"] / 35) + 0.3 * heat
    return unit * float(heat**2 + 4 * time**2 + {"none": 0.6, "little": 0.0, "much": 0.3}[params["steam"]])


def earlier_results(seed: int, **machine: float) -> tuple[dict, list]:
    """Sixty random settings of another machine, and what came out."""
    params = SPACE.decode(SPACE.points.sobol(60, seed=seed))
    columns = {name: [each[name] for each in params] for name in SPACE.names}
    return columns, [waste(each, **machine) for each in params]


def tuned(trials: int, *, with_earlier: bool) -> deepbore.Study:
    """A study of the new oven, which runs 8 degrees hotter than the pilot plant."""
    study = deepbore.Study(SPACE, seed=0)
    if with_earlier:
        study.add(*earlier_results(1, hotter=-12.0, unit=1000.0), task="bakery")
        study.add(*earlier_results(2, hotter=8.0, unit=0.01), task="pilot plant")
    study.optimize(waste, n_trials=trials, progress=False)
    return study


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=12)
    args = parser.parse_args()
    for words, with_earlier in (("from scratch", False), ("with two earlier tasks", True)):
        best = tuned(args.trials, with_earlier=with_earlier).best_trial
        print(f"{words}: waste {best.value:.4f} after {args.trials} trials, at {best.params}")
