"""`Suggester`: ask and tell in a program that runs on several ranks."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from deepbore.compute.devices import Device
from deepbore.compute.distributed import Ranks
from deepbore.data.budget import Budget
from deepbore.data.observations import Direction, Trial
from deepbore.errors import ValueTypeError
from deepbore.space import SearchSpace
from deepbore.study.study import Study
from deepbore.study.view import Parts


class Suggester:
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
        study: the study behind it, to look at; drive it by the methods here only. `study.recommended` is the same on
            every rank, and any may ask for it alone.

    Example::

        # torchrun --nproc-per-node 8 tune.py
        torch.distributed.init_process_group("gloo")
        suggester = deepbore.Suggester(space, journal="run.jsonl")
        for _ in range(20):
            trials = suggester.ask(16)
            suggester.tell({trial.id: train(**trial.params) for trial in suggester.share(trials)})
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
        self.ranks = Ranks.found()
        kept = journal if self.ranks.is_first else None
        study = Study(
            space,
            direction=direction,
            directions=directions,
            budget=budget,
            seed=seed,
            journal=kept,
            device=device,
            **parts,
        )
        self._drive(study)

    @classmethod
    def load(
        cls,
        journal: str | os.PathLike[str],
        *,
        space: SearchSpace | None = None,
        device: Device = "cpu",
        **parts: Unpack[Parts],
    ) -> "Suggester":
        """Goes on with the run that a journal keeps, on as many ranks as it had to propose the same.

        Args:
            journal: the file, which every rank must be able to read.
            space: as in `Study.load`.
            device: as in `Study`.
            parts: as in `Study.load`.

        Raises:
            JournalError: for a missing, damaged or contradictory journal.
        """
        suggester = cls.__new__(cls)
        suggester.ranks = Ranks.found()
        study = Study.load(journal, space=space, device=device, **parts)
        suggester.ranks.gather(None)  # nobody writes before all have read
        suggester._drive(study)
        return suggester

    def _drive(self, study: Study) -> None:
        self.study = study
        study.share(self.ranks)

    def ask(self, q: int = 1) -> list[Trial]:
        """The next q trials, the same on every rank; see `Study.ask`.

        Raises:
            RankError: if a rank has died.
        """
        return self.study.ask(q)

    def share(self, trials: Sequence[Trial]) -> list[Trial]:
        """The trials that fall to this rank: every one to exactly one."""
        return list(trials[self.ranks.rank :: self.ranks.world])

    def tell(self, values: Mapping[int, Any]) -> None:
        """Gives trials their outcomes: every rank brings its own, and learns those of all.

        Args:
            values: trial's id -> objective value, values or `Outcome`; None, NaN and infinite ones are failures. May be
                empty.

        Raises:
            TrialError: for an unknown trial, or one told before.
            ValueTypeError: for a value that is no number.
            RankError: if a rank has died.
        """
        if not isinstance(values, Mapping):
            raise ValueTypeError(f"values must be a dict, as {{trial.id: 0.5}}, but got {values!r:.100}.")
        outcomes = [pair for part in self.ranks.gather(dict(values)) for pair in part.items()]
        for trial, value in sorted(outcomes, key=lambda pair: pair[0]):
            self.study.tell(trial, value, failed=value is None)
