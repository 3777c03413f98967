#!/usr/bin/env python
"""Shows a run of Bayesian optimisation step by step on the Forrester function, as BORE's figure 8 does.

    python scripts/step_through.py steps.gif
    python scripts/step_through.py steps.gif --classifier mlp --steps 12 --frames frames/

Each frame is the state after the classifier has learned and before its next point is evaluated: above the function, the
trials and the threshold tau, beside them the distribution of the values, below the classifier and its next point.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from matplotlib.animation import PillowWriter
from matplotlib.figure import Figure

from deepbore import ClassProbability, MLPClassifier, Study, ThresholdLabels
from deepbore.plots import landscape
from deepbore.problems import Forrester

DPI = 80
BORE = {"acquisition": ClassProbability(), "labels": ThresholdLabels(1 / 4)}  # one threshold, as in the paper


def studies(classifier: str, steps: int, n_initial: int, seed: int) -> Iterator[Study]:
    """The study before each evaluation, its next point pending."""
    problem = Forrester()
    settings = {"classifier": MLPClassifier(), **BORE} if classifier == "mlp" else {}
    study = Study(problem.space, seed=seed, n_initial=n_initial, **settings)
    study.optimize(problem, n_initial)
    for _ in range(steps):
        (trial,) = study.ask()
        yield study
        study.tell(trial, problem(trial.params))


def draw(figure: Figure, study: Study) -> None:
    """One frame."""
    figure.clear()
    landscape(study, objective=Forrester(), figure=figure)
    evaluated, best = len(study.trials) - 1, study.best_trial
    figure.suptitle(f"after {evaluated} evaluations, best value {best.value:.3f}", fontsize=10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the animation, a .gif")
    parser.add_argument("--classifier", choices=["default", "mlp"], default="default", help="deepbore's, or BORE-MLP")
    parser.add_argument("--steps", type=int, default=10, help="evaluations after the initial design (10)")
    parser.add_argument("--initial", type=int, default=4, help="evaluations of the initial design (4)")
    parser.add_argument("--seed", type=int, default=7, help="7 begins with the best value far from the optimum")
    parser.add_argument("--frames", type=Path, help="a folder for each frame as a PNG, too")
    args = parser.parse_args()
    if args.frames:
        args.frames.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(7.2, 4.8), layout="constrained")
    writer = PillowWriter(fps=1)
    with writer.saving(figure, args.out, DPI):
        for number, study in enumerate(studies(args.classifier, args.steps, args.initial, args.seed), 1):
            draw(figure, study)
            writer.grab_frame()
            if args.frames:
                figure.savefig(args.frames / f"{number:02d}.png", dpi=DPI)
    print(args.out)


if __name__ == "__main__":
    main()
