"""`Calibrated`: maps against scikit-learn's, what the folds must not see, and runs with it, warm and resumed."""

import functools
import logging

import numpy as np
import pytest
import torch
from scipy.special import log_ndtr
from scipy.stats import rankdata
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from torchmetrics.functional.classification import binary_calibration_error

from deepbore import (
    Calibrated,
    DeepEnsemble,
    ExpectedProbability,
    GPClassifier,
    KernelPLS,
    MLPClassifier,
    RandomForest,
    Study,
    ThresholdLabels,
    Training,
    UpperConfidenceBound,
    XGBoost,
    minimize,
)
from deepbore.classifiers import Classifier, Link, PerColumn, PointEstimate
from deepbore.classifiers.wrappers import METHODS, score_of_logit
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import LINE, SQUARE
from trainers import trainer_of
from tried import some_bowl

QUICK = Training(steps=30)

HEADS = {
    "MLPClassifier": lambda: MLPClassifier(training=QUICK),
    "RandomForest": lambda: RandomForest(trees=20),
    "XGBoost": lambda: XGBoost(rounds=20),
    "KernelPLS": KernelPLS,
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def noisy_data(n, seed=0, labels=None):
    """A bowl under so much noise that no classifier can be sure."""
    data = toy_data(SQUARE, 0, labels or ThresholdLabels(1 / 3))
    rng = np.random.default_rng(seed)
    x, y = rng.random((2, n))
    data.observations.add({"x": x, "y": y}, (x - 0.5) ** 2 + (y - 0.5) ** 2 + 0.1 * rng.normal(size=n))
    return data


def scores_and_labels(n=120, seed=0):
    rng = np.random.default_rng(seed)
    scores = 5 * rng.normal(size=n) + 2
    return scores, (rng.random(n) < 1 / (1 + np.exp(-0.4 * scores + 1))).astype(float), rng.random(n) + 0.5


def calibrated_logit(method, data, scores):
    fitted, logit = METHODS[method]
    return logit(fitted(*data), torch.from_numpy(scores))


# --- the maps --------------------------------------------------------------------------------------------------------


def test_platts_map_is_scikit_learns_sigmoid():
    scores, z, weight = scores_and_labels()
    theirs = _SigmoidCalibration().fit(scores, z, weight)
    grid = np.linspace(-20, 20, 50)
    assert np.allclose(calibrated_logit("platt", (scores, z, weight), grid).sigmoid(), theirs.predict(grid), atol=1e-4)


def test_the_isotonic_map_is_scikit_learns_within_what_the_data_can_tell():
    scores, z, weight = scores_and_labels()
    least = 1 / (weight.sum() + 2)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, z, weight)
    ours = calibrated_logit("isotonic", (scores, z, weight), scores).sigmoid()
    assert least < 0.01
    assert np.allclose(ours, theirs.predict(scores).clip(least, 1 - least))
    theirs = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(scores, z, weight)
    grid = np.linspace(-20, 20, 500)  # between the scores and beyond
    ours = calibrated_logit("isotonic", (scores, z, weight), grid).sigmoid()
    assert np.allclose(ours, theirs.predict(grid))
    assert (ours.diff() >= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_graded_labels_count_in_part_for_both_classes(method):
    scores, _, weight = scores_and_labels()
    z = 1 / (1 + np.exp(-scores / 5)) * np.random.default_rng(1).random(len(scores))
    parts = np.tile(scores, 2), np.repeat([1.0, 0.0], len(scores)), np.concatenate([weight * z, weight * (1 - z)])
    whole, apart = (calibrated_logit(method, data, scores) for data in ((scores, z, weight), parts))
    assert torch.allclose(whole, apart, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scores", [np.arange(20.0)[::-1].copy(), np.ones(20)], ids=["falling", "equal"])
def test_scores_that_do_not_rise_with_the_labels_give_no_map(method, scores):
    assert METHODS[method][0](scores, np.repeat([0.0, 1.0], 10), np.ones(20)).numel() == 0


@pytest.mark.parametrize("method", METHODS)
def test_maps_are_finite_for_separable_and_huge_scores(method):
    separable = np.repeat([-1e4, 1e4], 10) + np.arange(20), np.repeat([0.0, 1.0], 10), np.ones(20)
    logit = calibrated_logit(method, separable, np.array([-1e6, -1e4, 0.0, 1e4, 1e6]))
    assert logit.isfinite().all()
    assert (logit.diff() >= 0).all()
    assert logit[1] < -1.5 < 1.5 < logit[3]
    in_single = METHODS[method][1](METHODS[method][0](*separable), torch.tensor([-1e4, 0.0, 1e4]))
    assert in_single.dtype == torch.float32
    assert torch.allclose(in_single.double(), logit[1:4], atol=1e-3)


# --- the folds -------------------------------------------------------------------------------------------------------


class Memory(Classifier):
    """Scores what it has learned with its label and anything else with a half, and remembers what it was asked."""

    link = Link.IDENTITY

    def build(self, space, outputs):
        self.known, self.asked = {}, []

    def fit(self, batch):
        self.known.update(zip(map(tuple, batch.points.tolist()), batch.z[:, 0].tolist(), strict=True))
        self.lightning_optimizer().step()
        return {}

    def posterior(self, points):
        self.check_points(points)
        self.asked.append(len(points))
        scores = torch.tensor([self.known.get(tuple(point), 0.5) for point in points.tolist()])
        return PointEstimate(scores, self.link, "Memory")


def test_no_fold_ever_learns_its_own_rows():
    data = noisy_data(40)
    classifier = Calibrated(Memory(), folds=4)
    for n in (40, 47, 90):
        x = np.random.default_rng(n).random((2, n - len(data.observations)))
        data.observations.add({"x": x[0], "y": x[1]}, x[0])
        fit(classifier, data, epochs=2)
        points = [tuple(point) for point in data.observations.points.tolist()]
        assert set(classifier.base.known) == set(points)
        for number, fold in enumerate(classifier.folds):
            assert set(fold.known) == {point for row, point in enumerate(points) if row % 4 != number}


def test_among_very_many_rows_the_folds_still_keep_apart_and_the_cost_is_flat():
    data = noisy_data(30_000)
    classifier = fit(Calibrated(Memory(), folds=3, rows=90), data, epochs=2)
    own = {tuple(point): row % 3 for row, point in enumerate(data.observations.points.tolist())}
    for number, fold in enumerate(classifier.folds):
        assert number not in {own[point] for point in fold.known}
        assert 7_000 < len(fold.known) < 2 * 7_000  # two thirds of 10 000, others each time
        assert max(fold.asked) <= 90


def test_a_memory_is_not_trusted():
    """It scores its own rows perfectly, and others all alike: held-out scores say nothing."""
    data = noisy_data(60)
    classifier = Calibrated(Memory())
    assert trainer_of(classifier, data).callback_metrics["calibrated"] == 0
    assert torch.equal(classifier.posterior(data.observations.points).mean, data.labelled().z[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_every_head_is_calibrated_and_keeps_its_ranking(make, method):
    classifier = Calibrated(make(), method)
    assert trainer_of(classifier, noisy_data(100), 3).callback_metrics["calibrated"] == 1
    points = SQUARE.points.sample(200, generator(1))
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
    data, points = noisy_data(2000, labels=ThresholdLabels(0.2)), SQUARE.points.sample(2000, generator(1))
    classifier = fit(Calibrated(KernelPLS(rows=150), folds=2, rows=1000), data, epochs=3)
    assert classifier.base.probability(points).mean() == pytest.approx(0.2, abs=0.05)
    assert classifier.probability(points).mean() == pytest.approx(0.2, abs=0.05)


def test_platt_moves_a_networks_logits_and_keeps_their_gradients():
    classifier = fit(Calibrated(DeepEnsemble(training=QUICK)), noisy_data(100), epochs=3).double()
    points = SQUARE.points.sample(20, generator(1)).requires_grad_(True)
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
    points = SQUARE.points.sample(20, generator(1))
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
    points = SQUARE.points.sample(50, generator(1))
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
    points = SQUARE.points.sample(20, generator(1))
    ours, theirs = classifier.posterior(points), classifier.base.posterior(points)
    assert torch.equal(ours.mean, theirs.mean)
    assert torch.equal(ours.std, theirs.std)
    told = [record.levelname for record in caplog.records if record.name.endswith("wrappers")]
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
        assert classifier.posterior(SQUARE.points.sample(9, generator(1))).mean.isfinite().all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)
def test_checkpoints_hold_tensors_and_the_map(make, method, tmp_path):
    classifier = Calibrated(make(), method)
    trainer = trainer_of(classifier, noisy_data(60), 2)
    trainer.save_checkpoint(tmp_path / "some.ckpt")
    checkpoint = torch.load(tmp_path / "some.ckpt", weights_only=True)
    assert len(checkpoint["optimizer_states"]) == len(classifier.kept_optimizers()) + 1
    fresh = Calibrated(make(), method).bind(SQUARE)
    fresh.load_state_dict(checkpoint["state_dict"])
    points = SQUARE.points.sample(50, generator(1))
    assert trainer.callback_metrics["calibrated"] == 1
    assert torch.equal(fresh.probability(points), classifier.probability(points))
    assert torch.equal(fresh.folds[1].posterior(points).mean, classifier.folds[1].posterior(points).mean)


def test_one_stream_of_random_numbers_serves_all_parts():
    classifier = Calibrated(Calibrated(MLPClassifier()))
    classifier.generator = generator(5)
    assert all(part.generator is classifier.generator for part in [*classifier.parts, *classifier.base.parts])
    weights = [part.net.layers[0].weight for part in classifier.bind(SQUARE).base.parts]
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

    result = minimize(bowl, SQUARE, n_trials=25, classifier=make(), acquisition=UpperConfidenceBound(), seed=1)
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


THIRD = 1 / 3


@functools.cache
def ensemble(make):
    data = toy_data(SQUARE, 150, ThresholdLabels(THIRD))
    return fit(Calibrated(make(), folds=3, min_per_class=3, ensemble=True), data, epochs=2), data.labelled()


@pytest.mark.parametrize("make", [functools.partial(RandomForest, trees=20), functools.partial(XGBoost, rounds=20)])
def test_the_folds_average_probabilities_by_scikit_learns_sigmoid(make):
    head, batch = ensemble(make)
    query, number = SQUARE.points.sobol(64, seed=1), torch.arange(len(batch)) % 3
    expected = np.zeros(64)
    for fold, classifier in enumerate(head.folds):
        rows = batch.take((number == fold).nonzero()[:, 0])
        held_out = classifier.posterior(rows.points).mean.double().numpy()
        sigmoid = _SigmoidCalibration().fit(held_out, rows.z[:, 0].numpy())
        expected += sigmoid.predict(classifier.posterior(query).mean.double().numpy()) / 3
    score = ExpectedProbability(by="samples")(head.posterior(query), 1.0)
    assert np.allclose(head.link.probability(score).numpy(), expected, atol=1e-3)


def test_platts_maps_of_folds_change_a_ranking_where_one_map_keeps_it():
    make = functools.partial(RandomForest, trees=20)
    head, _ = ensemble(make)
    query = SQUARE.points.sobol(64, seed=1)
    plain = head.base.posterior(query).mean.numpy()
    data = toy_data(SQUARE, 150, ThresholdLabels(THIRD))
    single = fit(Calibrated(make(), folds=3, min_per_class=3), data, epochs=2)
    of_base = single.base.posterior(query).mean.numpy()
    assert (rankdata(single.posterior(query).mean.numpy()) == rankdata(of_base)).all()
    assert (rankdata(head.posterior(query).mean.numpy()) != rankdata(plain)).any()


BOTH = ["minimize", "minimize"]


@pytest.mark.slow
def test_a_map_for_several_columns_is_refused_and_a_map_of_each_is_not():
    with pytest.raises(SettingError, match=r"Give PerColumn\(Calibrated"):
        Calibrated(PerColumn(KernelPLS(), 2))
    Study(SQUARE, directions=BOTH, classifier=PerColumn(Calibrated(KernelPLS()), 2), seed=0).optimize(
        lambda p: [p["x"], p["y"]], 12
    )


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)


# regression: each of these was wrong once
@pytest.mark.slow
def test_folds_keep_this_run_s_rows_beside_those_of_earlier_tasks(monkeypatch):
    folds = {}
    learned = Calibrated._learn_folds

    def spy(self, batch, rows):
        of_this_run = self._fold(batch, rows)[batch.n_earlier :].tolist()
        for row, fold in enumerate(of_this_run):
            folds.setdefault(row, set()).add(fold)
        return learned(self, batch, rows)

    monkeypatch.setattr(Calibrated, "_learn_folds", spy)
    study = Study(LINE, classifier=Calibrated(KernelPLS()), n_initial=5, seed=0)
    x = np.random.default_rng(0).random(300)
    study.add({"x": x}, (x - 0.3) ** 2, task="old")
    go_on(study, 9)
    assert folds == {row: {row % 3} for row in range(8)}


@pytest.mark.slow
def test_a_pending_trial_is_of_no_class_to_calibrate_by():
    head = Calibrated(KernelPLS(), min_per_class=5)
    study = Study(SQUARE, seed=0, classifier=head, labels=ThresholdLabels(0.84))
    study.add(*some_bowl(13, 0))  # of which 2 are bad
    for params in SQUARE.decode(SQUARE.points.sobol(9, seed=0)):
        study.enqueue(params)
    study.ask(9)
    study.fit()
    points = SQUARE.points.sobol(20, seed=1)
    assert torch.equal(head.posterior(points).mean, head.base.posterior(points).mean)
