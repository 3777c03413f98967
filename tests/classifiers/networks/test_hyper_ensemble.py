"""`HyperDeepEnsemble`: members that differ in hyperparameters, and their choice."""

import math

import pytest
import torch

import deepbore as db
from deepbore import HyperDeepEnsemble, ThresholdLabels, Training
from deepbore.classifiers.networks.hyper_ensemble import greedy_choice
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from tried import tried, with_a_task

SPACE = TOY_SPACES["continuous"]

QUICK = Training(steps=50)


def data(n=60):
    return toy_data(SPACE, n, ThresholdLabels(0.3))


def test_members_have_widths_rates_and_decays_of_their_own():
    ensemble = HyperDeepEnsemble(
        width=(4, 32), dropout=(0.1, 0.3), weight_decay=(1e-5, 1e-1), pool=20, members=4, training=QUICK
    ).bind(SPACE)
    widths = ensemble.units.sum(-1).flatten()
    assert 4 <= widths.min() < 10
    assert 20 < widths.max() <= 32
    assert ((ensemble.rate >= 0.1) & (ensemble.rate <= 0.3)).all()
    assert ((ensemble.decay >= 1e-5) & (ensemble.decay <= 1e-1)).all()
    assert ensemble.posterior(SPACE.points.sobol(3, seed=0)).members.shape == (4, 3)


def test_a_narrow_member_is_a_narrow_network():
    ensemble = fit(HyperDeepEnsemble(width=(3, 16), pool=6, members=6, training=QUICK), data(), epochs=3)
    points = SPACE.points.sobol(5, seed=0)
    for row, member in zip(ensemble.posterior(points).members, ensemble.chosen.tolist(), strict=True):
        w = int(ensemble.units[member].sum())
        first, second, last = ensemble.net.layers
        act = ensemble.net.activation
        hidden = act(ensemble.encode(points) @ first.weight[member][:, :w] + first.bias[member][:, :w])
        hidden = act(hidden @ second.weight[member][:w, :w] + second.bias[member][:, :w])
        assert torch.allclose(row, (hidden @ last.weight[member][:w] + last.bias[member])[:, 0], atol=1e-4)


@pytest.mark.slow
def test_a_greater_weight_decay_makes_smaller_weights():
    ensemble = HyperDeepEnsemble(dropout=(0, 0), weight_decay=(1e-6, 1.0), pool=20, members=5, training=QUICK)
    fit(ensemble, data(), epochs=20)
    norms = ensemble.net.layers[0].weight.square().sum((1, 2))
    decay = ensemble.decay.flatten()
    assert norms[decay > 0.05].max() < norms[decay < 1e-4].min()


def test_the_choice_prefers_members_that_predict_well_and_err_differently():
    z = torch.tensor([1.0, 1.0, 0.0, 0.0])
    good_left = torch.tensor([0.9, 0.5, 0.1, 0.5])
    good_right = torch.tensor([0.5, 0.9, 0.5, 0.1])
    worse_left = torch.tensor([0.85, 0.5, 0.15, 0.5])
    wrong = 1 - z
    pool = torch.stack([wrong, good_left, worse_left, good_right])
    assert greedy_choice(pool, z, 2).tolist() == [1, 3]
    assert sorted(greedy_choice(pool, z, 4).tolist()) == [0, 1, 2, 3]


def test_members_are_chosen_by_rows_before_they_are_learnt():
    ensemble = HyperDeepEnsemble(pool=6, members=2, training=QUICK)
    growing = data(30)
    fit(ensemble, growing, epochs=1)
    new = SPACE.points.sobol(3, seed=9)
    with torch.no_grad():
        expected = ensemble.pool_outputs(ensemble.encode(new)).sigmoid().mean(-1)
    for row in growing.observations.reserve(new):
        growing.observations.tell(row, 0.5)
    fit(ensemble, growing, epochs=1)
    assert torch.allclose(ensemble.foretold[:, -3:], expected)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"width": (8, 4)}, r"width must be \(least, greatest\)"),
        ({"width": (0, 4)}, "width >= 1"),
        ({"dropout": (0.5, 1.0)}, "dropout < 1"),
        ({"dropout": (-0.1, 0.5)}, "dropout >= 0"),
        ({"weight_decay": (0.0, 0.1)}, "weight_decay > 0"),
        ({"members": 11}, "1 <= members <= 10"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        HyperDeepEnsemble(**settings)


# regression: each of these was wrong once
@pytest.mark.slow
def test_members_are_chosen_by_the_rows_of_this_run():
    def foretold(begin):
        head = db.HyperDeepEnsemble(training=db.Training(steps=2))
        tried(begin(db.Study(SQUARE, seed=0, n_initial=4, classifier=head)), 12)
        return len(head.foretold.unique(dim=1)[0])  # before they are foretold all are alike

    assert foretold(with_a_task) == foretold(lambda study: study) == 8


def test_members_are_chosen_by_rows_that_were_told():
    head = db.HyperDeepEnsemble(training=db.Training(steps=2))
    study = tried(db.Study(SQUARE, seed=0, n_initial=4, classifier=head), 10)
    study.ask(70)
    chosen = head.chosen.clone()
    study.ask()  # of none of the last rows anybody knows who was right
    assert torch.equal(head.chosen, chosen)


def test_a_range_of_a_hyper_ensemble_is_finite():
    with pytest.raises(SettingError, match="finite"):
        db.HyperDeepEnsemble(weight_decay=(1e-6, math.nan))
