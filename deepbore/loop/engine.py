"""`Engine`: the steps of a run (design, propose, reserve, record); `Iteration`: one iteration, whoever drives it.

`TrialAllocator` drives it for ask and tell, `deepbore.loop.runner.PlainLoop` and a Trainer
(`deepbore.loop.controller.LoopController`) for whole runs.
"""

import logging
import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from deepbore.candidates import select_new
from deepbore.candidates.selection import first_new_rows, require_room
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.expense import Expense, share_left
from deepbore.classifiers.feasibility import Feasibility
from deepbore.compute.devices import one_thread
from deepbore.compute.distributed import Ranks
from deepbore.compute.torch_state import clean_torch_state
from deepbore.data.observations import Observations, Trial
from deepbore.data.outcome import Outcome, Status, WrongReturn
from deepbore.errors import SettingError, SpaceExhausted, ValueTypeError
from deepbore.evaluators.base import SuspiciousValue, warn
from deepbore.labels import LabelledObservations
from deepbore.loop.promotions import Promotion, Promotions
from deepbore.loop.state import RunState, save
from deepbore.space.encoding import OPEN
from deepbore.strategies import Proposal, Strategy, View
from deepbore.strategies.confirming import confirming_points, steps_left

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

log = logging.getLogger(__name__)
T = TypeVar("T")
NOTE = "suspicious"  # the attribute of a trial that says why
TOO_GOOD = "better than the trials around it and all others suggest"
WAY_OUT = (
    "Until others confirm it, it counts as a failed trial; it stays in the results, and `study.suspicious` lists it. "
    "If it is wrong, `study.withdraw({})` takes it back."
)


class Engine:
    """The steps of an iteration, as functions of the state of a run: design, propose, reserve, record.

    The caller trains the models of the strategy between two proposals.

    All ranks have the same state and make the same steps; each searches its share of the candidates, and the first rank
    writes the journal. The same seed and number of ranks give the same run.

    Args:
        state: the state of the run.
        ranks: the processes of the run.
    """

    def __init__(self, state: RunState, ranks: Ranks | None = None):
        self.state, self.ranks = state, ranks or Ranks()
        self.time_left: Callable[[], float] | None = None  # the share of a run's time, where time is what ends it
        self._found: tuple[tuple[object, ...], Promotions] | None = None  # cached, with its key
        if not self.ranks.is_first:
            state.observations.journal = None

    # --- what to evaluate next ---------------------------------------------------------------------------------------

    def design(self, q: int) -> Tensor:
        """The next q new points of the run's Sobol sequence (q x d), drawn from what is believed of the best point.

        In ten or more real parameters the first point is the centre of the ranges: the expected squared distance to a
        uniform target is d/6 from a random point, and d/12 from the centre. With earlier tasks every other point,
        starting with the first, is one that their models predict to be best. Strategies without models propose it.
        """
        if not self.state.strategy.uses_models:
            return self.state.strategy.propose(self.view(), q).points
        state, own = self.state, self.state.own
        if not state.has_earlier_tasks:
            sobol = state.space.points.sobol(4 * q, state.seed, skip=state.n_designed, prior=True)
            if not state.n_designed and state.space.points.is_high_dimensional and state.space.points.is_continuous:
                sobol[:1] = state.space.points.in_the_middle(sobol[:1])
            return select_new(sobol.to(own.points.device), own, q, state.generator)
        with one_thread():
            promising = state.earlier.promising(q)
            promising = promising[first_new_rows(promising, own, q)]
        sobol = state.space.points.sobol(4 * q, state.seed, skip=state.n_designed // 2, prior=True)
        sobol = sobol.to(own.points.device)
        return select_new(alternating(promising, sobol, state.n_designed % 2), own, q, state.generator)

    def propose(self, q: int) -> Proposal:
        """q distinct new points by the strategy (q x d), or points of the design while it is not ready.

        With black-box constraints but no feasible trial yet, the strategy proposes even if it is not ready: only the
        model of the constraints is used. The first points are beside a value that is suspiciously good, if there is one
        that no trial beside it has confirmed or refuted.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
            RankError: if a rank has died.
        """
        state, strategy = self.state, self.state.strategy
        with one_thread():
            view = self.view()
            constraints_known = self._learn_constraints(view)
            view = replace(view, feasibility=self._feasibility, expense=self._expense(view))
            ready = view.agreed(lambda: strategy.fit(view), "the strategy could not be trained, exploring instead: %s")
            seeks_feasible = view.feasibility is not None and view.feasibility.none_feasible
            if constraints_known and (ready or seeks_feasible):
                name_suspicious(state.observations, strategy, aloud=self.ranks.is_first)
                beside = confirming_points(view, state.observations, strategy, q)
                if len(beside) == q:
                    return Proposal(beside)
                found = strategy.propose(view.beside(beside) if len(beside) else view, q - len(beside))
                return Proposal(torch.cat([beside, found.points]), found.model) if len(beside) else found
        return Proposal(self.design(q))

    def check_ranks(self) -> None:
        """Raises SettingError if ranks know of different outcomes, as after a withdrawal on one of them alone."""
        told = self.state.observations
        known = self.ranks.gather(
            (
                len(told),
                told.ledger.statistics.n_complete,
                told.ledger.statistics.n_failed,
                told.ledger.statistics.n_withdrawn,
                told.ledger.revision,
            )
        )
        if len(set(known)) > 1:
            words = ", ".join(f"rank {rank}: {each[0]} trials, {each[3]} withdrawn" for rank, each in enumerate(known))
            raise SettingError(
                f"all ranks tell, add, correct and withdraw the same, but they differ ({words}). Do on every rank what "
                "a callback does, or nothing."
            )

    def view(self) -> View:
        """The current data for the strategy."""
        state = self.state
        return View(
            state.own,
            state.data.latest,
            state.recipe.labels,
            state.generator,
            self.ranks,
            has_earlier_tasks=state.has_earlier_tasks,
            seed=state.seed,
        )

    def _learn_constraints(self, view: View) -> bool:
        """Fits the models of the black-box constraints, if any; whether this succeeded on all ranks."""
        state, batch = self.state, view.batch
        if batch is None or batch.constraints is None:
            return True

        def learn() -> bool:
            state.feasibility.fit(batch, state.space.points.without_fixed, state.generator)
            return True

        return view.agreed(learn, "the constraints could not be learned, exploring instead: %s")

    def _expense(self, view: View) -> Expense | None:
        """What evaluations are expected to cost; None where costs are not limited, or can't be learned."""
        state, observations, found = self.state, self.state.observations, []
        if not self.counts_costs or observations.budget is not None:
            return None
        exponent = self.ranks.gather(self._exponent)[0]  # clocks differ

        def learn() -> bool:
            found.append(Expense.learned(observations, exponent, state.generator))
            return True

        agreed = view.agreed(learn, "costs could not be learned, so that gains alone count: %s")
        return found[0] if agreed else None

    @property
    def _exponent(self) -> float:
        """alpha of `Expense`: the share of the limit that is left after the design."""
        if self.time_left is not None:
            return self.time_left()
        assert self.state.cost_limit is not None
        return share_left(
            self.state.observations.ledger.notes.costs, self.state.cost_limit, self.state.recipe.n_initial
        )

    @property
    def is_spent(self) -> bool:
        """Whether trials have cost as much as they may."""
        limit = self.state.cost_limit
        return limit is not None and math.fsum(self.state.observations.ledger.notes.costs.values()) >= limit

    @property
    def counts_costs(self) -> bool:
        """Whether a trial whose outcome names no cost has cost the seconds that it took."""
        return self.time_left is not None or self.state.cost_limit is not None

    @property
    def _feasibility(self) -> Feasibility | None:
        """The model of the black-box constraints; None if no trial has violated any."""
        has_constraints = bool(self.state.observations.constraints.shape[1])
        return self.state.feasibility if has_constraints and self.state.feasibility.is_needed else None

    def expected_labels(self, points: Tensor) -> Tensor | None:
        """The labels predicted for q points (q); None while the classifier is not ready.

        None with budgets, too: predictions are for the highest budget, but trials start at lower ones.
        """
        classifier = self.state.classifier
        if not classifier.ready or self.state.observations.budget is not None:
            return None
        with torch.no_grad(), one_thread():
            return classifier.probability(points.to(classifier.device))

    # --- remaining trials --------------------------------------------------------------------------------------------

    @property
    def n_left(self) -> float:
        """The number of trials that can be asked for now: queued ones, promotions, and new configurations."""
        left = min(self.state.observations.columns.n_left, self.state.strategy.n_left(self.state.own))
        return self._n_known + max(0, left - self._n_new_in_queue)

    def require_room(self, q: int) -> None:
        """Raises SpaceExhausted if a finite space has too few configurations for q trials."""
        if q > self._n_known:
            require_room(self.state.observations, q - self._n_known + self._n_new_in_queue)

    @property
    def _n_known(self) -> int:
        """The number of trials that need no new configuration: queued ones and promotions."""
        if self.state.observations.budget is None:
            return len(self.state.queue)
        self._drop_withdrawn_promotions()
        return len(self.state.queue) + max(len(self.state.pending_promotions), len(self._promotions))

    @property
    def _promotions(self) -> Promotions:
        """The current promotions; cached until trials or fixed parameters change."""
        observations = self.state.observations
        now = (
            len(observations),
            len(observations.columns.pending_rows),
            observations.ledger.revision,
            observations.space.fixed,
        )
        if self._found is None or self._found[0] != now:
            self._found = now, Promotions(observations.believed)
        return self._found[1]

    def _drop_withdrawn_promotions(self) -> None:
        """Forgets promotions, lost in a crash, of trials that were withdrawn since."""
        waiting, status = self.state.pending_promotions, self.state.observations.status
        waiting[:] = [each for each in waiting if status[each[0]] != Status.WITHDRAWN]

    @property
    def _n_new_in_queue(self) -> int:
        """The number of new configurations in the queue, if the space is finite."""
        space, queue = self.state.space, self.state.queue
        if not queue or math.isinf(space.cardinality):
            return 0
        if not (whole := [each for each in queue if not is_open(each)]):
            return len(queue)
        points = torch.stack(whole)
        points = points[space.points.permitted(points) & torch.tensor(self.state.observations.columns.unseen(points))]
        return len(set(space.points.identify(points))) + len(queue) - len(whole)

    # --- reserving and recording -------------------------------------------------------------------------------------

    def reserve(self, points: Tensor, promoted: Sequence[Promotion] = (), **left: list[Any]) -> list[int]:
        """Makes points (q x d) pending trials and returns their rows.

        The snapshot, which contains the points, is written first: after a crash the resumed run asks for the points
        that are missing in the journal.

        Args:
            points: q x d.
            promoted: the promotions, if the points are promoted.
            left: attributes of the state from then on: a queue without these points. An interrupt leaves both or none.
        """
        state, journal = self.state, self.state.observations.journal
        if journal is not None:
            journal.open()
            save(state, points, journal, promoted=promoted, **left)
        return state.observations.reserve(
            points,
            [each.budget for each in promoted] or None,
            [each.row for each in promoted] or None,
            effect=lambda: vars(state).update(left),
        )

    def is_open(self, q: int) -> bool:
        """Whether one of the first q points of the queue is still to be completed."""
        return any(map(is_open, self.state.queue[:q]))

    def reserve_queued(self, q: int) -> list[int]:
        """Makes up to q points of the queue pending trials and returns their rows.

        What a point leaves open is proposed, beside what is fixed, when those before it are pending.
        """
        self.state.observations.write_ahead_log.complete_pending_write()  # of the latest enqueued point
        rows: list[int] = []
        while len(rows) < q and self.state.queue:
            queue = list(self.state.queue)
            if is_open(queue[0]):
                queue[0] = self._completed(queue[0])
            whole = next((place for place, point in enumerate(queue) if is_open(point)), len(queue))
            n = min(whole, q - len(rows))
            rows += self.reserve(torch.stack(queue[:n]), queue=queue[n:])
        return rows

    def _completed(self, point: Tensor) -> Tensor:
        """A point of the queue with a proposal for what it leaves open; a known one if all are known."""
        state, observations = self.state, self.state.observations
        space = observations.space.points.with_part(point)
        with observations.holding(space):
            try:
                found = self.design(1) if state.n_missing else self.propose(1).points
            except SpaceExhausted:
                found = space.points.sample(1, state.generator)
        return found[0].to(point.device)

    def reserve_promoted(self, q: int, of: int | None = None) -> list[int]:
        """Promotes up to q trials to a larger budget (see `deepbore.loop.promotions`), and returns their new rows.

        Args:
            q: the maximum number.
            of: the row of the only trial to promote; None for any.
        """
        q = max(0, q)
        if self.state.observations.budget is None:
            return []
        self._drop_withdrawn_promotions()
        waiting = self.state.pending_promotions
        if waiting and of is None:  # no others: these depend on the results
            return self._reserve_again([Promotion(*each) for each in waiting[:q]], pending_promotions=waiting[q:])
        return self._reserve_again(self._promotions.first(q, of))

    def _reserve_again(self, chosen: list[Promotion], **left: list[Any]) -> list[int]:
        """Makes promotions pending trials, as `reserve` does."""
        if not chosen:
            return []
        points = self.state.observations.points
        rows = torch.tensor([each.row for each in chosen], device=points.device)
        return self.reserve(points[rows], chosen, **left)

    def record(self, trial: Trial, outcome: Outcome) -> Outcome:
        """Records the outcome of a pending trial; a wrong number of values is recorded as a failure.

        Returns:
            The recorded outcome; the earlier one if the trial was told in the meantime. Of a trial that was withdrawn
            in the meantime nothing is recorded.
        """
        known = self.state.observations.trial(trial.id)
        if known.status is Status.WITHDRAWN:
            return outcome
        if known.status is not Status.PENDING:
            return _outcome_of(known)
        try:
            self.state.observations.tell(trial.id, outcome)
        except ValueTypeError as error:
            outcome = WrongReturn.failure(str(error))
            self.state.observations.tell(trial.id, outcome)
        return outcome

    def still_pending(self, rows: list[int]) -> list[int]:
        """The rows that have no outcome yet."""
        return [row for row in rows if self.state.observations.status[row] == Status.PENDING]


def is_open(point: Tensor) -> bool:
    """Whether a point of the queue (d) is still to be completed."""
    return bool((point == OPEN).any())


def _outcome_of(trial: Trial) -> Outcome:
    """The recorded outcome of a trial."""
    if trial.status is Status.FAILED:
        return Outcome.failure(trial.reason)
    if trial.status is Status.PRUNED:
        return Outcome.pruned(trial.reason)
    return Outcome(trial.values, constraints=trial.constraints or ())


def alternating(one: Tensor, other: Tensor, begun: int) -> Tensor:
    """Alternating rows of two tensors, starting with `other` if `begun` is 1; then the rest of the longer one."""
    first, second = (other, one) if begun else (one, other)
    both = min(len(first), len(second))
    turns = torch.stack([first[:both], second[:both]], dim=1).flatten(0, 1)
    return torch.cat([turns, first[both:], second[both:]])


# --- warnings of suspicious values ----------------------------------------------------------------------------------


def name_suspicious(observations: Observations, strategy: Strategy, aloud: bool = True) -> None:
    """Warns of each value that is too good once, and notes it in the trial, when those beside it have been asked for.

    Of a trial that the strategy would not propose, as by constraints of its search, it warns at once.

    Values that are too bad are not named: they mislead nobody, and some of an ordinary run are for a while.

    Args:
        observations: all trials.
        strategy: of the run.
        aloud: whether to warn: on one of several ranks.
    """
    for row in observations.suspicion.too_good:
        asks = bool(strategy.accepts(observations.space, observations.points[[row]]))
        if (asks and steps_left(observations, row)) or NOTE in observations.attributes_of(row):
            continue
        observations.annotate(row, {NOTE: TOO_GOOD})
        if aloud:
            values = ", ".join(f"{value:.6g}" for value in observations.columns.user_values[row].tolist())
            warn(f"the value of trial {row}, {values}, is {TOO_GOOD}. {WAY_OUT.format(row)}", SuspiciousValue)


# --- one iteration, whoever drives it --------------------------------------------------------------------------------


def learn(models: Sequence[Classifier], data: LabelledObservations, epochs: int, device: torch.device) -> None:
    """Trains models for some epochs as in a run, without proposals; Lightning is imported for gradient steps alone.

    Args:
        models: one or more.
        data: what they learn.
        epochs: so many times as in an iteration.
        device: where they learn.
    """
    if not all(model.closed_form for model in models):
        from deepbore.loop.lightning import module_of, new_trainer, run  # takes seconds

        run(new_trainer(device), module_of(models), data, epochs)
        return
    data.observations.to(device)
    for model in models:
        if model.space is None:
            model.bind_to(data)
        model.to(device)
    with clean_torch_state():
        for _ in range(epochs):
            batch = data.batch()
            for model in models:
                model.learned(batch, measure=False)


class Iteration:
    """One iteration of a run: remember, learn, reserve. What reserves no trial has changed nothing.

    | driver | who learns | how many trials |
    |---|---|---|
    | `TrialAllocator`, of `Study.ask` | `learn`, or a Trainer, before a proposal | as many as are asked for |
    | `PlainLoop`, where all models learn in closed form | `learn`, first of all | as many as workers are free |
    | `LoopController`, of other models, or with a Trainer of the user's | the Trainer, in its epoch | the same |

    Args:
        state: of the run.
        device: where models in closed form learn.
    """

    def __init__(self, state: RunState, device: torch.device):
        self.state, self.device = state, device
        self._before: dict[str, Any] | None = None  # the state, until something is reserved

    @property
    def is_plain(self) -> bool:
        """Whether all models learn in closed form, so that no Trainer is needed."""
        return all(model.closed_form for model in self.state.models)

    def remember(self) -> None:
        """Keeps the state, before the models learn."""
        if not self.state.n_missing:
            self.state.bind()  # before the copy, since binding cannot be undone
        self._before = deepcopy(self.state.state_dict())

    def learn(self, epochs: int = 1) -> None:
        """Trains models in closed form on all trials."""
        learn(self.state.models, self.state.data, epochs, self.device)

    def settle(self) -> None:
        """Restores the state that was kept, if nothing was reserved since; the queue is what it is now.

        The next iteration then equals that of a study that is loaded. An interrupt may come upon this, too; so it is
        done again before anything else is done to the run.
        """
        before = self._before
        if before is not None and before["asked"] == self.state.observations.ledger.n_asked:
            self.state.load_state_dict({**before, "queue": self.state.queue})
        self._before = None


class TrialAllocator:
    """Trials by ask and tell: queued, promoted, designed or proposed. A failed `ask` changes nothing.

    Args:
        engine: the steps of the run.
        device: where the models are trained.
    """

    def __init__(self, engine: Engine, device: torch.device):
        self.engine, self.state, self.device = engine, engine.state, device
        self._iteration = Iteration(engine.state, device)
        self._trainer: Trainer | None = None
        self._asked_from: int | None = None  # rows from here on are of an `ask` that has not returned

    def ask(self, q: int) -> list[int]:
        """The rows of q >= 1 reserved trials: first those of an earlier call that failed, then queued ones.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        state = self.state
        self.settle()
        state.unreturned = self.engine.still_pending(state.unreturned)  # some may have been told
        # before anything is reserved, so that a failure leaves no trial pending
        self.engine.require_room(q - len(state.unreturned))
        for reserve in (self._reserve_queued, self.engine.reserve_promoted, self._reserve_new):
            self._asked_from = len(state.observations)
            try:
                reserve(max(0, q - len(state.unreturned)))
            finally:
                self.settle()
        rows, state.unreturned = state.unreturned[:q], state.unreturned[q:]
        return rows

    def settle(self) -> None:
        """Ends an `ask` that has failed: its trials are for the next one, and what found none has changed nothing."""
        state = self.state
        if self._asked_from is not None:
            state.unreturned = sorted({*state.unreturned, *range(self._asked_from, len(state.observations))})
            self._asked_from = None
        self._iteration.settle()

    def _reserve_queued(self, q: int) -> None:
        """Reserves points of the queue; models are trained before, if there is anything to complete."""
        if not self.engine.is_open(q):
            self.engine.reserve_queued(q)
            return
        self._iteration.remember()
        if self.state.n_missing:
            self.engine.reserve_queued(q)
        else:
            self._after_learning(lambda: self.engine.reserve_queued(q))

    def _reserve_new(self, q: int) -> None:
        """Reserves q new points."""
        if q:
            self._iteration.remember()
            find = self.engine.design if self.state.n_missing else self._proposed
            self.engine.reserve(find(q))

    def _proposed(self, q: int) -> Tensor:
        return self._after_learning(lambda: self.engine.propose(q).points)

    def _after_learning(self, find: Callable[[], T]) -> T:
        """What a function finds with the models trained on all trials."""
        state = self.state
        epochs, state.warmup_epochs = 1 + state.warmup_epochs, 0
        if self._iteration.is_plain:
            self._iteration.learn(epochs)
            return find()
        from deepbore.loop.lightning import new_trainer, run_and_then  # takes seconds

        self._trainer, trainer = None, self._trainer or new_trainer(self.device)
        with state.data.learned_by(self.engine.ranks):
            found = run_and_then(trainer, state.module, state.data, epochs, find)
        self._trainer = trainer  # a trainer that was interrupted is not used again
        return found
