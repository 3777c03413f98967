"""Means of configurations that come again are kept from one look to the next, and are what a first look finds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Ordinal, SearchSpace, Study
from deepbore.data.observations import Observations, Status
from deepbore.data.replicates import Replicates
from deepbore.data.table import first_among, regrouped

SPACE = SearchSpace({"x": Ordinal(list(range(6)))})
VALUES = st.sampled_from([0.1, 1.0, 1.0, 2.5, float("nan")])
STEPS = st.one_of(
    st.tuples(st.just("add"), st.lists(st.tuples(st.integers(0, 5), VALUES), min_size=1, max_size=4)),
    st.tuples(st.just("ask"), st.integers(0, 5)),
    st.tuples(st.just("tell"), VALUES),
    st.tuples(st.just("earlier task"), st.integers(0, 5)),
    st.tuples(st.just("noisy"), st.integers(0, 5)),
)


def take(observations, step, given):
    """One event; `tell` is for the trial that has waited longest."""
    if step == "add":
        observations.add({"x": [x for x, _ in given]}, [value for _, value in given])
    elif step == "ask":
        observations.reserve(SPACE.encode([{"x": given}]))
    elif step == "tell" and len(waiting := observations.pending_rows):
        observations.tell(int(waiting[0]), given)
    elif step == "earlier task":
        observations.add({"x": given}, 3.0, task="earlier")
    elif step == "noisy":
        observations.add({"x": given}, 2.0, noise=0.5)


def as_if_new(observations):
    return Replicates(observations.table).average()


@pytest.mark.slow
@given(st.lists(STEPS, max_size=12))
@settings(max_examples=200)
def test_a_look_finds_what_a_first_look_would(steps):
    observations = Observations(SPACE)
    for step in steps:
        take(observations, *step)
        found, anew = observations.averaged, as_if_new(observations)
        assert torch.equal(found.values.nan_to_num(nan=-1), anew.values.nan_to_num(nan=-1))
        assert np.array_equal(found.ranked, anew.ranked)
        assert (found.worth is None) == (anew.worth is None)
        assert found.worth is None or torch.equal(found.worth, anew.worth)


@given(st.lists(STEPS, max_size=12))
def test_pending_rows_are_those_whose_status_says_so(steps):
    observations = Observations(SPACE)
    observations.reserve(observations.points)  # none at all
    for step in steps:
        take(observations, *step)
        some = torch.arange(0, len(observations), 2)
        for rows in (observations, observations.of_task(0), observations.part(some)):
            assert rows.pending_rows.tolist() == (rows.status == Status.PENDING).nonzero().squeeze(-1).tolist()


@given(st.lists(st.integers(0, 4), max_size=12), st.data())
def test_the_first_row_of_a_configuration_among_some_rows_is_one_of_them(keys, drawn):
    first = regrouped(torch.tensor(keys, dtype=torch.long))
    kept = drawn.draw(st.sets(st.sampled_from(range(len(keys))))) if keys else set()
    rows = torch.tensor(sorted(kept), dtype=torch.long)
    expected = [next(i for i, row in enumerate(sorted(kept)) if keys[row] == keys[each]) for each in sorted(kept)]
    assert first_among(rows, first[rows]).tolist() == expected


def test_a_trial_that_joins_costs_no_look_at_all_rows(monkeypatch):
    looks = []
    original = Replicates._of_all_rows
    monkeypatch.setattr(Replicates, "_of_all_rows", lambda self: looks.append(len(self.table)) or original(self))
    study = Study(SearchSpace({f"x{i}": Ordinal(list(range(6))) for i in range(4)}), seed=0, n_initial=4)
    study.add({f"x{i}": [0, 0, 1, 2] for i in range(4)}, [1.0, 2.0, 0.5, 3.0])
    for value in range(5):
        study.tell(study.ask()[0], value)
    assert looks == [4]


@pytest.mark.parametrize("first", [1.0, float("nan")])
def test_a_trial_that_waited_while_its_configuration_came_again_counts_in_the_mean(first):
    observations = Observations(SPACE)
    (row,) = observations.reserve(SPACE.encode([{"x": 1}]))
    observations.add({"x": [1, 1, 2]}, [2.0, 4.0, 9.0])
    assert observations.averaged.values[1:].tolist() == [3.0, 3.0, 9.0]
    observations.tell(row, first)
    assert observations.averaged.values[1:].tolist() == pytest.approx([3.0 if np.isnan(first) else 7 / 3] * 2 + [9.0])
