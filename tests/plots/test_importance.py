"""The importance of parameters, by Shapley values, and near the best."""

import pytest
import torch

from deepbore import Categorical, Condition, Real, SearchSpace, plots, plots as pictures
from deepbore.plots import local_shares, records
from deepbore.plots.on_plotly import drawing
from deepbore.plots.predictions import centre
from drawn_studies import CUBE, LINE, Known, told, trained
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


def test_the_only_parameter_has_the_importance_of_all():
    study = told(LINE, [3.0, 1.0, 2.0])
    study.fit(epochs=1)
    assert pictures.importances(study) == {"x": pytest.approx(1)}


def test_there_is_one_importance_for_python_and_the_page(study):
    numbers, shares = pictures.importances(study), pictures.shares(study)
    assert numbers == {name: share.whole for name, share in shares.items()}
    assert list(numbers.values()) == sorted(numbers.values(), reverse=True)
    alone, together = drawing(records.importance(study)).data
    assert together["base"] == alone["x"]
    assert [x + y for x, y in zip(alone["x"], together["x"], strict=True)] == pytest.approx(list(numbers.values()))
    figure = pictures.importance(study)
    one, other = figure.axes[0].containers[:2]
    assert [bar.get_width() for bar in one] == pytest.approx([share.alone for share in shares.values()])
    assert [bar.get_x() + bar.get_width() for bar in other] == pytest.approx(list(numbers.values()))


def test_bars_of_importance_are_in_order(study):
    figure = pictures.importance(study)
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
