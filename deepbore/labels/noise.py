"""What noise of a value is worth as noise of its label."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from deepbore.labels.base import Labels
    from deepbore.labels.datamodule import LabelledBatch

LARGEST = 0.5  # the standard deviation of a label: no number in [0, 1] varies by more


def variances(labels: "Labels | LabelledBatch") -> Tensor:
    """The known variances of labels (n), 0 where there are none."""
    return torch.zeros_like(labels.weight) if labels.noise is None else labels.noise


def label_variance(label: Callable[[Tensor], Tensor], values: Tensor, noise: Tensor) -> Tensor:
    """By how much labels would vary if the values were measured again.

        sd_z = max(|z(y + sd) - z(y)|, |z(y - sd) - z(y)|), at most 1/2

    Where a label is linear in the value this is its slope times sd, up to the threshold tau of `graded_by_value`
    sd / ((tau - y_min) (1 + c)). Both sides count, as the label of the best value is flat towards what is better, and
    this says nothing of how lucky that value was. A class, [y <= tau], is as good as unknown within one sd of tau, and
    certain beyond.

    Args:
        label: values (n) -> labels (n or n x k), with the best value and the threshold as they are.
        values: n; NaN gives 0.
        noise: sd, their standard deviations, n, 0 where none is known.

    Returns:
        The variances sd_z^2 of the mean of the k columns, n.
    """
    z = label(values)
    changes = [(label(values + sign * noise) - z).reshape(len(values), -1).mean(-1).abs() for sign in (-1, 1)]
    return torch.stack(changes).amax(0).clamp(max=LARGEST).square()
