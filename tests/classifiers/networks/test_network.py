"""The training of networks: gradients by hand, steps, warm starts, and networks of a user's own."""

import math
import pickle

import pytest
import torch
from torch import nn

import deepbore as db
from deepbore import (
    DeepEnsemble,
    DeepPLS,
    KernelPLS,
    LaplaceGGN,
    MCDropout,
    MLPClassifier,
    Study,
    ThresholdLabels,
    Training,
    minimize,
)
from deepbore.classifiers.networks.stacked import ACTIVATIONS, StackedMLP
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from trainers import trainer_of
from tried import tried

SPACE = TOY_SPACES["continuous"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("make", [DeepEnsemble, DeepPLS])
def test_backpropagation_by_hand_agrees_with_autograd(activation, make):
    classifier = make(activation=activation, members=3)
    net = StackedMLP([5, 8, 6, 2], 3, activation, generator())
    x, z = torch.randn(11, 5, generator=generator(1)), torch.rand(11, 2, generator=generator(2))
    weight = torch.rand(11, generator=generator(3)) + 0.5
    net.backpropagate(x, lambda outputs: classifier.loss_gradient(outputs, z, weight))
    by_hand = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    classifier.loss(net(x), z, weight).backward()
    for ours, theirs in zip(by_hand, net.parameters(), strict=True):
        assert torch.allclose(ours, theirs.grad, atol=1e-6)


def test_stacked_members_compute_what_single_networks_do():
    net = StackedMLP([4, 7, 1], 2, "tanh", generator())
    x = torch.randn(6, 4, generator=generator(1))
    for member in range(2):
        layers = [nn.Linear(4, 7), nn.Linear(7, 1)]
        for ours, theirs in zip(net.layers, layers, strict=True):
            theirs.weight.data, theirs.bias.data = ours.weight[member].T, ours.bias[member, 0]
        single = nn.Sequential(layers[0], nn.Tanh(), layers[1])
        assert torch.allclose(net(x)[member], single(x), atol=1e-6)


def test_our_adam_steps_are_those_of_torch():
    training = Training(steps=7, batch_size=1000, learning_rate=0.01, weight_decay=0.01)
    data = toy_data(SPACE, 40, ThresholdLabels(0.3))
    ours = fit(MLPClassifier(training=training), data, epochs=3)
    start = MLPClassifier(training=training).bind(SPACE)
    batch = data.labelled()
    adam = torch.optim.Adam(start.net.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(21):
        adam.zero_grad()
        start.loss(start.net(start.encode(batch.points)), batch.z, batch.weight).backward()
        adam.step()
    for mine, theirs in zip(ours.net.parameters(), start.net.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


def test_steps_epochs_and_their_schedule():
    assert Training(steps=800, batch_size=64).epochs(512, 800) == 100  # the example of BORE J.3
    assert Training(steps=800, batch_size=64).epochs(10, 800) == 800
    annealed = Training(steps=100, half_life=10)
    assert [annealed.steps_at(t) for t in (0, 10, 10_000)] == [100, 63, 25]


def test_warm_starts_go_on_and_cold_ones_begin_again():
    data = toy_data(SPACE, labels=ThresholdLabels(0.3))
    losses = {}
    for warm in (True, False):
        classifier = MLPClassifier(training=Training(steps=20, warm_start=warm))
        fit(classifier, data, epochs=1)
        first = float(classifier.trainer.callback_metrics["loss"])
        fit(classifier, data, epochs=10)
        losses[warm] = (first, float(classifier.trainer.callback_metrics["loss"]))
    assert losses[True][1] < 0.5 * losses[True][0]
    assert losses[False][1] > 0.7 * losses[False][0]


@pytest.mark.slow
def test_patience_stops_when_the_loss_no_longer_falls():
    data = toy_data(SPACE, labels=ThresholdLabels(0.3))
    classifier = MLPClassifier(training=Training(steps=100_000, learning_rate=0.05, patience=5))
    fit(classifier, data, epochs=1)
    assert float(classifier.trainer.callback_metrics["accuracy"]) > 0.9


def test_metrics_of_each_iteration_are_logged():
    for make, own in ((DeepEnsemble, "epochs"), (KernelPLS, "rows")):
        metrics = trainer_of(make(), toy_data(SPACE, labels=ThresholdLabels(0.3)), 5).callback_metrics
        assert {"loss", own, "accuracy", "calibration_error", "auroc"} <= set(metrics)
        assert metrics["auroc"] > 0.9


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Training(steps=0), "steps >= 1"),
        (lambda: Training(learning_rate=-1), "learning_rate > 0"),
        (lambda: Training(weight_decay=-1), "weight_decay >= 0"),
        (lambda: Training(patience=0), "patience >= 1"),
        (lambda: DeepEnsemble(members=0), "members >= 1"),
        (lambda: MLPClassifier(activation="gleu"), "activation must be a name"),
        (lambda: MLPClassifier().bind(SPACE).bind(TOY_SPACES["finite"]), "bound to another"),
        (lambda: MLPClassifier().posterior(torch.zeros(1, 3)), "know its space"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(SettingError, match=says):
        make()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 0}, "steps >= 1"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"batch_size": 0}, "batch_size >= 1"),
        ({"learning_rate": 0.0}, "learning_rate > 0"),
        ({"weight_decay": -0.1}, "weight_decay >= 0"),
        ({"patience": 0}, "patience >= 1"),
        ({"half_life": 0.0}, "half_life > 0"),
    ],
)
def test_bad_settings_of_the_training_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        Training(**settings)


def test_bad_settings_of_a_network_are_refused():
    with pytest.raises(SettingError, match="members >= 1"):
        DeepEnsemble(members=0)
    with pytest.raises(SettingError, match=r"activation must be a name, .*'gleu'.* There are .*gelu"):
        DeepEnsemble(activation="gleu")


QUICK = Training(steps=50)


def data():
    return toy_data(TOY_SPACES["continuous"], 60, ThresholdLabels(0.3))


def dropping(features, outputs):
    return nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, outputs))


@pytest.mark.parametrize("head", [MLPClassifier, LaplaceGGN])
def test_what_a_network_draws_while_it_learns_follows_the_seed_of_the_run(head):
    weights = []
    for seed in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            before = torch.random.get_rng_state()
            trained = fit(head(network=dropping, training=QUICK), data(), epochs=1)
            assert torch.equal(torch.random.get_rng_state(), before)
        weights.append(nn.utils.parameters_to_vector(trained.net.parameters()))
    assert torch.equal(*weights)


class Alternating(nn.Module):
    """Learns by one layer first, and by another one later."""

    def __init__(self, features, outputs):
        super().__init__()
        self.first, self.second, self.passes = nn.Linear(features, outputs), nn.Linear(features, outputs), 0

    def forward(self, x):
        self.passes += self.training
        return self.first(x) if self.passes <= 2 else self.second(x)


def test_a_network_some_of_whose_weights_move_late_learns_them():
    trained = fit(MLPClassifier(network=Alternating, training=QUICK), data(), epochs=1)
    assert trained.ready
    assert trained.optimizers_made().optimizers[0].state[trained.net.members[0].second.weight]["step"] > 10


# regression: each of these was wrong once
@pytest.mark.parametrize("head", [MLPClassifier, DeepEnsemble, LaplaceGGN, MCDropout])
@pytest.mark.parametrize(
    ("network", "says"),
    [
        (nn.Sequential(nn.Linear(7, 1), nn.Dropout()), "fails for two rows"),
        (lambda features: nn.Linear(features, 1), "takes 1 positional argument|too many positional"),
        (lambda _, outputs: nn.Linear(7, outputs), "fails for two rows"),
        (lambda features, _: nn.Linear(features, 3), r"makes \(2, 3\)"),
        (lambda features, outputs: nn.Sequential(nn.Linear(features, outputs), nn.Flatten(0)), r"makes \(2,\)"),
        (lambda _features, _outputs: 3, "made 3"),
    ],
    ids=["module", "one argument", "inputs", "outputs", "flat", "number"],
)
def test_a_network_of_ones_own_is_tried_before_any_work(head, network, says):
    evaluated = []
    with pytest.raises(SettingError, match=says):
        minimize(evaluated.append, SQUARE, 12, classifier=head(network=network))
    assert not evaluated


NETWORKS = (db.MLPClassifier, db.DeepEnsemble, db.HyperDeepEnsemble, db.MCDropout, db.LaplaceGGN)


@pytest.mark.parametrize("head", NETWORKS, ids=lambda head: head.__name__)
def test_a_study_with_a_network_goes_through_pickle(head):
    study = tried(db.Study(SQUARE, seed=0, n_initial=3, classifier=head(training=db.Training(steps=5))), 5)
    again = pickle.loads(pickle.dumps(study))
    assert again.ask()[0].params == study.ask()[0].params


class WithASpareLayer(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.used, self.spare = nn.Linear(features, outputs), nn.Linear(features, 7)

    def forward(self, x):
        return self.used(x)


def test_a_network_may_have_parameters_that_its_output_does_not_hang_on():
    head = db.MLPClassifier(network=WithASpareLayer, training=db.Training(steps=3))
    assert fit(head, toy_data(SQUARE)).ready


def test_a_network_of_the_users_own_leaves_every_global_stream_alone(monkeypatch):
    reseeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded.append)
    before = torch.get_rng_state()
    head = db.MLPClassifier(network=WithASpareLayer)
    head.generator = torch.Generator().manual_seed(0)
    head.bind(SQUARE)
    assert torch.equal(torch.get_rng_state(), before)
    assert not reseeded


def test_training_for_no_number_of_epochs_is_refused():
    with pytest.raises(SettingError, match="epochs"):
        tried(db.Study(SQUARE), 3).fit(epochs=None)


def test_a_network_that_cannot_be_called_is_refused_where_it_is_given():
    with pytest.raises(SettingError, match="network"):
        db.MCDropout(network=5)


@pytest.mark.slow
def test_a_network_begins_anew_after_it_diverged():
    head = db.MLPClassifier()
    study = Study(SQUARE, seed=0, classifier=head)
    for _ in range(11):
        (trial,) = study.ask()
        study.tell(trial, trial.params["x"])
    study.fit()
    with torch.no_grad():
        next(iter(head.net.parameters())).fill_(math.nan)
    study.fit()
    assert head.ready
