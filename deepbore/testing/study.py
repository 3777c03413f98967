"""A check that a run with given parts resumes exactly after a kill."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.data.trial import Trial
from deepbore.labels import Labelling
from deepbore.space import SearchSpace
from deepbore.study import Study
from deepbore.testing.require import require
from deepbore.testing.toys import TOY_SPACES, toy_objective

N_INITIAL = 6
AFTER = 3  # proposals before the kill and after it


def check_resume(
    *,
    labels: Callable[[], Labelling] | None = None,
    classifier: Callable[[], Classifier] | None = None,
    acquisition: Callable[[], Acquisition] | None = None,
    candidates: Callable[[], Candidates] | None = None,
    space: SearchSpace = TOY_SPACES["mixed"],
    objectives: int = 1,
) -> None:
    """Checks that a run that is killed with a trial pending, and loaded from its journal, proposes the same trials.

    Args:
        labels: gives a new labelling; None for the default, as with the other parts.
        classifier: gives a new classifier.
        acquisition: gives a new acquisition.
        candidates: gives a new search.
        space: of the run.
        objectives: number of values of an outcome.

    Raises:
        AssertionError: with the first proposal that differs.

    Example:
        >>> from deepbore import ThresholdLabels
        >>> check_resume(labels=ThresholdLabels)
    """
    makers = {"labels": labels, "classifier": classifier, "acquisition": acquisition, "candidates": candidates}
    with TemporaryDirectory() as folder:
        whole, killed = Path(folder, "whole"), Path(folder, "killed")
        whole.mkdir()
        study = Study(
            space,
            directions=["minimize"] * objectives,
            journal=whole / "run.jsonl",
            n_initial=N_INITIAL,
            **_made(makers),
        )
        for _ in range(N_INITIAL + AFTER):
            (trial,) = study.ask(1)
            _tell(study, trial, objectives)
        (pending,) = study.ask(1)
        shutil.copytree(whole, killed)  # the files after a kill at this moment
        loaded = Study.load(killed / "run.jsonl", **_made(makers))
        same = loaded.trials == study.trials
        require(same, "a loaded study must have the trials of the one that was killed, but has others")
        _compare(study, loaded, pending, objectives)
        study.close()
        loaded.close()


def _compare(study: Study, loaded: Study, pending: Trial, objectives: int) -> None:
    for each in (study, loaded):
        _tell(each, pending, objectives)
    for step in range(1, AFTER + 1):
        (expected,), (found,) = study.ask(1), loaded.ask(1)
        require(
            found.params == expected.params,
            f"a resumed run must go on as the uninterrupted one, but proposal {step} after the kill is {found.params} "
            f"instead of {expected.params}: is all that the part remembers in its state_dict?",
        )
        _tell(study, expected, objectives)
        _tell(loaded, found, objectives)


def _tell(study: Study, trial: Trial, objectives: int) -> None:
    point = study.space.encode([trial.params])
    study.tell(trial, [float(toy_objective(study.space, point, 0.2 * k)) for k in range(objectives)])


def _made(makers: dict[str, Callable[[], Any] | None]) -> dict[str, Any]:
    return {name: make() for name, make in makers.items() if make is not None}
