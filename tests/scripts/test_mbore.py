"""scripts/peers: MBORE's scores of several objectives, against their definitions, and a run of it."""

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from deepbore.data.array_ranking import fronts, hypervolume
from deepbore.problems import ZDT
from peers import mbore
from peers.by_objectives import METHODS

REFERENCE = np.array([4.0, 4.0, 4.0])
ROWS = arrays(np.float64, st.tuples(st.integers(1, 12), st.sampled_from([2, 3])), elements=st.integers(0, 5).map(float))


@given(ROWS)
def test_the_dominance_rank_counts_who_is_better_in_all(rows):
    better = [sum((other <= row).all() and (other < row).any() for other in rows) for row in rows]
    np.testing.assert_allclose(mbore.dominance_rank(rows), [1 - n / max(1, len(rows) - 1) for n in better])


@given(ROWS)
def test_no_row_scores_more_than_one_of_a_better_front(rows):
    scores = mbore.hypervolume_contribution(rows, REFERENCE[: rows.shape[1]])
    for front, behind in pairwise(fronts(rows, len(rows))):
        assert scores[front].min() >= scores[behind].max() - 1e-9


@given(ROWS)
def test_the_improvement_is_over_the_front_behind(rows):
    reference = REFERENCE[: rows.shape[1]]
    scores = mbore.hypervolume_improvement(rows, reference)
    for front, behind in pairwise(fronts(rows, len(rows))):
        assert scores[front].min() >= hypervolume(rows[behind], reference) - 1e-9


@pytest.mark.parametrize("k", [2, 3])
def test_contributions_to_one_front_are_those_of_moocore(k):
    moocore = pytest.importorskip("moocore")
    drawn = np.abs(np.random.default_rng(k).normal(size=(9, k)))
    front = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)  # on a sphere: no row dominates another
    found = mbore.hypervolume_contribution(front, np.full(k, 1.2))
    np.testing.assert_allclose(found, moocore.hv_contributions(front, ref=np.full(k, 1.2)), atol=1e-12)


def test_chebyshev_weights_change_each_time():
    rows = np.array([[0.0, 2.0], [1.0, 1.0], [2.0, 0.0], [2.0, 2.0]])
    generator = np.random.default_rng(0)
    scores = np.array([mbore.augmented_chebyshev(rows, generator) for _ in range(40)])
    assert (scores.argmin(1) == 3).all()  # what all dominate is the worst by any weights
    assert set(scores.argmax(1)) == {0, 1, 2}


def test_a_run_gains_more_than_chance():
    problem = ZDT(1)
    volumes = {
        method: hypervolume(np.array(list(islice(METHODS[method](problem, 0), 40))), problem.reference)
        for method in ("mbore-xgb-phc", "random")
    }
    assert volumes["mbore-xgb-phc"] > volumes["random"] + 3
