"""The first of very many numbers: what an ordering of all of them would give."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore.compute import numerics

NUMBERS = st.sampled_from([0.0, 1.0, -1.0, math.nan, math.inf, -math.inf]) | st.floats(-2, 2)


@given(st.data(), st.lists(NUMBERS, min_size=1, max_size=20), st.integers(1, 1500), st.booleans())
@settings(max_examples=150)
def test_the_first_numbers_are_those_of_an_ordering(draw, numbers, n, single):
    """Whether there are few, or so many that they are looked at in blocks."""
    values = torch.tensor(np.resize(numbers, n), dtype=torch.float32 if single else torch.float64)
    values = values[torch.randperm(n, generator=torch.Generator().manual_seed(n))]
    k = draw.draw(st.integers(1, min(n, 8)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numerics, "MANY", draw.draw(st.sampled_from([1, 2000])))
        low, high = numerics.smallest(values, k), numerics.largest(values, k)
    for places, turned in ((low, values), (high, -values)):
        known = turned.nan_to_num(math.inf, math.inf, -math.inf)
        assert len(places.unique()) == k
        assert known[places].tolist() == known.sort().values[:k].tolist()


def test_a_million_numbers_are_looked_through_as_topk_does():
    values = torch.randn(1_000_037, generator=torch.Generator().manual_seed(0))
    for k in (1, 50, 1000, 20_000):
        assert torch.equal(numerics.largest(values, k), values.topk(k).indices)
        assert torch.equal(values[numerics.smallest(values, k)], values.topk(k, largest=False).values)


def test_places_up_to_a_value():
    assert numerics.up_to(torch.tensor([1.0, math.nan, 0.5, 2.0, 1.0]), 1.0).tolist() == [0, 2, 4]


@pytest.mark.parametrize("bins", [1, 5, 10])
def test_the_calibration_error_of_classes_is_that_of_torchmetrics(bins):
    from torchmetrics.functional.classification import binary_calibration_error

    stream = torch.Generator().manual_seed(bins)
    p, z = torch.rand(300, generator=stream), torch.randint(2, (300,), generator=stream)
    assert float(numerics.calibration_error(p, z, bins)) == pytest.approx(
        float(binary_calibration_error(p, z, bins)), abs=1e-6
    )
    assert float(numerics.calibration_error(torch.tensor([1.0, 0.0]), torch.tensor([1, 0]), bins)) == 0
