"""`RunState`: the state of a run; its snapshot, and resuming from it."""

import hashlib
import io
import logging
import pickle
import sys
import zipfile
from collections.abc import Mapping, Sequence
from copy import Error as CopyError, deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.classifiers.earlier_tasks import EarlierTasks
from deepbore.classifiers.feasibility import Feasibility
from deepbore.compute.devices import stream_seed
from deepbore.data.journal import HELD, content_of, open_regular, patiently, replace_file, way_out
from deepbore.data.log import Log
from deepbore.data.observations import Observations
from deepbore.data.replay import History
from deepbore.data.reports import Others
from deepbore.errors import JournalError, SettingError
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.loop.metrics import Metrics
from deepbore.loop.promotions import Promotion
from deepbore.loop.recipe import Recipe
from deepbore.space import SearchSpace
from deepbore.space.encoding import OPEN
from deepbore.strategies import Strategy
from deepbore.strategies.defaults import state_of_0_2
from deepbore.worker.reporting import LocalJudge

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule

UNCOPIED = (RuntimeError, TypeError, AttributeError, CopyError)  # errors of `deepcopy`
FORMER_KEYS = {  # of snapshots of version 0.2
    "rehearsals": "warmup_epochs",
    "promised": "pending_promotions",
    "disappointed": "low_gain_streaks",
}


@dataclass
class RunState:
    """The state of a run; everything else is a function of it.

    Attributes:
        observations: all trials.
        recipe: the components of the run.
        seed: the seed of all random numbers.
        generator: the random numbers of the run, shared with the classifier.
        queue: points (d) to ask for before any others; OPEN where the strategy is to complete them.
        unreturned: reserved rows that `ask` has not returned yet.
        interrupted: rows left pending by an interrupted run, to evaluate first.
        pending_promotions: rows and budgets of promotions lost in a crash, to ask for first.
        warmup_epochs: epochs of training before the next proposal, if the classifier is trained from scratch.
        low_gain_streaks: stop rule -> the number of latest consecutive proposals with too little predicted gain.
        metrics: metrics of labels and predictions; None if nothing is logged.
        lacks_snapshot: whether the latest snapshot could not be written.
        feasibility: the model of the black-box constraints, fitted before each proposal.
        cost_limit: what all trials may cost together; None for no limit.
        is_running: whether a run is in progress, which alone asks for trials.
        earlier: the models of earlier tasks, a function of their rows.
        data: the data module, which labels the observations in each epoch.
    """

    observations: Observations
    recipe: Recipe
    seed: int = 0
    generator: torch.Generator = field(default_factory=torch.Generator)
    queue: list[Tensor] = field(default_factory=list)
    unreturned: list[int] = field(default_factory=list)
    interrupted: list[int] = field(default_factory=list)
    pending_promotions: list[tuple[int, float]] = field(default_factory=list)
    warmup_epochs: int = 0
    low_gain_streaks: dict[str, int] = field(default_factory=dict)
    metrics: Metrics | None = None
    lacks_snapshot: bool = False
    feasibility: Feasibility = field(default_factory=Feasibility)
    cost_limit: float | None = None
    is_running: bool = False

    def __post_init__(self) -> None:
        self.earlier = EarlierTasks(self.observations, self.recipe.labels)
        self.data = LabelledObservations(self.observations, self.recipe.labels, self.with_earlier_tasks)
        self.models = self.strategy.models
        for model in self.models:
            model.generator = model.run = self.generator
        self.reseed(self.seed)

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    @property
    def own(self) -> Observations:
        """The observations of this run, without those of earlier tasks; suspicious values count as failures."""
        return self.observations.believed.of_task(0)

    @property
    def has_earlier_tasks(self) -> bool:
        """Whether there are trials of earlier tasks."""
        return bool(self.observations.ledger.statistics.n_earlier)

    @property
    def judge(self) -> LocalJudge | None:
        """Decides whether a running trial ends early, from any thread; None without a pruner."""
        return None if self.recipe.pruner is None else LocalJudge(self.should_prune)

    def should_prune(self, row: int, new: Mapping[float, float] | None = None) -> bool:
        """Whether the pruner ends a trial, given its new reports, if any, which the journal gets with its outcome."""
        reports, pruner = self.observations.ledger.reports, self.recipe.pruner
        with reports.lock:
            if new:
                reports.add(row, new)
                reports.live.add(row)
            curve = reports.curve(row)
            return pruner is not None and len(curve) > 0 and bool(pruner.should_prune(curve, Others(reports, row)))

    def with_earlier_tasks(self, batch: LabelledBatch) -> LabelledBatch:
        """A labelled batch of this run, preceded by rows of earlier tasks, if any."""
        return self.earlier.joined(batch) if self.has_earlier_tasks else batch

    @property
    def n_begun(self) -> int:
        """The number of trials of this run; promoted ones count once, withdrawn and earlier ones not."""
        if self.observations.budget is not None:
            return self.observations.n_distinct
        return (
            len(self.observations)
            - self.observations.ledger.statistics.n_earlier
            - self.observations.ledger.statistics.n_withdrawn
        )

    @property
    def n_designed(self) -> int:
        """The number of points of the design's sequence that are used up, if all trials of this run are of it."""
        if self.observations.budget is not None:
            return self.n_begun + self.observations.ledger.statistics.n_withdrawn
        return (
            int((self.observations.columns.tasks == 0).sum())
            if self.observations.ledger.task_names
            else len(self.observations)
        )

    @property
    def n_missing(self) -> int:
        """The number of trials of the initial design that are still missing: all, for strategies without models."""
        if not self.strategy.uses_models:
            return sys.maxsize
        return max(0, self.recipe.n_initial - self.n_begun)

    @property
    def strategy(self) -> Strategy:
        """The strategy, which proposes points."""
        return self.recipe.strategy

    @property
    def classifier(self) -> Classifier:
        """The first model of the strategy."""
        return self.models[0]

    @cached_property
    def module(self) -> "LightningModule":
        """The module that a Trainer trains: the model of the strategy, or all of them."""
        from deepbore.loop.lightning import module_of  # takes seconds

        return module_of(self.models)

    def reseed(self, seed: int) -> None:
        """Restarts the random numbers with another seed.

        Raises:
            SettingError: unless the seed is an integer from -2^63 to 2^63 - 1.
        """
        self.seed = as_seed(seed)
        self.generator.manual_seed(stream_seed(self.seed))

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Queues a configuration, or a part of one, for the next ask.

        The journal is written first, so an interrupt cannot separate them.

        Raises:
            PointError: for a configuration outside the space.
        """
        self.observations.write_ahead_log.complete_pending_write()
        point = self.space.points.encode_part(params)
        params = self.space.points.structure.with_parents(self.space.points.encoding.without_gaps(params))
        columns = {name: column for column, name in enumerate(self.space.names) if name in params}
        parameters = self.space.parameters
        kept = {name: parameters[name].decode_plain(point[[column]])[0] for name, column in columns.items()}
        queue = [*self.queue, self.space.points.encode_part(kept)]  # with the precision of the journal

        def effect() -> None:
            self.queue = queue

        self.observations.enqueue(kept, effect)

    @property
    def is_bound(self) -> bool:
        """Whether the models have weights."""
        return self.models[0].space is not None

    def bind(self) -> None:
        """Creates the weights of the models that have none."""
        for model in self.models:
            model.bind(self.space.points.without_fixed, self.recipe.labels.outputs)

    def copies_of_models(self) -> list[Classifier | None]:
        """A copy of each model with the same generator; None for one that cannot be copied."""
        return [self._copy(model) for model in self.models]

    def _copy(self, model: Classifier) -> Classifier | None:
        try:
            return deepcopy(model, {id(self.generator): self.generator})
        except UNCOPIED:
            return None

    def check_classifier(self) -> None:
        """Raises SettingError if a model is used by another run too: it would be trained on both."""
        taken = next((model for model in self.models if model.run is not self.generator), None)
        if taken is not None:
            raise SettingError(
                f"this study's {type(taken).__name__} was given to another study too, and is trained by that one now. "
                "Make a new one for each study; the trials of this study are in its journal."
            )

    def release(self) -> Classifier:
        """Releases the trained models, so that another run may use them; this run is over."""
        for model in self.models:
            model.run = None
        return self.classifier

    # --- plain data --------------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """The header of the journal."""
        return {
            "space": self.space.to_dict(),
            "directions": list(self.observations.directions),
            "seed": self.seed,
            "recipe": self.recipe.described,
            **({} if self.observations.budget is None else {"budget": self.observations.budget.to_dict()}),
            **({"preferences": True} if self.observations.ledger.by_preference else {}),
            **({} if self.cost_limit is None else {"cost_limit": self.cost_limit}),
            **({"objectives": list(self.observations.objectives)} if self.observations.objectives else {}),
        }

    def state_dict(self) -> dict[str, Any]:
        """The state without the observations, but with their number: tensors (not copied) and plain data."""
        return {
            "asked": self.observations.ledger.n_asked,
            "seed": self.seed,
            "generator": self.generator.get_state(),
            "queue": list(self.queue),
            "warmup_epochs": self.warmup_epochs,
            **(self._learned_state() if self.is_bound else {}),
            **({} if self.metrics is None else {"metrics": self.metrics.state_dict()}),
            **({"pending_promotions": list(self.pending_promotions)} if self.pending_promotions else {}),
            **({"low_gain_streaks": dict(self.low_gain_streaks)} if self.low_gain_streaks else {}),
        }

    def _learned_state(self) -> dict[str, Any]:
        """The states of the strategy, the labelling and the models of constraints."""
        has_constraints = bool(self.observations.constraints.shape[1])
        feasibility = self.feasibility.state_dict() if has_constraints else {}
        return {
            "strategy": self.strategy.state_dict(),
            "labels": self.recipe.labels.state_dict(),
            **({"feasibility": feasibility} if feasibility else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` returned; the observations are unchanged."""
        state = {FORMER_KEYS.get(key, key): value for key, value in state.items()}
        if state.get("weights") is not None:
            state = {**state, "strategy": state_of_0_2(self.strategy, state)}
        if "strategy" in state:
            self.bind()
            self.strategy.load_state_dict(state["strategy"])
            self.recipe.labels.load_state_dict(state["labels"])
        self.feasibility = Feasibility()
        if "feasibility" in state:
            self.feasibility.load_state_dict(state["feasibility"], self.space.points.without_fixed)
        self.metrics = Metrics() if "metrics" in state else None
        if self.metrics is not None:
            self.metrics.load_state_dict(state["metrics"])
        self.queue, self.warmup_epochs = list(state["queue"]), state["warmup_epochs"]
        self.pending_promotions = list(state.get("pending_promotions", []))
        self.low_gain_streaks = dict(state.get("low_gain_streaks", {}))
        self.seed = state.get("seed", self.seed)  # missing in version 0.1
        self.generator.set_state(state["generator"].cpu())  # last: binding draws from it


def as_seed(seed: Any) -> int:
    """A seed as an int, from any integer type, such as those of NumPy.

    Raises:
        SettingError: unless it is an integer from -2^63 to 2^63 - 1.
    """
    whole = hasattr(seed, "__index__") and not isinstance(seed, bool)
    if not whole or not -(2**63) <= int(seed) < 2**63:
        raise SettingError(f"seed must be a whole number, -2**63 <= seed < 2**63, but got seed={seed!r}.")
    return int(seed)


MAGIC = b"deepbore snapshot 2\n"  # then the SHA-256 of the rest, in binary
DIGEST = 32
LARGEST, MOST_VALUES = 2**32, 10**6  # bytes of a snapshot; values in it, where a tensor is one
UNSAVED = (
    "the snapshot of the run could not be written: %s The run goes on, and its journal has all trials; continued from "
    "there without a snapshot, its models would be trained from scratch. It is tried again with each trial."
)
DAMAGED = (
    *(OSError, RuntimeError, pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, EOFError),
    *(zipfile.BadZipFile, OverflowError, AssertionError, MemoryError),
)


def snapshot_path(journal: Path) -> Path:
    """The file of a journal's snapshot: run.jsonl -> run.jsonl.ckpt."""
    return journal.with_name(f"{journal.name}.ckpt")


def save(
    state: RunState, points: Tensor, journal: Log, *, promoted: Sequence[Promotion] = (), **left: list[Any]
) -> None:
    """Writes the snapshot of a journal, replacing the previous one atomically.

    It is written after points are chosen, and before the journal contains them: after a crash at most these points are
    missing in the journal. The journal alone is enough to go on, so a snapshot that can't be written ends no run: there
    is one warning, and the next one is tried.

    Args:
        state: the state of the run.
        points: the chosen points, q x d.
        journal: the open journal.
        promoted: the promotions, if the points are promoted.
        left: what differs in the state when the points are in the journal: a queue without them.

    Raises:
        JournalError: before the first trial, if the existing file is not a snapshot.
    """
    path = snapshot_path(journal.path)
    kept: dict[str, Any] = {"run": journal.run_id, "recipe": state.recipe.described, "points": points.cpu()}
    kept |= {"promoted": [tuple(each) for each in promoted]} if promoted else {}
    payload = _pickled({**kept, "state": {**state.state_dict(), **left}})
    content = MAGIC + hashlib.sha256(payload).digest() + payload
    try:
        patience = 0.0 if state.lacks_snapshot else HELD
        _refuse_foreign(path, patience)
        replace_file(path, content, patience)
        state.lacks_snapshot = False
    except JournalError as error:
        if isinstance(error, ForeignFile) and not state.observations.ledger.n_asked:
            raise
        if not state.lacks_snapshot:
            log.warning(UNSAVED, error)
        state.lacks_snapshot = True


def load(journal: Log) -> Mapping[str, Any]:
    """The content of a snapshot: "recipe", "points" and "state". Reading it executes no code.

    Raises:
        JournalError: if it is missing, damaged, or of another run.
    """
    path = snapshot_path(journal.path)
    try:
        content = patiently(lambda: content_of(path, LARGEST))
    except FileNotFoundError:
        raise JournalError("it is missing") from None
    except OSError as error:
        raise JournalError(f"it can't be read ({error})") from error
    head, payload = content[: len(MAGIC) + DIGEST], content[len(MAGIC) + DIGEST :]
    if head != MAGIC + hashlib.sha256(payload).digest():
        raise JournalError("it is damaged, or no snapshot of this version")
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:  # torch would unpack what is packed a thousandfold
            if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise JournalError("it is packed, which no snapshot is")
        kept = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
    except DAMAGED as error:
        raise JournalError(f"it is damaged ({type(error).__name__})") from error
    if not isinstance(kept, dict) or kept.get("run") != journal.run_id:
        raise JournalError("it is of another run")
    return kept


def metrics_of(journal: Log) -> Metrics | None:
    """The metrics in the snapshot of a journal, without restoring anything; None where there are none."""
    try:
        kept = load(journal)["state"].get("metrics")
    except JournalError:  # what continues the run says what is wrong
        return None
    if kept is None:
        return None
    found = Metrics()
    found.load_state_dict(kept)
    return found


def _pickled(kept: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    torch.save(kept, buffer)
    return buffer.getvalue()


class ForeignFile(JournalError):
    """The error of a file that deepbore has not written, in the place of one of its own."""


def _refuse_foreign(path: Path, patience: float) -> None:
    """Raises ForeignFile for a file of the user's; JournalError if it can't be read."""
    try:
        with patiently(lambda: open_regular(path), patience) as file:
            begins = file.read(len(MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"{path} can't be read ({error}). {way_out(error, 'Name another journal.')}") from error
    if not MAGIC.startswith(begins):  # empty and truncated files may be overwritten
        raise ForeignFile(f"{path} is not a snapshot of deepbore, so it is kept. Move it, or name another journal.")


WARMUP_EPOCHS = 10  # epochs of training on the trials of the journal if the weights are lost
log = logging.getLogger(__name__)


def restore(state: RunState, history: History) -> None:
    """Restores the state at the last event of the journal.

    Without a matching snapshot the classifier is trained from scratch for some epochs, with a warning.

    Args:
        state: a new state with the observations of the history.
        history: the content of the journal.
    """
    state.interrupted = history.observations.columns.pending_rows.tolist()
    try:
        _take(state, history)
    except JournalError as error:
        state.queue = list(history.queue)
        state.generator.manual_seed(stream_seed(state.seed) + history.observations.ledger.n_asked)
        if history.observations.ledger.n_asked:
            state.warmup_epochs = WARMUP_EPOCHS
            log.warning(
                "%s can't be used: %s. The classifier is trained from scratch on the %d trials of the journal, so the "
                "next proposals may differ from those of an uninterrupted run.",
                *(snapshot_path(history.journal.path), error, len(history.observations)),
            )


def _take(state: RunState, history: History) -> None:
    """Restores the state from the snapshot.

    Raises:
        JournalError: if there is none that matches.
    """
    kept = load(history.journal)
    try:
        _check_size(kept)
        _take_from(kept, state, history)
    except DAMAGED as error:
        if isinstance(error, JournalError):
            raise
        raise JournalError(f"it does not fit: {error}") from error


def _take_from(kept: Mapping[str, Any], state: RunState, history: History) -> None:
    """Restores the state from the content of a snapshot; raises one of `DAMAGED` if it is none of this run."""
    if differences := state.recipe.differences(kept["recipe"]):
        raise JournalError(f"the settings differ: {'; '.join(differences)}")
    asked = history.observations.ledger.n_asked
    written, points = asked - kept["state"]["asked"], kept["points"]
    if not points.is_contiguous() or points.shape[1:] != (len(state.space),):  # a view may have any number of rows
        raise JournalError(f"its points are of shape {tuple(points.shape)}")
    if not 0 <= written <= len(points):
        raise JournalError(f"it knows of {kept['state']['asked']} trials, the journal of {asked}")
    state.load_state_dict(kept["state"])
    lost, promoted = list(points[written:]), kept.get("promoted")
    if promoted:  # True in older snapshots, which do not list the promotions
        state.pending_promotions = [] if promoted is True else [*promoted[written:], *state.pending_promotions]
        lost = []
    waiting = [*lost, *state.queue]  # also points lost in an earlier crash
    state.queue = [*waiting, *without(history.queue, waiting)]


def _check_size(kept: Any) -> None:
    """Raises JournalError for data that contain themselves, or the same over and over: as text they have no end."""
    waiting, seen = [kept], 0
    while waiting:
        each = waiting.pop()
        seen += 1
        if isinstance(each, (dict, list, tuple)):
            waiting.extend(each.values() if isinstance(each, dict) else each)
        if seen + len(waiting) > MOST_VALUES:
            raise JournalError(f"it has more than {MOST_VALUES:,} values")


def without(queue: Sequence[Tensor], points: Sequence[Tensor]) -> list[Tensor]:
    """A queue without some points, completed since or not, each removed once."""
    left = list(queue)
    for point in points:
        at = next((place for place, each in enumerate(left) if bool(((each == point) | (each == OPEN)).all())), None)
        if at is not None:
            del left[at]
    return left
