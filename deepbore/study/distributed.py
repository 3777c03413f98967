"""`DistributedStudy`: ask and tell in a program that runs on several ranks."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Self, Unpack

from deepbore.component import alike
from deepbore.compute.devices import Device
from deepbore.compute.distributed import Ranks
from deepbore.data.observations import Direction, Trial
from deepbore.data.outcome import Outcome, check_counts, width_of
from deepbore.data.trial import Budget
from deepbore.errors import SettingError, TrialError, ValueTypeError
from deepbore.loop.recipe import shown
from deepbore.space import SearchSpace
from deepbore.study.options import Parts, check_parts
from deepbore.study.study import Study, share
from deepbore.worker.reporting import Reporting


class DistributedStudy:
    """A study that all ranks of a distributed program drive together, each with its share of the work.

    Every rank makes one, with the same settings, after `torch.distributed.init_process_group` or Fabric's `launch`,
    and calls the same methods in the same order. All ranks then have the same trials and the same observations; each
    searches its share of the candidates, and the first keeps the journal. The same seed and number of ranks give the
    same run. In a program of one process it is a plain study. Further settings are the parts of a run, as in `Study`.

    Args:
        space: the search space.
        direction: as all that follow, see `Study`.
        directions: of several objectives.
        budget: for cheap fidelities; a promoted trial may fall to another rank than the one that it continues, so a
            checkpoint must lie where all ranks can read it.
        seed: of everything random.
        journal: file that keeps every event.
        device: where points, classifier and search of this rank live.

    Attributes:
        study: the study of this rank, to read; ask and tell by the methods here only. `study.recommended` is the same
            on every rank, and each may ask for it alone.

    Example::

        # torchrun --nproc-per-node 8 tune.py
        torch.distributed.init_process_group("gloo")
        study = deepbore.DistributedStudy(space, journal="run.jsonl")
        for _ in range(20):
            trials = study.ask(16)
            study.tell({trial.id: train(**trial.params) for trial in study.share(trials)})
    """

    def __init__(
        self,
        space: SearchSpace,
        *,
        direction: Direction | None = None,
        directions: Sequence[Direction] | None = None,
        budget: Budget | None = None,
        seed: int = 0,
        journal: str | os.PathLike[str] | None = None,
        device: Device = "cpu",
        **parts: Unpack[Parts],
    ):
        check_parts(parts, "a DistributedStudy does not take {unknown}")
        self.ranks = Ranks.found()
        of_settings = partial(
            Study, space, direction=direction, directions=directions, budget=budget, seed=seed, device=device, **parts
        )
        self._agree(of_settings().state.header())  # before anything is written
        self._drive(of_settings(journal=journal if self.ranks.is_first else None))

    @classmethod
    def load(
        cls,
        journal: str | os.PathLike[str],
        *,
        space: SearchSpace | None = None,
        device: Device = "cpu",
        **parts: Unpack[Parts],
    ) -> "DistributedStudy":
        """The run that a journal keeps, to continue; on as many ranks as it had it proposes the same.

        Args:
            journal: the file, which every rank must be able to read.
            space: as in `Study.load`.
            device: as in `Study`.
            parts: as in `Study.load`.

        Raises:
            JournalError: for a missing, damaged or contradictory journal.
        """
        together = cls.__new__(cls)
        together.ranks = Ranks.found()
        together._drive(Study.load(journal, space=space, device=device, **parts))
        together._agree(together.study.state.header())  # no rank writes before all have read, the snapshot included
        return together

    def __enter__(self) -> Self:
        """The study, whose journal is closed at the end on every rank: `with DistributedStudy(space) as study`."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the journal to another writer."""
        self.study.close()

    def _drive(self, study: Study) -> None:
        self.study = study
        self._reporting: dict[int, Reporting] = {}  # what the trials of this rank report, until they are told
        share(study, self.ranks)

    def _agree(self, settings: Mapping[str, Any]) -> None:
        """Raises SettingError, on every rank, unless all have the same settings."""
        single = {**settings, **settings.get("recipe", {})}  # each part by itself, so that the error is about one
        single.pop("recipe", None)
        first, *others = self.ranks.gather(single)
        for rank, other in enumerate(others, 1):
            if different := [name for name in other if not _same(other[name], first.get(name))]:
                pairs = [f"{name} is {shown(other[name])}, not {shown(first.get(name))}" for name in different]
                raise SettingError(f"ranks need the same settings, but on rank {rank}, unlike 0, {'; '.join(pairs)}.")

    def ask(self, q: int = 1) -> list[Trial]:
        """The next q trials, the same on every rank; see `Study.ask`. What they report the other ranks learn by `tell`.

        Raises:
            SettingError: unless all ranks ask for as many.
            RankError: if a rank has died.
        """
        self._agree({"q": q})
        judge, trials = self.study.state.judge, self.study.ask(q)
        reporting = {trial.id: Reporting(judge) for trial in trials}
        self._reporting |= reporting
        return [replace(trial, reporter=reporting[trial.id]) for trial in trials]

    def share(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials of this rank: each trial belongs to exactly one."""
        return list(trials[self.ranks.rank :: self.ranks.world])

    def tell(self, values: Mapping[int, Any]) -> None:
        """Gives trials their outcomes: every rank tells its own, and learns those of all ranks.

        All are checked before any is told: where one is refused, every rank gets the error, and none is told.

        Args:
            values: trial's id -> objective value, values or `Outcome`; None, NaN and infinite ones are failures. May be
                empty.

        Raises:
            TrialError: for an unknown trial, one told before, or one that several ranks tell.
            ValueTypeError: for a value that is no number.
            RankError: if a rank has died.
        """
        outcomes: dict[int, Outcome] = {}
        for part, curves in self.ranks.gather((values, self._curves(values))):
            if not isinstance(part, Mapping):
                raise ValueTypeError(f"values must be a dict, as {{trial.id: 0.5}}, but got {part!r:.100}.")
            for trial, value in part.items():
                with naming(trial):
                    row, outcome = self.study.observations.tellable(trial, value, failed=value is None)
                if row in outcomes:
                    raise TrialError(f"a trial is told once, but several ranks tell {row}. Tell what `share` gave.")
                curve = curves.get(row, {})
                outcomes[row] = replace(outcome, reports=curve) if curve and not outcome.reports else outcome
        self._check_together(outcomes)
        for row in sorted(outcomes):
            self.study.tell(row, outcomes[row])
            self._reporting.pop(row, None)

    def _curves(self, values: Any) -> dict[int, dict[float, float]]:
        """What the trials that this rank tells have reported, by id."""
        told = values if isinstance(values, Mapping) else {}
        return {row: each.reports for row, each in self._reporting.items() if row in told and each.reports}

    def withdraw(self, trials: Trial | int | Iterable[Trial | int], reason: str | None = None) -> None:
        """Takes trials back: every rank withdraws the same ones. See `Study.withdraw`.

        Raises:
            SettingError: unless all ranks withdraw the same.
            TrialError, ValueTypeError: as of `Study.withdraw`.
            RankError: if a rank has died.
        """
        several = [trials] if isinstance(trials, Trial) or not isinstance(trials, Iterable) else list(trials)
        self._agree({"withdrawn": [each.id if isinstance(each, Trial) else each for each in several], "reason": reason})
        self.study.withdraw(several, reason)

    def correct(self, trial: Trial | int, value: Any = None, **told: Any) -> None:
        """Replaces the outcome of a trial: every rank gives the same. See `Study.correct`.

        Raises:
            SettingError: unless all ranks give the same.
            TrialError, ValueTypeError: as of `Study.correct`.
            RankError: if a rank has died.
        """
        self._agree({"corrected": trial.id if isinstance(trial, Trial) else trial, "value": repr(value), **told})
        self.study.correct(trial, value, **told)

    def _check_together(self, outcomes: Mapping[int, Outcome]) -> None:
        """Raises ValueTypeError unless all have as many constraints as the first, in the order of telling, with any."""
        observations = self.study.observations
        width = observations.constraints.shape[1]
        for row in sorted(outcomes):
            with naming(row):
                check_counts(outcomes[row], observations.k, width)
            width = width or width_of(outcomes[row])


def _same(one: Any, other: Any) -> bool:
    """Whether settings of two ranks are equal: 2 and 2.0 are, and a function at another address in memory."""
    return bool(one == other) or alike(one, other)


@contextmanager
def naming(trial: int) -> Iterator[None]:
    """Within, a ValueTypeError names the trial."""
    try:
        yield
    except ValueTypeError as error:
        raise ValueTypeError(f"trial {trial}: {error}") from None
