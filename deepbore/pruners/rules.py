"""`MedianPruner`, `SuccessiveHalvingPruner`, `PatientPruner`: rules that end trials early."""

from deepbore.data.reports import Curve, Others
from deepbore.data.trial import n_promoted
from deepbore.pruners.base import Pruner
from deepbore.validation import above, at_least, of_kind, required, whole


class MedianPruner(Pruner):
    """Ends a trial whose best value so far is worse than the median of the others' at the same step.

    All trials that have got to that step count, whatever has become of them.

    Args:
        startup_trials: so many others must have got to the step; before, no trial is ended.
        warmup_steps: steps up to which no trial is ended.

    Raises:
        SettingError: for a setting outside its range.

    References:
        Golovin et al., Google Vizier: a service for black-box optimization, KDD 2017, section 3.2.
    """

    def __init__(self, startup_trials: int = 5, warmup_steps: float = 0):
        required(startup_trials=startup_trials, warmup_steps=warmup_steps)
        whole(1, startup_trials=startup_trials)
        at_least(0, warmup_steps=warmup_steps)
        self.startup_trials, self.warmup_steps = startup_trials, warmup_steps

    def should_prune(self, curve: Curve, others: Others) -> bool:
        step = curve.steps[-1]
        if step <= self.warmup_steps:
            return False
        ranked = others.lowest(step)
        return len(ranked) >= self.startup_trials and curve.lowest[-1] > ranked[len(ranked) // 2]


class SuccessiveHalvingPruner(Pruner):
    """Ends a trial at a rung unless it is among the best 1 / factor of the trials that have got there (ASHA).

    The rungs are the steps low * factor^k, k = 0, 1, ...; a trial is judged at its first report at or after a rung. Of
    n trials the best floor(n / factor) go on, as with a `Budget`; here one at least, since a trial that was ended is
    not taken up again. A `Budget` in its place continues trials later, from checkpoints.

    Args:
        low: the first rung, > 0.
        factor: between two rungs, > 1.

    Raises:
        SettingError: for a setting outside its range.

    References:
        Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA).
    """

    def __init__(self, low: float = 1, factor: float = 3):
        required(low=low, factor=factor)
        above(0, low=low)
        above(1, factor=factor)
        self.low, self.factor = low, factor

    def should_prune(self, curve: Curve, others: Others) -> bool:
        rung = self.low
        if curve.steps[-1] < rung:
            return False
        while rung * self.factor <= curve.steps[-1]:
            rung *= self.factor
        if len(curve) > 1 and curve.steps[-2] >= rung:
            return False  # judged at an earlier report
        ranked = others.lowest(rung)
        n_better = sum(value < curve.lowest[-1] for value in ranked)
        return n_better >= max(1, n_promoted(1 + len(ranked), self.factor))


class PatientPruner(Pruner):
    """Ends a trial that stands still, if another pruner agrees.

    Args:
        pruner: the other one; None for trials that stand still, however good they are. To keep the value of a training
            that has converged, end it by Lightning's `EarlyStopping`: then the trial is complete.
        patience: reports without a better value.
        min_delta: what counts as better, >= 0.

    Raises:
        SettingError: for a setting outside its range.
    """

    def __init__(self, pruner: Pruner | None = None, patience: int = 5, min_delta: float = 0.0):
        of_kind(Pruner, pruner=pruner)
        required(patience=patience, min_delta=min_delta)
        whole(1, patience=patience)
        at_least(0, min_delta=min_delta)
        self.pruner, self.patience, self.min_delta = pruner, patience, min_delta

    def should_prune(self, curve: Curve, others: Others) -> bool:
        if len(curve) <= self.patience or curve.lowest[-1 - self.patience] - curve.lowest[-1] > self.min_delta:
            return False
        return self.pruner is None or self.pruner.should_prune(curve, others)
