"""Failures that are crashes by chance, as far as the other rows can tell: nothing is learned of where they happened."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from deepbore.labels.datamodule import LabelledBatch

LIKELY = 0.5  # the probability of a success from which on a failure counts as chance


def without_crashes(batch: LabelledBatch, expected_by_others: Callable[[LabelledBatch], Tensor]) -> LabelledBatch:
    """The batch without the failures at which, by all other rows, a success is likelier than a failure.

    Whether a row has succeeded is a label like any other: 1 or 0, less the share of successes, so that far from all
    data that share is expected. A region that fails is found by its second failure, since each of the two says what to
    expect of the other; a crash among successes is found out at once.

    Args:
        batch: n rows.
        expected_by_others: gives what is expected of the label of each row of a batch by all its other rows (n).
    """
    if not bool(batch.failures.any()):
        return batch
    succeeded = (~batch.failures).to(batch.points)
    usual = succeeded.mean()
    expected = usual + expected_by_others(replace(batch, z=(succeeded - usual)[:, None]))
    return batch.take((~batch.failures | (expected <= LIKELY)).nonzero().squeeze(-1))
