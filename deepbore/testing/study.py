"""A check that a run with given parts resumes exactly after a kill."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.data.trial import Trial
from deepbore.labels import Labelling
from deepbore.space import SearchSpace
from deepbore.strategies import Strategy
from deepbore.study import Study
from deepbore.testing.require import require
from deepbore.testing.toys import TOY_SPACES, toy_objective

N_INITIAL = 6
KILLED_AFTER = (3, 4)  # proposals: after an odd and an even number, since what takes turns may be as it was after two
AFTER = 3  # proposals that are compared
STEEP = 30.0  # of the valley, in units of the bowl
SPREAD, NEAR = 24, 12  # earlier results all over the space, and near the best point: what takes turns begins with them


def check_resume(
    *,
    labels: Callable[[], Labelling] | None = None,
    strategy: Callable[[], Strategy] | None = None,
    classifier: Callable[[], Classifier] | None = None,
    acquisition: Callable[[], Acquisition] | None = None,
    candidates: Callable[[], Candidates] | None = None,
    space: SearchSpace | None = None,
    objectives: int = 1,
) -> None:
    """Checks that a run that is killed with a trial pending, and loaded from its journal, proposes the same trials.

    It is killed after an odd and after an even number of proposals.

    Args:
        labels: gives a new labelling; None for the default, as with the other parts.
        strategy: gives a new strategy, in the place of the three that follow.
        classifier: gives a new classifier.
        acquisition: gives a new acquisition.
        candidates: gives a new search.
        space: what the run searches; None for two runs, one on a continuous space and one on a mixed one.
        objectives: how many values the labelling grades.

    Raises:
        AssertionError: with the first proposal that differs.

    Example:
        >>> from deepbore import ThresholdLabels
        >>> check_resume(labels=ThresholdLabels)
    """
    if space is None:
        for name in ("continuous", "mixed"):
            check_resume(
                labels=labels, strategy=strategy, classifier=classifier, acquisition=acquisition, candidates=candidates,
                space=TOY_SPACES[name], objectives=objectives,
            )  # fmt: skip
        return
    parts = {"classifier": classifier, "acquisition": acquisition, "candidates": candidates}
    makers = {"labels": labels, "strategy": strategy, **parts}
    with TemporaryDirectory() as folder:
        whole = Path(folder, "whole")
        whole.mkdir()
        made = _made(makers)
        study = Study(
            space, directions=["minimize"] * objectives, journal=whole / "run.jsonl", n_initial=N_INITIAL, **made
        )
        know_toys(study, objectives)
        for count in range(KILLED_AFTER[-1] + AFTER + 1):
            (trial,) = study.ask(1)
            if count in KILLED_AFTER:
                shutil.copytree(whole, Path(folder, str(count)))  # the files after a kill at this moment
            _tell(study, trial, objectives)
        expected = study.trials
        study.close()
        for count in KILLED_AFTER:
            _go_on(Path(folder, str(count)), makers, expected, objectives)


def resumed_objective(space: SearchSpace, points: Tensor, shift: float = 0.0) -> Tensor:
    """A bowl, without conditions with a valley across the parameters: all that a strategy remembers matters (n)."""
    if space.points.is_conditional:
        return toy_objective(space, points, shift)
    offset = (points - 0.5 * space.points.bounds[1].floor()) / space.points.bounds[1].clamp(min=1) - shift
    across = offset.cumsum(-1)[:, 1:].square().sum(-1)
    return toy_objective(space, points, shift) + STEEP * across


def know_toys(study: Study, objectives: int = 1) -> None:
    """Adds results that let all strategies propose: rows all over the space, and rows that refine the best of them."""
    space, stream = study.space, torch.Generator().manual_seed(3)
    points = space.points.sample(SPREAD, stream)
    best = points[resumed_objective(space, points).argmin()]
    ordered = torch.tensor([each.is_ordered for each in space.parameters.values()])
    middle = torch.where(ordered, 0.5 * space.points.bounds[1].floor(), best)
    moved = middle + 1e-3 * torch.rand(NEAR, len(space), dtype=best.dtype, generator=stream)
    moved = space.points.snap(torch.where(space.points.active(middle[None]), moved, 0.0))
    points = torch.cat([points, moved])
    configurations = space.decode(points)
    told = {name: [each.get(name) for each in configurations] for name in space.names}
    values = torch.stack([resumed_objective(space, points, 0.2 * k) for k in range(objectives)], -1)
    study.add(told, values[:, 0].tolist() if objectives == 1 else values.tolist())


def _go_on(
    killed: Path, makers: Mapping[str, Callable[[], Any] | None], expected: Sequence[Trial], objectives: int
) -> None:
    """Compares what a run that was killed proposes with the trials of the uninterrupted one."""
    study = Study.load(killed / "run.jsonl", **_made(makers))
    known = len(study.trials)
    same = [trial.params for trial in study.trials] == [trial.params for trial in expected[:known]]
    require(same, "a loaded study must have the trials of the one that was killed, but has others")
    (pending,) = study.pending
    _tell(study, pending, objectives)
    for step, trial in enumerate(expected[known : known + AFTER], 1):
        (found,) = study.ask(1)
        require(
            found.params == trial.params,
            f"a resumed run must go on as the uninterrupted one, but proposal {step} after the kill is {found.params} "
            f"instead of {trial.params}: is all that the part remembers in its state_dict?",
        )
        _tell(study, found, objectives)
    study.close()


def _tell(study: Study, trial: Trial, objectives: int) -> None:
    point = study.space.encode([trial.params])
    study.tell(trial, [float(resumed_objective(study.space, point, 0.2 * k)) for k in range(objectives)])


def _made(makers: Mapping[str, Callable[[], Any] | None]) -> dict[str, Any]:
    return {name: make() for name, make in makers.items() if make is not None}
