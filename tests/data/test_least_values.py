"""The least values of many rows, which are kept from call to call."""

import numpy as np
import pytest
import torch

from deepbore import Real, SearchSpace
from deepbore.data import columns
from deepbore.data.observations import Observations, Status
from deepbore.data.outcome import Outcome


@pytest.mark.parametrize("seed", range(5))
def test_they_are_those_of_all_rows_after_any_change(seed, monkeypatch):
    monkeypatch.setattr(columns, "MANY", 20)
    monkeypatch.setattr(columns, "KEPT", 8)
    rng, told = np.random.default_rng(seed), Observations(SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}))
    told.add({"x": rng.random(30), "y": rng.random(30)}, rng.random(30))
    for _ in range(40):
        change = rng.integers(5)
        if change <= 2:
            (row,) = told.reserve(torch.from_numpy(rng.random((1, 2))))
            told.tell(row, Outcome.failure("no") if change == 2 else float(rng.random()))
        else:
            row = int(rng.choice(np.flatnonzero(told.status == Status.COMPLETE)))
            told.correct(row, float(rng.random())) if change == 3 else told.withdraw(row)
        for k in (3, 8, 12):
            values = told.values[:, 0].numpy()
            expected = np.sort(values[~np.isnan(values)])[:k]
            assert values[told.columns.least_values(0, k)].tolist() == expected.tolist()
        assert len(told.believed.columns.least_values(0, 5)) == 5
