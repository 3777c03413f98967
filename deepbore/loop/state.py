"""`RunState`: all that a run knows."""

from collections.abc import Mapping
from copy import Error as CopyError, deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers import Classifier, KernelPLS
from deepbore.classifiers.base import optimizers_of
from deepbore.classifiers.earlier_tasks import EarlierTasks
from deepbore.classifiers.elsewhere import Elsewhere
from deepbore.classifiers.feasibility import Feasibility
from deepbore.classifiers.nearby import Nearby
from deepbore.data import journal_format
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations, ValueGradedLabels
from deepbore.loop.metrics import Metrics
from deepbore.loop.recipe import Recipe
from deepbore.space import SearchSpace

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
        nearby: what proposes in turn with the classifier where it knows the rows near the best one.
        elsewhere: what proposes in turn with the classifier where that knows a branch of the space in detail.
        earlier: what earlier tasks forecast, a function of their rows; the classifier looks at it, and so the design.
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
    nearby: Nearby = field(default_factory=Nearby)
    elsewhere: Elsewhere = field(default_factory=Elsewhere)

    def __post_init__(self) -> None:
        self.data = LabelledObservations(self.observations, self.recipe.labels)
        self.earlier = EarlierTasks(self.observations, self.recipe.labels)
        self.classifier.generator, self.classifier.earlier = self.generator, self.earlier
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
    def classifier(self) -> Classifier:
        """What learns."""
        return self.recipe.classifier

    @property
    def may_look_nearby(self) -> bool:
        """Whether the rows near the best one may have a head of their own (`deepbore.classifiers.nearby`).

        So it is for labels graded by one value, a classifier that learns its kernel, as the head does, and real
        parameters of which none is fixed; with constraints, budgets or earlier tasks it is not.
        """
        return (
            self.recipe.candidates.nearby
            and self._learns_grades
            and self.space.is_continuous
            and not self.space.is_fixed
        )

    @property
    def may_look_elsewhere(self) -> bool:
        """Whether branches that are known in detail may be left out in turn (`deepbore.classifiers.elsewhere`).

        So it is in a space with conditions, for labels graded by one value, and a classifier that learns its kernel and
        is not told of noise; with constraints, budgets or earlier tasks it is not.
        """
        return (
            self.recipe.candidates.elsewhere
            and self._learns_grades
            and self.space.is_conditional
            and not getattr(self.classifier, "noisy", False)
        )

    @property
    def _learns_grades(self) -> bool:
        """Whether a kernel, all of which is learned, learns labels graded by one value, and nothing beside these."""
        return (
            isinstance(self.recipe.labels, ValueGradedLabels)
            and isinstance(self.classifier, KernelPLS)
            and self.classifier.learns_all
            and not self.observations.constraints.shape[1]
            and not self.earlier
        )

    def reseed(self, seed: int) -> None:
        """Begins another stream of random numbers.

        Raises:
            SettingError: for a seed that is no whole number from -2^63 to 2^63 - 1.
        """
        self.seed = as_seed(seed)
        self.generator.manual_seed(self.seed)

    def enqueue(self, point: Tensor) -> None:
        """Has a point (d) asked before any others; the journal knows it first, and an interrupt leaves both or none."""
        self.observations.complete_pending_write()
        params = self.space.decode(point[None])
        queue = [*self.queue, self.space.encode(params)[0]]  # with as many digits as the journal has

        def effect() -> None:
            self.queue = queue

        self.observations.commit([journal_format.enqueued(params[0])], effect)

    def bind(self) -> None:
        """Makes the classifier's weights, if it has none yet."""
        self.classifier.bind(self.space.released, self.recipe.labels.outputs)

    def copy_of_classifier(self) -> Classifier | None:
        """A copy of the classifier that draws from this run's stream, too; None of one that can't be copied."""
        shared = (self.generator, self.earlier)
        try:
            return deepcopy(self.classifier, {id(each): each for each in shared})
        except UNCOPIED:
            return None

    def check_classifier(self) -> None:
        """Raises SettingError if another run has taken the classifier since: it would learn of both."""
        if self.classifier.earlier is not self.earlier:
            raise SettingError(
                f"this study's {type(self.classifier).__name__} was given to another study, too, and learns for that "
                "one now. Make a new one for each study; what this one was told is in its trials and its journal."
            )

    def release(self) -> Classifier:
        """Leaves the classifier, with what it has learned, to another run; this one is over."""
        self.classifier.earlier = None
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
        bound = self.classifier.space is not None
        turns = {"nearby": self.nearby.state_dict(), "elsewhere": self.elsewhere.state_dict()}
        feasibility = self.feasibility.state_dict()
        return {
            "asked": self.observations.n_asked,
            "seed": self.seed,
            "generator": self.generator.get_state(),
            "queue": list(self.queue),
            "rehearsals": self.rehearsals,
            "weights": dict(self.classifier.state_dict()) if bound else None,
            "optimizers": [each.state_dict() for each in optimizers_of([self.classifier])] if bound else [],
            "ready": self.classifier.ready,
            "labels": self.recipe.labels.state_dict(),
            "candidates": self.recipe.candidates.state_dict(),
            "metrics": self.metrics.state_dict(),
            **({"feasibility": feasibility} if feasibility else {}),
            **{name: turn for name, turn in turns.items() if turn},
            **({"promised": list(self.promised)} if self.promised else {}),
            **({"disappointed": dict(self.disappointed)} if self.disappointed else {}),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Puts every part into the state that `state_dict` gave; the observations stay as they are."""
        if state["weights"] is not None:
            self.bind()
            self.classifier.load_state_dict(state["weights"])
            for optimizer, each in zip(optimizers_of([self.classifier]), state["optimizers"], strict=True):
                optimizer.load_state_dict(each)
        self.classifier.ready = state["ready"]
        self.recipe.labels.load_state_dict(state["labels"])
        self.recipe.candidates.load_state_dict(state["candidates"])
        self.metrics.load_state_dict(state["metrics"])
        self.feasibility.load_state_dict(state.get("feasibility", {}), self.space.released)
        if isinstance(self.classifier, KernelPLS):
            self.nearby.load_state_dict(state.get("nearby", {}), self.classifier)
            self.elsewhere.load_state_dict(state.get("elsewhere", {}), self.classifier)
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
