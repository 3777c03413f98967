"""Error against size: the networks that no other beats in both.

    python examples/accuracy_and_size.py --trials 40

A small network learns scikit-learn's handwritten digits. The wider and deeper it is, the fewer digits it misreads, and
the more numbers it has: there is no best one, but a front to choose from.
"""

import argparse

import deepbore
from deepbore.problems import DigitsTradeOff


def main() -> None:
    """Runs the study and prints its front."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=10)
    given = parser.parse_args()

    problem = DigitsTradeOff(given.epochs)
    study = deepbore.Study(problem.space, directions=problem.directions, seed=0)
    study.optimize(problem, n_trials=given.trials)

    print("error   parameters   network")
    for trial in study.pareto_front:
        assert trial.values is not None
        error, size = trial.values
        print(f"{error:6.1%}  {10**size:10.0f}   {trial.params['depth']} x {trial.params['width']}")


if __name__ == "__main__":
    main()
