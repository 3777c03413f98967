"""Pruners: which running trials are not worth going on, by what they and the others have reported.

- `MedianPruner`: those that are worse than the median of the others at the same step.
- `SuccessiveHalvingPruner`: those that are not among the best at a rung, by the rule of promotions of a `Budget`.
- `PatientPruner`: those that stand still, alone or as a condition of another pruner.
"""

from deepbore.pruners.base import Pruner
from deepbore.pruners.rules import MedianPruner, PatientPruner, SuccessiveHalvingPruner

__all__ = ["MedianPruner", "PatientPruner", "Pruner", "SuccessiveHalvingPruner"]
