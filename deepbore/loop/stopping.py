"""Rules that end a run: no improvement, a target, nothing more to expect."""

import math
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from deepbore.acquisition import LogExpectedImprovement
from deepbore.compute.devices import one_thread
from deepbore.errors import SettingError
from deepbore.loop.state import RunState
from deepbore.validation import between, required, whole


class StopRule(ABC):  # noqa: B024  # each rule has one of the two questions
    """Says when a run has done enough. It looks, and changes nothing.

    Attributes:
        proposals: so many iterations in a row must promise too little.
    """

    proposals: int = 1

    def check(self, state: RunState) -> None:  # most go with everything
        """Raises SettingError unless the rule makes sense for this run."""

    def is_met(self, state: RunState) -> bool:
        """Whether what is known is enough; asked after each trial."""
        return False

    def promises_too_little(self, state: RunState, points: Tensor) -> bool:
        """Whether points (q x d) are not worth their evaluation; asked of what the classifier has proposed."""
        return False


@dataclass(frozen=True)
class NoImprovement(StopRule):
    """Ends a run after k trials in a row none of which is better than all before, failures and the design included.

    They count in the order of telling, which with several workers is not that of asking. Earlier results that are added
    begin the count anew.

    Args:
        trials: k >= 1.

    Raises:
        SettingError: for k < 1.
    """

    trials: int

    def __post_init__(self) -> None:
        required(trials=self.trials)
        whole(1, trials=self.trials)

    def check(self, state: RunState) -> None:
        _one_objective(self, state)

    def is_met(self, state: RunState) -> bool:
        return state.observations.n_since_best >= self.trials


@dataclass(frozen=True)
class TargetReached(StopRule):
    """Ends a run when a feasible trial is as good as a target, earlier results of this study included.

    Args:
        value: the target, in the user's sign: at most this value is enough where less is better, at least this value
            where more is.

    Raises:
        SettingError: for what is no finite number.
    """

    value: float

    def __post_init__(self) -> None:
        required(value=self.value)
        between(-math.inf, math.inf, value=self.value)

    def check(self, state: RunState) -> None:
        _one_objective(self, state)

    def is_met(self, state: RunState) -> bool:
        best = state.observations.best
        if best is None or best.value is None:
            return False
        return best.value <= self.value if state.observations.direction == "minimize" else best.value >= self.value


@dataclass(frozen=True)
class ExpectedImprovementBelow(StopRule):
    """Ends a run when the classifier expects of its proposals next to no improvement over the best value.

    The expected improvement, E[max(z - z*, 0)] over the best label z*, is measured in labels, whose spread from the
    worst value to the best is 1. With the default labels, which are linear from the best value to the median, where
    they are 1/3, a share s of this spread is 1.5 s of the distance from the best value to the median. The proposals
    that are not worth it are not evaluated. Under black-box constraints it counts as much as it is likely to be
    feasible, and while nothing is feasible the run goes on. Proposals by a second kernel, in turn with the
    classifier's, neither count nor end the count.

    Args:
        share: of the spread, in (0, 1).
        proposals: so many iterations in a row must promise less; one alone may be an accident of the fit.

    Raises:
        SettingError: for settings outside their range; and at the start of a run, for a classifier whose scores are no
            estimates of the label with a deviation.
    """

    share: float = 1e-3
    proposals: int = 5

    def __post_init__(self) -> None:
        required(share=self.share, proposals=self.proposals)
        between(0, 1, share=self.share)
        whole(1, proposals=self.proposals)

    def check(self, state: RunState) -> None:
        try:
            LogExpectedImprovement().check(state.classifier)
        except SettingError as error:
            raise SettingError(
                f"ExpectedImprovementBelow needs a classifier that estimates the label with its deviation, such as "
                f"KernelPLS or DeepPLS: {error}"
            ) from None

    def promises_too_little(self, state: RunState, points: Tensor) -> bool:
        feasibility, classifier = state.feasibility, state.classifier
        if feasibility.is_alone:
            return False
        points = points.to(classifier.device)
        with torch.no_grad(), one_thread():
            improvement = LogExpectedImprovement()(classifier.posterior(points), classifier.best_label)
            if feasibility.is_needed:
                improvement = improvement + feasibility.log_probability(points)
        return bool(improvement.max() < math.log(self.share))


def as_rules(stop_when: StopRule | Sequence[StopRule], state: RunState) -> tuple[StopRule, ...]:
    """The rules for a run, checked.

    Raises:
        SettingError: for anything but rules, or one that makes no sense for this run.
    """
    rules = tuple(stop_when) if isinstance(stop_when, (list, tuple)) else (stop_when,)
    for rule in rules:
        if not isinstance(rule, StopRule):
            raise SettingError(
                f"stop_when must be a rule, or a list of them, but got {rule!r:.100}. Give NoImprovement(trials=20), "
                "TargetReached(value=0.1) or ExpectedImprovementBelow(share=0.001)."
            )
        rule.check(state)
    return rules


def _one_objective(rule: StopRule, state: RunState) -> None:
    if state.observations.k > 1:
        raise SettingError(
            f"{type(rule).__name__} needs one objective, but the study has {state.observations.k}. "
            "Leave it out, or call study.stop() in a callback."
        )
