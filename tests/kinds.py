"""Runs of several kinds of outcomes together, by a program that asks and tells; also the program that is killed.

python tests/kinds.py JOURNAL TRIALS KIND [KIND ...]
"""

import sys
from pathlib import Path

from deepbore import Budget, Outcome, Real, SearchSpace, Study
from deepbore.data.outcome import Status

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
KINDS = ("constraints", "several objectives", "cheap fidelities", "earlier tasks", "preferences", "noise")
SEED, INITIAL = 3, 4


def loss(params, budget=None):
    """Lowest at (.3, .7), by what was spent closer to it."""
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.7) ** 2 + 0.1 / (budget or 10.0)


def begun(kinds, journal=None, **settings):
    """A new study of these kinds."""
    if "several objectives" in kinds:
        settings["directions"] = ["minimize", "maximize"]
    if "cheap fidelities" in kinds:
        settings["budget"] = Budget("epochs", 1, 9)
    if "preferences" in kinds:
        settings["preferences"] = True
    study = Study(PLANE, seed=SEED, n_initial=INITIAL, journal=journal, **settings)
    if "earlier tasks" in kinds:
        elsewhere = {"x": [0.1, 0.3, 0.5, 0.9], "y": [0.2, 0.6, 0.5, 0.9]}
        values = [1.0, 0.1, 0.4, 2.0]
        study.add(elsewhere, [[v, -v] for v in values] if "directions" in settings else values, task="elsewhere")
    return study


def told(study, trial, kinds):
    """Tells what the kinds say of a trial."""
    if "preferences" in kinds:
        return compared(study, trial, kinds)
    value = loss(trial.params, trial.budget)
    values = [value, trial.params["x"]] if "several objectives" in kinds else [value]
    constraints = [0.5 - trial.params["x"]] if "constraints" in kinds else []
    noise = {"noise": 0.1} if "noise" in kinds else {}
    study.tell(trial, Outcome(values, constraints=constraints, **noise))
    return None


def compared(study, trial, kinds):
    """Compares a trial with the one before; what a value would come with, nobody can tell."""
    if len(kinds) > 1 and set(kinds) & {"constraints", "noise"}:
        study.tell(trial, Outcome(0.0, constraints=[0.0]) if "constraints" in kinds else Outcome(0.0, noise=0.1))
    if trial.id:
        pair = sorted((trial, study.trials[trial.id - 1]), key=lambda each: loss(each.params))
        study.prefer(*pair)


def go_on(study, kinds, n):
    """Runs a study until it has n trials."""
    while len(study.observations) - study.observations.ledger.statistics.n_earlier < n:
        (trial,) = study.ask()
        told(study, trial, kinds)
    return study


def main(journal, n, *kinds):
    """Goes on with the journal, if there is one: what was asked for before the process died is told first."""
    study = Study.load(journal) if Path(journal).exists() else begun(kinds, journal)
    for trial in study.trials:
        if trial.status is Status.PENDING:
            told(study, trial, kinds)
    go_on(study, kinds, int(n))


if __name__ == "__main__":
    main(*sys.argv[1:])
