"""`Pruner`: the interface from reported values to whether a trial ends early."""

from abc import ABC, abstractmethod

from deepbore.component import Component
from deepbore.data.reports import Curve, Others


class Pruner(Component, ABC):
    """Decides, after a report of a trial, whether it ends early. It has no state: it goes by the reports alone.

    Example:
        >>> class Hopeless(Pruner):
        ...     '''Ends a trial that is not below 10 after 5 steps.'''
        ...
        ...     def should_prune(self, curve, others):
        ...         return curve.steps[-1] >= 5 and curve.lowest[-1] >= 10
    """

    @abstractmethod
    def should_prune(self, curve: Curve, others: Others) -> bool:
        """Whether a trial ends early.

        It may be called from any thread, one call at a time.

        Args:
            curve: what the trial has reported until now, at least once, to minimise; infinite for NaN.
            others: the curves of the other trials of the run, those that still run and those that were pruned, too.
        """
