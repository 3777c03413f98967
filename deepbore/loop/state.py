"""`RunState`: all that a run knows; its snapshot, and how a run goes on from it."""

import hashlib
import io
import logging
import pickle
from collections.abc import Mapping, Sequence
from copy import Error as CopyError, deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.classifiers.earlier_tasks import EarlierTasks
from deepbore.classifiers.feasibility import Feasibility
from deepbore.data import journal_format
from deepbore.data.journal import Journal, replace_file
from deepbore.data.observations import Observations
from deepbore.data.replay import History
from deepbore.errors import JournalError, SettingError
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.loop.lightning import Models
from deepbore.loop.metrics import Metrics
from deepbore.loop.promotions import Promotion
from deepbore.loop.recipe import Recipe
from deepbore.space import SearchSpace
from deepbore.strategies import Strategy
from deepbore.strategies.defaults import state_of_0_2

UNCOPIED = (RuntimeError, TypeError, AttributeError, CopyError)  # what `deepcopy` raises of what it can't copy


@dataclass
class RunState:
    """What a run knows, in one place; everything else is a function of it.

    Attributes:
        observations: all trials; the journal keeps them.
        recipe: the parts of the run, each with its own state.
        seed: of everything random.
        generator: the run's one stream of random numbers, which it lends the classifier.
        queue: points (d) to ask before any others.
        unclaimed: rows that are reserved and that nobody has been given yet.
        unfinished: rows that a run which was killed has left pending, to be evaluated first.
        promised: rows, and budgets, that were chosen to be promoted when a run was killed, and come before any others.
        rehearsals: epochs that only train, where the classifier has to learn anew.
        disappointed: rules that end a run -> how many of the latest proposals in a row have promised them too little.
        metrics: what is logged of labels and forecasts.
        feasibility: what is known of black-box constraints, learned anew before each proposal.
        earlier: what earlier tasks forecast, a function of their rows, which are learned beside those of this run.
        data: the observations as Lightning takes them, labelled anew in each epoch.
    """

    observations: Observations
    recipe: Recipe
    seed: int = 0
    generator: torch.Generator = field(default_factory=torch.Generator)
    queue: list[Tensor] = field(default_factory=list)
    unclaimed: list[int] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    promised: list[tuple[int, float]] = field(default_factory=list)
    rehearsals: int = 0
    disappointed: dict[str, int] = field(default_factory=dict)
    metrics: Metrics = field(default_factory=Metrics)
    feasibility: Feasibility = field(default_factory=Feasibility)

    def __post_init__(self) -> None:
        self.earlier = EarlierTasks(self.observations, self.recipe.labels)
        self.data = LabelledObservations(self.observations, self.recipe.labels, self.with_earlier_tasks)
        for model in self.strategy.models:
            model.generator, model.is_in_a_run = self.generator, True
        self.reseed(self.seed)

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    @property
    def own(self) -> Observations:
        """The rows of this run, without those of earlier tasks."""
        return self.observations.of_task(0)

    @property
    def has_earlier_tasks(self) -> bool:
        """Whether trials of earlier tasks are known."""
        return bool(self.observations.task_names)

    def with_earlier_tasks(self, batch: LabelledBatch) -> LabelledBatch:
        """A labelled batch of this run after rows of earlier tasks, if there are any."""
        return self.earlier.joined(batch) if self.has_earlier_tasks else batch

    @property
    def n_begun(self) -> int:
        """How many trials this run has begun: promoted ones count once, those of earlier tasks not at all."""
        if self.observations.budget is not None:
            return self.observations.n_distinct
        return len(self.observations) - self.observations.n_earlier

    @property
    def n_missing(self) -> int:
        """How many trials of the initial design are still to be asked for."""
        return max(0, self.recipe.n_initial - self.n_begun)

    @property
    def strategy(self) -> Strategy:
        """What proposes."""
        return self.recipe.strategy

    @property
    def classifier(self) -> Classifier:
        """The first model of the strategy."""
        return self.recipe.classifier

    @cached_property
    def module(self) -> Classifier | Models:
        """What a Trainer trains: the model of the strategy, or all of them."""
        models = self.strategy.models
        return models[0] if len(models) == 1 else Models(models)

    def reseed(self, seed: int) -> None:
        """Begins another stream of random numbers.

        Raises:
            SettingError: for a seed that is no whole number from -2^63 to 2^63 - 1.
        """
        self.seed = as_seed(seed)
        self.generator.manual_seed(self.seed)

    def enqueue(self, point: Tensor) -> None:
        """Queues a point (d) for the next ask. The journal is written first: an interrupt leaves both or none."""
        self.observations.complete_pending_write()
        params = self.space.decode(point[None])
        queue = [*self.queue, self.space.encode(params)[0]]  # with as many digits as the journal has

        def effect() -> None:
            self.queue = queue

        self.observations.commit([journal_format.enqueued(params[0])], effect)

    def bind(self) -> None:
        """Makes the weights of the models, where they have none yet."""
        for model in self.strategy.models:
            model.bind(self.space.without_fixed, self.recipe.labels.outputs)

    def copy_of_classifier(self) -> Classifier | None:
        """A copy of the classifier that draws from this run's stream, too; None of one that can't be copied."""
        try:
            return deepcopy(self.classifier, {id(self.generator): self.generator})
        except UNCOPIED:
            return None

    def check_classifier(self) -> None:
        """Raises SettingError if another run has taken a model since: it would learn of both."""
        taken = next((model for model in self.strategy.models if model.generator is not self.generator), None)
        if taken is not None:
            raise SettingError(
                f"this study's {type(taken).__name__} was given to another study, too, and learns for that one now. "
                "Make a new one for each study; what this one was told is in its trials and its journal."
            )

    def release(self) -> Classifier:
        """Leaves the models, with what they have learned, to another run; this one is over."""
        for model in self.strategy.models:
            model.is_in_a_run = False
        return self.classifier

    # --- plain data --------------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What the first line of a journal says of the run."""
        return {
            "space": self.space.to_dict(),
            "directions": list(self.observations.directions),
            "seed": self.seed,
            "recipe": self.recipe.describe(),
            **({} if self.observations.budget is None else {"budget": self.observations.budget.to_dict()}),
            **({"preferences": True} if self.observations.by_preference else {}),
        }

    def state_dict(self) -> dict[str, Any]:
        """Everything but the observations, of which it says how many there were: tensors and plain data only.

        Tensors are the run's own, not copies.
        """
        has_constraints = bool(self.observations.constraints.shape[1])
        feasibility = self.feasibility.state_dict() if has_constraints else {}
        return {
            "asked": self.observations.n_asked,
            "seed": self.seed,
            "generator": self.generator.get_state(),
            "queue": list(self.queue),
            "rehearsals": self.rehearsals,
            "bound": self.classifier.space is not None,
            "strategy": self.strategy.state_dict(),
            "labels": self.recipe.labels.state_dict(),
            "metrics": self.metrics.state_dict(),
            **({"feasibility": feasibility} if feasibility else {}),
            **({"promised": list(self.promised)} if self.promised else {}),
            **({"disappointed": dict(self.disappointed)} if self.disappointed else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Puts every part into the state that `state_dict` gave; the observations stay as they are."""
        if "strategy" not in state:
            bound = state["weights"] is not None
            state = {**state, "bound": bound, "strategy": state_of_0_2(self.strategy, state)}
        if state["bound"]:
            self.bind()
        self.strategy.load_state_dict(state["strategy"])
        self.recipe.labels.load_state_dict(state["labels"])
        self.metrics.load_state_dict(state["metrics"])
        if feasibility := state.get("feasibility"):
            self.feasibility.load_state_dict(feasibility, self.space.without_fixed)
        else:
            self.feasibility = Feasibility()
        self.queue, self.rehearsals = list(state["queue"]), state["rehearsals"]
        self.promised = list(state.get("promised", []))
        self.disappointed = dict(state.get("disappointed", {}))
        self.seed = state.get("seed", self.seed)  # which snapshots of version 0.1 do not have
        self.generator.set_state(state["generator"].cpu())  # last: binding draws from it


def as_seed(seed: Any) -> int:
    """A seed as an int; whole numbers of other kinds, such as NumPy's, are welcome.

    Raises:
        SettingError: for anything else, or beyond -2^63 to 2^63 - 1.
    """
    whole = hasattr(seed, "__index__") and not isinstance(seed, bool)
    if not whole or not -(2**63) <= int(seed) < 2**63:
        raise SettingError(f"seed must be a whole number, -2**63 <= seed < 2**63, but got seed={seed!r}.")
    return int(seed)


MAGIC = b"deepbore snapshot 2\n"  # then the SHA-256 of the rest, in binary
DIGEST = 32
DAMAGED = (OSError, RuntimeError, pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, EOFError)


def snapshot_path(journal: Path) -> Path:
    """The file of a journal's snapshot: run.jsonl -> run.jsonl.ckpt."""
    return journal.with_name(f"{journal.name}.ckpt")


def save(state: RunState, points: Tensor, journal: Journal, *, promoted: Sequence[Promotion] = ()) -> None:
    """Writes the state beside a journal, in the place of the one before, whole or not at all.

    It is the state in which the points are chosen and still to be asked, written before the journal says that they are:
    so wherever a process dies, the journal is at most these points behind.

    Args:
        state: of the run.
        points: what is asked next, q x d.
        journal: open.
        promoted: where they are promotions, what is promoted.

    Raises:
        JournalError: if it can't be written, or the file there is none of ours.
    """
    path = snapshot_path(journal.path)
    _refuse_foreign(path)
    kept: dict[str, Any] = {"run": journal.run_id, "recipe": state.recipe.describe(), "points": points.cpu()}
    kept |= {"promoted": [tuple(each) for each in promoted]} if promoted else {}
    payload = _pickled({**kept, "state": state.state_dict()})
    replace_file(path, MAGIC + hashlib.sha256(payload).digest() + payload)


def load(journal: Journal) -> Mapping[str, Any]:
    """What `save` has written beside a journal: "recipe", "points" and "state". It is read without running any code.

    Raises:
        JournalError: if it is missing, damaged, or of another run.
    """
    path = snapshot_path(journal.path)
    if not path.exists():
        raise JournalError("it is missing")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise JournalError(f"it can't be read ({error})") from error
    head, payload = content[: len(MAGIC) + DIGEST], content[len(MAGIC) + DIGEST :]
    if head != MAGIC + hashlib.sha256(payload).digest():
        raise JournalError("it is damaged, or no snapshot of this version")
    try:
        kept: dict[str, Any] = torch.load(io.BytesIO(payload), weights_only=True, map_location="cpu")
    except DAMAGED as error:
        raise JournalError(f"it is damaged ({type(error).__name__})") from error
    if kept["run"] != journal.run_id:
        raise JournalError("it is of another run")
    return kept


def _pickled(kept: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    torch.save(kept, buffer)
    return buffer.getvalue()


def _refuse_foreign(path: Path) -> None:
    try:
        with path.open("rb") as file:
            begins = file.read(len(MAGIC))
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"{path} can't be read ({error}). Name another journal.") from error
    if not MAGIC.startswith(begins):  # one that is empty, or cut off, may be overwritten
        raise JournalError(f"{path} is no snapshot of deepbore, so it stays. Move it, or name another journal.")


REHEARSALS = 10  # epochs of training on the journal's trials, where the weights are lost
log = logging.getLogger(__name__)


def restore(state: RunState, history: History) -> None:
    """Brings a state with the history's observations where it stood when the journal ended.

    Without a snapshot that fits, a run beyond its design lets the classifier learn anew for some epochs, and says so.

    Args:
        state: of the run, new but for the observations.
        history: what the journal says.
    """
    state.unfinished = history.observations.pending_rows.tolist()
    try:
        _take(state, history)
    except JournalError as error:
        state.queue = list(history.queue)
        state.generator.manual_seed(state.seed + history.observations.n_asked)
        if history.observations.n_asked:
            state.rehearsals = REHEARSALS
            log.warning(
                "%s can't be used: %s. The classifier learns anew from the %d trials of the journal, so the next "
                "proposals may differ from those of a run without interruption.",
                *(snapshot_path(history.journal.path), error, len(history.observations)),
            )


def _take(state: RunState, history: History) -> None:
    """Takes over the snapshot.

    Raises:
        JournalError: if there is none that fits.
    """
    kept = load(history.journal)
    if differences := state.recipe.differences(kept["recipe"]):
        raise JournalError(f"the settings differ: {'; '.join(differences)}")
    asked = history.observations.n_asked
    written = asked - kept["state"]["asked"]
    if not 0 <= written <= len(kept["points"]):
        raise JournalError(f"it knows of {kept['state']['asked']} trials, the journal of {asked}")
    try:
        state.load_state_dict(kept["state"])
    except DAMAGED as error:
        raise JournalError(f"it does not fit: {error}") from error
    lost, promoted = list(kept["points"][written:]), kept.get("promoted")
    if promoted:  # they come again as promotions; an older snapshot says only that they do
        state.promised = [] if promoted is True else [*promoted[written:], *state.promised]
        lost = []
    waiting = [*lost, *state.queue]  # proposals that were lost before, too, which no journal knows
    state.queue = [*waiting, *without(history.queue, waiting)]


def without(queue: Sequence[Tensor], points: Sequence[Tensor]) -> list[Tensor]:
    """A queue less some points, each taken out once."""
    left = list(queue)
    for point in points:
        at = next((place for place, each in enumerate(left) if each.equal(point)), None)
        if at is not None:
            del left[at]
    return left
