"""The steps of a run: design, propose, reserve, record; and `TrialAllocator`, which finds the next trials."""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import TypeVar

import torch
from lightning.pytorch import Trainer
from torch import Tensor

from deepbore.candidates import distinct
from deepbore.candidates.selection import fresh_rows, require_room
from deepbore.compute.distributed import Ranks
from deepbore.compute.threads import one_thread
from deepbore.data.observations import Trial
from deepbore.data.outcome import Outcome, Status, WrongReturn
from deepbore.errors import ValueTypeError
from deepbore.loop.lightning import new_trainer, run_and_then
from deepbore.loop.promotions import Promotion, Promotions
from deepbore.loop.state import RunState, save
from deepbore.strategies import Proposal, View

log = logging.getLogger(__name__)
T = TypeVar("T")


class Engine:
    """The steps of an iteration. It knows nothing of Trainers: between two proposals somebody trains the classifier.

    Under several ranks all hold the same state and take the same steps; each searches its share of the candidates, and
    the first keeps the journal. The same seed and number of ranks give the same run.

    Args:
        state: of the run.
        ranks: the processes that take the steps together.
    """

    def __init__(self, state: RunState, ranks: Ranks | None = None):
        self.state, self.ranks = state, ranks or Ranks()
        self._found: tuple[tuple[object, ...], Promotions] | None = None  # at so many trials, and pending ones
        if not self.ranks.is_first:
            state.observations.journal = None

    # --- what to try next --------------------------------------------------------------------------------------------

    @property
    def n_left(self) -> float:
        """How many trials could be asked for now: those of the queue, promotions, and new configurations."""
        return self._n_known + max(0, self.state.observations.n_left - self._n_new_in_queue)

    def require_room(self, q: int) -> None:
        """Raises SpaceExhausted if a finite space has not enough configurations left for q trials."""
        if q > self._n_known:
            require_room(self.state.observations, q - self._n_known + self._n_new_in_queue)

    @property
    def _n_known(self) -> int:
        """How many trials need no new configuration: they are enqueued, or promotions."""
        return len(self.state.queue) + max(len(self.state.promised), len(self._promotions))

    @property
    def _promotions(self) -> Promotions:
        """Those of now: they change where a trial is asked for, told or added, or parameters are fixed."""
        observations = self.state.observations
        now = len(observations), len(observations.pending_rows), observations.space.fixed
        if self._found is None or self._found[0] != now:
            self._found = now, Promotions(observations)
        return self._found[1]

    @property
    def _n_new_in_queue(self) -> int:
        """How many of the configurations that a finite space has left stand in the queue."""
        space, queue = self.state.space, self.state.queue
        if not queue or math.isinf(space.cardinality):
            return 0
        points = torch.stack(queue)
        points = points[space.permitted(points) & torch.tensor(self.state.observations.unseen(points))]
        return len(set(space.identify(points)))

    def design(self, q: int) -> Tensor:
        """The next q new points of the run's Sobol sequence (q x d).

        In a wide space, of ten real parameters or more, the first point is the middle of the ranges: a random point is,
        squared, d/6 of a range from a place that may be anywhere, the middle d/12, and few points are as good as one.
        Where there are earlier tasks every other one, the first among them, is one of which they forecast the best.
        """
        state, own = self.state, self.state.own
        if not state.earlier:
            sobol = state.space.sobol(4 * q, state.seed, skip=state.n_begun)
            if not state.n_begun and state.space.is_high_dimensional:
                sobol[:1] = state.space.in_the_middle(sobol[:1])
            return distinct(sobol.to(own.points.device), own, q, state.generator)
        with one_thread():
            promising = state.earlier.promising(q)
            promising = promising[fresh_rows(promising, own, q)]
        sobol = state.space.sobol(4 * q, state.seed, skip=len(own) // 2).to(own.points.device)
        return distinct(taking_turns(promising, sobol, len(own) % 2), own, q, state.generator)

    def propose(self, q: int) -> Proposal:
        """q distinct new points by the strategy (q x d), or more of the design if it is not ready.

        Black-box constraints are learned first, from the labels that the models have learned from. While nothing is
        feasible they are all that counts, whether the strategy is ready or not.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
            RankError: if a rank has died.
        """
        state, strategy = self.state, self.state.strategy
        with one_thread():
            learned = self._learn_feasibility()
            view = self._view()
            ready = view.agreed(lambda: strategy.fit(view), "the strategy could not learn, exploring instead: %s")
            if learned and (ready or state.feasibility.is_alone):
                return strategy.propose(view, q)
        return Proposal(self.design(q))

    def _view(self) -> View:
        """What the strategy may look at now."""
        state = self.state
        return View(
            state.own,
            state.data.latest,
            state.recipe.labels,
            state.generator,
            self.ranks,
            feasibility=state.feasibility if state.feasibility.is_needed else None,
            has_earlier_tasks=bool(state.earlier),
        )

    def _learn_feasibility(self) -> bool:
        """Learns the constraints of the latest labels, if any; whether that was possible on all ranks."""
        state, labelled = self.state, self.state.data.latest
        if labelled is None or labelled.constraints is None:
            return True

        def learn() -> bool:
            state.feasibility.fit(labelled, state.space.without_fixed, state.generator)
            return True

        return self._view().agreed(learn, "the constraints could not be learned, exploring instead: %s")

    def expected_labels(self, points: Tensor) -> Tensor | None:
        """The label that the classifier forecasts of each of q points (q); None while it is not ready.

        None, too, where there are budgets: what it forecasts is at the highest, and a trial's first label is not.
        """
        classifier = self.state.classifier
        if not classifier.ready or self.state.observations.budget is not None:
            return None
        with torch.no_grad(), one_thread():
            return classifier.probability(points.to(classifier.device))

    # --- bookkeeping -------------------------------------------------------------------------------------------------

    def reserve(self, points: Tensor) -> list[int]:
        """Makes points (q x d) pending trials and returns their rows.

        The snapshot comes first, and knows the points: wherever the process dies, a run that is resumed asks for those
        that the journal does not have.
        """
        state, journal = self.state, self.state.observations.journal
        if journal is not None:
            journal.open()
            save(state, points, journal)
        return state.observations.reserve(points)

    def reserve_queued(self, q: int) -> list[int]:
        """Makes up to q points of the queue pending trials and returns their rows."""
        self.state.observations.complete_pending_write()  # what was enqueued last may still have to get there
        with self._taken(self.state.queue, q) as points:
            return self.reserve(torch.stack(points)) if points else []

    def reserve_promoted(self, q: int, of: int | None = None) -> list[int]:
        """Lets up to q trials go on with more to spend (see `deepbore.loop.promotions`), and returns their new rows.

        Args:
            q: how many.
            of: the row of the only trial that may; None for any.
        """
        q = max(0, q)
        if self.state.promised and of is None:  # alone: what else is promoted may hang on what comes of them
            with self._taken(self.state.promised, q) as promised:
                return self._reserve_again([Promotion(*each) for each in promised])
        return self._reserve_again(self._promotions.first(q, of))

    @contextmanager
    def _taken(self, waiting: list[T], q: int) -> Iterator[list[T]]:
        """Up to q of what waits, taken out at the front, and put back if they were not reserved within."""
        n, first = len(self.state.observations), waiting[:q]
        del waiting[:q]
        try:
            yield first
        except BaseException:
            if len(self.state.observations) == n:
                waiting[:0] = first
            raise

    def _reserve_again(self, chosen: list[Promotion]) -> list[int]:
        """Makes pending trials of those that go on; the snapshot comes first, as in `reserve`."""
        observations, journal = self.state.observations, self.state.observations.journal
        if not chosen:
            return []
        rows = [each.row for each in chosen]
        points = observations.points[torch.tensor(rows, device=observations.points.device)]
        if journal is not None:
            journal.open()
            save(self.state, points, journal, promoted=chosen)
        return observations.reserve(points, [each.budget for each in chosen], resume_from=rows)

    def record(self, trial: Trial, outcome: Outcome) -> Outcome:
        """Gives a pending trial its outcome: a failure, where it has another number of values than the run.

        Returns:
            What has been recorded; where the trial was told by somebody else meanwhile, that.
        """
        known = self.state.observations.trial(trial.id)
        if known.status is not Status.PENDING:
            return _outcome_of(known)
        try:
            self.state.observations.tell(trial.id, outcome)
        except ValueTypeError as error:
            outcome = WrongReturn.failure(str(error))
            self.state.observations.tell(trial.id, outcome)
        return outcome

    def still_pending(self, rows: list[int]) -> list[int]:
        """Those of the rows that have no outcome yet."""
        return [row for row in rows if self.state.observations.status[row] == Status.PENDING]


def _outcome_of(trial: Trial) -> Outcome:
    """What a trial was told."""
    if trial.status is Status.FAILED:
        return Outcome.failure(trial.reason)
    return Outcome(trial.values, constraints=trial.constraints or ())


def taking_turns(one: Tensor, other: Tensor, begun: int) -> Tensor:
    """Rows of two tensors in turns, the other's first where `begun` is 1; then the rest of the longer one."""
    first, second = (other, one) if begun else (one, other)
    both = min(len(first), len(second))
    turns = torch.stack([first[:both], second[:both]], dim=1).flatten(0, 1)
    return torch.cat([turns, first[both:], second[both:]])


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
