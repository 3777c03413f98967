"""`Calibrated` as a classifier: within runs, warm and resumed."""

import logging

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr
from torchmetrics.functional.classification import binary_calibration_error

from deepbore import (
    Calibrated,
    DeepEnsemble,
    GPClassifier,
    KernelPLS,
    MLPClassifier,
    RandomForest,
    ThresholdLabels,
    UpperConfidenceBound,
    XGBoost,
    minimize,
)
from deepbore.classifiers import Link, PointEstimate
from deepbore.classifiers.wrappers import METHODS, score_of_logit
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit
from test_calibrated import HEADS, QUICK, SPACE, generator, noisy_data


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_every_head_is_calibrated_and_keeps_its_ranking(make, method):
    classifier = fit(Calibrated(make(), method), noisy_data(100), epochs=3)
    assert classifier.trainer.callback_metrics["calibrated"] == 1
    points = SPACE.sample(200, generator(1))
    posterior, base = classifier.posterior(points), classifier.base.posterior(points)
    by_base = posterior.mean[base.mean.argsort(stable=True)]
    assert (by_base.diff() >= -1e-6).all()
    assert by_base[-1] > by_base[0]
    assert posterior.link is base.link
    assert (posterior.members is None) == (base.members is None)
    expected = classifier.link.probability(posterior.mean)
    assert torch.equal(classifier.probability(points), expected)
    assert ((expected > 0) & (expected < 1)).all()
    if "std" in classifier.capabilities:
        assert (posterior.std >= 0).all()
        assert torch.allclose(posterior.covariance().diagonal(), posterior.std.square(), atol=1e-6)
        assert posterior.sample(5, generator()).shape == (5, 200)


class Boaster(MLPClassifier):
    """A network that says ten times its logits."""

    def posterior(self, points):
        return PointEstimate(10 * super().posterior(points).mean, self.link, "Boaster")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [lambda: Boaster(training=QUICK), XGBoost], ids=["Boaster", "XGBoost"])
def test_an_overconfident_head_is_mended_on_data_it_has_not_seen(make, method):
    train, test = noisy_data(300), noisy_data(4000, seed=1).observations
    good = (test.values[:, 0] <= train.labelled().metrics["tau"]).long()

    def error(classifier):
        probability = fit(classifier, train, epochs=3).probability(test.points).detach()
        return float(binary_calibration_error(probability, good, n_bins=10))

    before, after = error(make()), error(Calibrated(make(), method))
    assert before > 0.12
    assert after < 0.6 * before


@pytest.mark.slow
def test_beyond_its_rows_probabilities_keep_the_true_proportion():
    """Version 0.1's coreset held too many good rows, so that the base's mean was half as large again."""
    data, points = noisy_data(2000, labels=ThresholdLabels(0.2)), SPACE.sample(2000, generator(1))
    classifier = fit(Calibrated(KernelPLS(rows=150), folds=2, rows=1000), data, epochs=3)
    assert classifier.base.probability(points).mean() == pytest.approx(0.2, abs=0.05)
    assert classifier.probability(points).mean() == pytest.approx(0.2, abs=0.05)


def test_platt_moves_a_networks_logits_and_keeps_their_gradients():
    classifier = fit(Calibrated(DeepEnsemble(training=QUICK)), noisy_data(100), epochs=3).double()
    points = SPACE.sample(20, generator(1)).requires_grad_(True)
    slope, intercept = classifier.get_extra_state()["map"]
    base, ours = classifier.base.posterior(points), classifier.posterior(points)
    assert torch.allclose(ours.members, slope * base.members + intercept)
    assert torch.allclose(ours.mean, slope * base.mean + intercept)
    assert torch.allclose(ours.std, slope * base.std)
    assert torch.allclose(ours.covariance(), slope.square() * base.covariance())
    for mapped, plain in ((ours.mean, base.mean), (ours.std, base.std)):
        mine, expected = (torch.autograd.grad(v.sum(), points, retain_graph=True)[0] for v in (mapped, plain))
        assert torch.allclose(mine, slope * expected, atol=1e-9)


@pytest.mark.slow
def test_a_kernels_deviation_and_samples_go_through_the_map_too():
    """B7 of the audit: in version 0.1 samples of a calibrated kernel raised."""
    classifier = fit(Calibrated(KernelPLS()), noisy_data(100), epochs=2)
    points = SPACE.sample(20, generator(1))
    slope, intercept = classifier.get_extra_state()["map"]
    base, ours = classifier.base.posterior(points), classifier.posterior(points)
    mean, std = base.mean, base.std
    half = (slope * (mean + std) + intercept).sigmoid() - (slope * (mean - std) + intercept).sigmoid()
    assert torch.allclose(ours.std, half / 2)
    assert torch.allclose(ours.mean, (slope * mean + intercept).sigmoid())
    expected = (slope * base.sample(7, generator()) + intercept).sigmoid()
    assert torch.allclose(ours.sample(7, generator()), expected)
    correlation = base.covariance() / (std[:, None] * std)
    assert torch.allclose(ours.covariance(), correlation * ours.std[:, None] * ours.std)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_probits_score_stays_a_probit(method):
    classifier = fit(Calibrated(GPClassifier(), method), noisy_data(100), epochs=2)
    points = SPACE.sample(50, generator(1))
    with torch.no_grad():
        base, ours = classifier.base.posterior(points).mean, classifier.posterior(points).mean
    expected = METHODS[method][1](classifier.get_extra_state()["map"], base).sigmoid()
    assert classifier.link is Link.PROBIT
    assert torch.allclose(torch.special.ndtr(ours), expected)


def test_a_score_of_a_logit_has_its_probability_far_out_too():
    logit = torch.tensor([-700.0, -300.0, -40.0, -1.0, 0.0, 1.0, 40.0, 300.0, 700.0], dtype=torch.float64)
    probit = score_of_logit(logit, Link.PROBIT)
    assert probit.isfinite().all()
    assert (probit.diff() > 0).all()
    assert np.allclose(log_ndtr(probit[1:5]), -np.logaddexp(0, -logit[1:5]))
    assert torch.equal(probit, -probit.flip(0))
    assert torch.equal(score_of_logit(logit, Link.LOGIT), logit)
    assert torch.equal(score_of_logit(logit, Link.IDENTITY), logit.sigmoid())


@pytest.mark.slow
def test_too_few_of_a_class_change_nothing_and_are_told_once(caplog):
    caplog.set_level(logging.INFO, logger="deepbore")
    data = noisy_data(24)  # 8 are good
    classifier = fit(Calibrated(KernelPLS(), min_per_class=9), data, epochs=3)
    points = SPACE.sample(20, generator(1))
    ours, theirs = classifier.posterior(points), classifier.base.posterior(points)
    assert torch.equal(ours.mean, theirs.mean)
    assert torch.equal(ours.std, theirs.std)
    told = [record.levelname for record in caplog.records if record.name.endswith("calibrated")]
    assert told == ["INFO"]
    assert "KernelPLS is not calibrated yet: it takes 9 observations" in caplog.text
    fit(enough := Calibrated(KernelPLS(), min_per_class=8), data, epochs=1)
    assert not torch.equal(enough.posterior(points).mean, enough.base.posterior(points).mean)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 4, 12])
@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_the_fewest_data_do_no_harm(make, n):
    for method in METHODS:
        classifier = fit(Calibrated(make(), method, folds=5, min_per_class=1), noisy_data(n), epochs=2)
        assert classifier.posterior(SPACE.sample(9, generator(1))).mean.isfinite().all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_checkpoints_hold_tensors_and_the_map(make, method, tmp_path):
    classifier = fit(Calibrated(make(), method), noisy_data(60), epochs=2)
    classifier.trainer.save_checkpoint(tmp_path / "some.ckpt")
    checkpoint = torch.load(tmp_path / "some.ckpt", weights_only=True)
    assert len(checkpoint["optimizer_states"]) == 4
    fresh = Calibrated(make(), method).bind(SPACE)
    fresh.load_state_dict(checkpoint["state_dict"])
    points = SPACE.sample(50, generator(1))
    assert classifier.trainer.callback_metrics["calibrated"] == 1
    assert torch.equal(fresh.probability(points), classifier.probability(points))
    assert torch.equal(fresh.folds[1].posterior(points).mean, classifier.folds[1].posterior(points).mean)


def test_one_stream_of_random_numbers_serves_all_parts():
    classifier = Calibrated(Calibrated(MLPClassifier()))
    classifier.generator = generator(5)
    assert all(part.generator is classifier.generator for part in [*classifier.parts, *classifier.base.parts])
    weights = [part.net.layers[0].weight for part in classifier.bind(SPACE).base.parts]
    assert not torch.equal(weights[0], weights[1])


def test_what_the_base_declares_holds():
    assert [Calibrated(make()).kappa for make in (MLPClassifier, KernelPLS)] == [1.0, 2.0]
    heads = (MLPClassifier, KernelPLS, XGBoost, GPClassifier)
    assert [Calibrated(make()).link for make in heads] == [Link.LOGIT, Link.IDENTITY, Link.LOGIT, Link.PROBIT]
    assert [Calibrated(make()).capabilities for make in (KernelPLS, XGBoost, RandomForest)] == [
        {"std"},
        frozenset(),
        {"std", "members"},
    ]
    assert [Calibrated(make()).differentiable for make in (MLPClassifier, RandomForest)] == [True, False]
    assert not Calibrated(MLPClassifier(), "isotonic").differentiable


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "target"),
    [
        (lambda: Calibrated(KernelPLS(), folds=2, min_per_class=5), 1e-4),
        (lambda: Calibrated(RandomForest(trees=20), "isotonic", min_per_class=5), 2e-2),
    ],
    ids=["KernelPLS", "RandomForest"],
)
def test_it_optimises(make, target):
    def bowl(p):
        return (p["x"] - 0.31) ** 2 + (p["y"] - 0.05) ** 2

    result = minimize(bowl, SPACE, n_trials=25, classifier=make(), acquisition=UpperConfidenceBound(), seed=1)
    assert result.best_value < target < result.values[:10].min()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Calibrated(KernelPLS(), "beta"), r"one of \['isotonic', 'platt'\], but got method='beta'"),
        (lambda: Calibrated(KernelPLS(), folds=1), "folds >= 2"),
        (lambda: Calibrated(KernelPLS(), min_per_class=0), "min_per_class >= 1"),
        (lambda: Calibrated(KernelPLS(), rows=0), "rows >= 1"),
        (lambda: Calibrated(KernelPLS().bind(TOY_SPACES["finite"])), "bound already"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(SettingError, match=says):
        make()
