"""`Asker`: the next trials, whether they are queued, designed or proposed; a failed `ask` changes nothing."""

from copy import deepcopy

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from deepbore.loop.engine import Engine
from deepbore.loop.lightning import new_trainer, run_and_then


class Asker:
    """Finds and reserves trials for somebody who evaluates them elsewhere.

    Args:
        engine: the steps of the run.
        device: where the classifier is trained.
    """

    def __init__(self, engine: Engine, device: torch.device):
        self.engine, self.state, self.device = engine, engine.state, device
        self._trainer: Trainer | None = None

    def ask(self, q: int) -> list[int]:
        """The rows of q >= 1 trials, reserved: first those of an earlier call that has failed, then queued ones.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        state = self.state
        state.unclaimed = self.engine.still_pending(state.unclaimed)  # they are in `Study.pending`, and can be told
        # before anything is reserved, so that no trial is left pending that nobody was given
        self.engine.require_room(q - len(state.unclaimed))
        for reserve in (self.engine.reserve_queued, self.engine.reserve_promoted, self._reserve_new):
            n = len(state.observations)
            try:
                reserve(max(0, q - len(state.unclaimed)))
            finally:  # whatever interrupts
                state.unclaimed += range(n, len(state.observations))
        rows, state.unclaimed = state.unclaimed[:q], state.unclaimed[q:]
        return rows

    def _reserve_new(self, q: int) -> None:
        """Reserves q new points; if that fails the state is as it was, but for trials that are in the journal."""
        state, n = self.state, len(self.state.observations)
        if not q:
            return
        if not state.n_missing:
            state.bind()  # before the copy: a classifier can't be unbound
        before = deepcopy(state.state_dict())
        try:
            self.engine.reserve(self._points(q))
        except BaseException:
            if len(state.observations) == n:
                state.load_state_dict(before)
            raise

    def _points(self, q: int) -> Tensor:
        state = self.state
        if state.n_missing:
            return self.engine.design(q)
        epochs, state.rehearsals = 1 + state.rehearsals, 0
        if all(model.closed_form for model in state.strategy.models):
            return self._points_without_a_trainer(q, epochs)
        self._trainer, trainer = None, self._trainer or new_trainer(self.device)
        points = run_and_then(trainer, state.module, state.data, epochs, lambda: self.engine.propose(q).points)
        self._trainer = trainer  # a trainer that was interrupted is not used again
        return points

    def _points_without_a_trainer(self, q: int, epochs: int) -> Tensor:
        """The next q points by models that are fitted in closed form."""
        state = self.state
        state.observations.to(self.device)
        for _ in range(epochs):
            batch = state.data.batch()
            for model in state.strategy.models:
                model.to(self.device).learned(batch)
        return self.engine.propose(q).points
