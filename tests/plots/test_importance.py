"""The importance of parameters, by permutation and by Shapley values."""

import pytest
import torch

from deepbore import Categorical, Condition, Real, SearchSpace, Study, plots, plots as pictures
from deepbore.plots.importance_chart import exchanged, local_shares
from deepbore.plots.predictions import centre
from drawn_studies import CUBE, LINE, MIXED, Known, told, trained
from pictured import told_at_random, tried_on


def test_shares_are_those_of_a_known_formula():
    """f = x0 / 2 + x1 x2 / 2: variances 12 of x0, 3 of x1 and of x2, 1 of both together, of 19."""
    study = told_at_random(CUBE, 20, classifier=Known(lambda x: x[:, 0] / 2 + x[:, 1] * x[:, 2] / 2))
    found = pictures.shares(study, samples=8192)
    assert next(iter(found)) == "x0"
    assert [found[name].whole for name in CUBE.names] == pytest.approx([12 / 19, 3.5 / 19, 3.5 / 19], abs=0.02)
    assert [found[name].alone for name in CUBE.names] == pytest.approx([12 / 19, 3 / 19, 3 / 19], abs=0.02)
    assert 1 - sum(share.alone for share in found.values()) == pytest.approx(1 / 19, abs=0.02)


def test_shares_add_up_to_one_and_see_interactions():
    study = told_at_random(CUBE, 20, classifier=Known(lambda x: ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).double()))
    found = pictures.shares(study)
    assert sum(share.whole for share in found.values()) == pytest.approx(1, abs=1e-9)
    assert found["x0"].whole == pytest.approx(0.5, abs=0.03)
    assert max(share.alone for share in found.values()) < 0.01  # neither says anything alone
    assert found["x2"].whole == 0
    assert found["x0"].together == found["x0"].whole - found["x0"].alone


def test_a_conditional_parameter_has_its_share_where_it_is_active():
    space = SearchSpace(
        {"kind": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("kind", "a")), "idle": Real(0, 1)}
    )
    study = told_at_random(space, 20, classifier=Known(lambda x: x[:, 1]))  # kind switches x on
    found = pictures.shares(study, samples=4096)
    whole, alone = 5 / 48, 1 / 48  # Var(b u) with b of a coin; of E[b u | u] = u / 2
    assert found["x"].alone == pytest.approx(alone / whole, abs=0.03)
    assert found["kind"].alone == pytest.approx(1 / 16 / whole, abs=0.03)
    assert found["idle"].whole == 0


def test_nothing_learned_has_no_shares():
    assert all(share.whole == 0 for share in pictures.shares(told_at_random(CUBE, [1.0])).values())
    constant = told_at_random(CUBE, 20, classifier=Known(lambda x: torch.full((len(x),), 0.5, dtype=torch.float64)))
    assert all(share.whole == 0 for share in pictures.shares(constant).values())


@pytest.fixture(scope="module")
def study():
    return trained()


def known(formula, space=CUBE, n=512):
    """A study of evenly spread trials with this formula as its classifier."""
    study = Study(space, classifier=Known(formula))
    for row in study.observations.reserve(space.sobol(n, seed=0)):
        study.tell(row, row)
    study.fit(epochs=1)
    return study


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda x: 0.5 * x[:, 0] + 0.25 * x[:, 1], [4 / 5, 1 / 5, 0]),  # variances 1/4 and 1/16 of one
        (lambda x: x[:, 0] * x[:, 1], [4 / 7, 4 / 7, 0]),  # V = 7/144, V_1 = V_2 = 3/144, V_12 = 1/144
    ],
)
def test_importance_is_the_total_effect_index_where_trials_are_uniform(formula, expected):
    found = pictures.importances(known(formula), samples=8192)
    assert [found[name] for name in CUBE.names] == pytest.approx(expected, abs=0.03)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_importance_of_conditional_parameters():
    momentum = known(lambda x: torch.where(MIXED.active(x)[:, 3], x[:, 3], 0.0), MIXED)
    found = pictures.importances(momentum)
    assert found["lr"] == found["units"] == found["nesterov"] == 0
    assert found["momentum"] > 0.1
    assert found["optimizer"] > 0.1  # what it switches on matters


def test_the_only_parameter_has_the_importance_of_all():
    study = told(LINE, [3.0, 1.0, 2.0])
    study.fit(epochs=1)
    assert pictures.importances(study) == {"x": pytest.approx(1)}


def test_an_exchange_gives_points_of_the_space_and_leaves_what_does_not_depend_on_it():
    generator = torch.Generator().manual_seed(0)
    points, donors = MIXED.sample(200, generator), MIXED.sample(200, generator)
    for column, untouched in [(0, [1, 2, 3, 4]), (2, [0, 1]), (3, [0, 1, 2, 4])]:
        moved = exchanged(MIXED, points, donors, column, generator)
        assert torch.equal(MIXED.snap(moved), moved)
        assert torch.equal(moved[:, untouched], points[:, untouched])
        active = MIXED.active(points)[:, column]
        assert torch.isin(moved[active, column], donors[MIXED.active(donors)[:, column], column]).all()
        assert not torch.equal(moved[:, column], points[:, column])


def test_bars_of_importance_are_in_order(study):
    figure = pictures.importance(study)
    bars = [bar.get_width() for bar in figure.axes[0].patches]
    assert bars == list(pictures.importances(study).values())
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(pictures.importances(study))
    assert figure.axes[0].yaxis_inverted()


# regression: this was wrong once
@pytest.mark.slow
def test_a_category_that_stands_still_leaves_the_others_their_importance():
    space = SearchSpace({"o": Categorical(["a", "b"]), "z": Real(0, 1)})
    study = tried_on(space, lambda params: float(params["o"] == "b"), 14)
    study.fit()
    before = plots.importances(study)
    study.fix({"o": "a"})
    assert plots.importances(study) == pytest.approx(before)


def test_near_the_best_only_what_changes_pi_there_is_important():
    study = told_at_random(CUBE, 20)
    best = centre(study)[1]
    known = Known(lambda x: x[:, 0] / 4 + ((x[:, 1] - best).abs() > 0.3).double() / 2)  # x1 matters far away
    study = told_at_random(CUBE, 20, classifier=known)
    assert next(iter(pictures.shares(study))) == "x1"
    assert local_shares(study) == pytest.approx({"x0": 1, "x1": 0, "x2": 0})
