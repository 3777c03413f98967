"""Deep heads as ordinary LightningModules: what is given, what a subclass overrides, what a Trainer does in a step."""

import json
from functools import partial

import pytest
import torch
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import LearningRateMonitor
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, ExponentialLR, ReduceLROnPlateau

import deepbore as db
from deepbore import Study, ThresholdLabels, Training
from deepbore.classifiers import Classifier, Link
from deepbore.component import describe, make
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from trainers import quiet_trainer
from tried import tried

SPACE = TOY_SPACES["continuous"]
QUICK = Training(steps=6)
HEADS = (db.MLPClassifier, db.DeepEnsemble, db.HyperDeepEnsemble, db.MCDropout, db.LaplaceGGN, db.DeepPLS)
SGD = partial(torch.optim.SGD, lr=0.1, momentum=0.9)


def own(features, outputs):
    return nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, outputs))


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2


def scores(head, n=120, epochs=3):
    fitted = fit(head, toy_data(SPACE, n, ThresholdLabels(0.3)), epochs=epochs)
    assert fitted.ready
    return fitted.posterior(SPACE.points.sobol(50, seed=0)).mean.detach()


@pytest.mark.parametrize("network", [None, own])
@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
def test_fast_steps_those_by_autograd_and_those_of_a_trainer_are_equal_to_rounding(head, network):
    class ByAutograd(head):
        def loss(self, outputs, z, weight):
            return super().loss(outputs, z, weight)

    class ByTrainer(head):
        def training_step(self, batch, batch_idx=0):
            assert self.trainer.training
            return super().training_step(batch, batch_idx)

    settings = {} if network is None or head is db.HyperDeepEnsemble else {"network": network}
    fast, by_autograd, by_trainer = (scores(kind(training=QUICK, **settings)) for kind in (head, ByAutograd, ByTrainer))
    assert torch.allclose(fast, by_autograd, atol=1e-5)
    assert torch.allclose(fast, by_trainer, atol=1e-5)


@pytest.mark.parametrize("activation", ["gelu", "SiLU", "torch.nn.Mish", nn.Softplus, nn.LeakyReLU(0.2), torch.sin])
def test_any_activation_of_torch_has_the_gradients_of_autograd(activation):
    class ByAutograd(db.DeepPLS):
        def loss(self, outputs, z, weight):
            return super().loss(outputs, z, weight)

    one, other = (scores(kind(activation=activation, training=QUICK)) for kind in (db.DeepPLS, ByAutograd))
    assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("activation", ["gleu", nn.Softmax, nn.PReLU, nn.RReLU, 5])
def test_what_is_no_elementwise_function_is_refused_as_an_activation(activation):
    with pytest.raises(SettingError, match="activation must be a name"):
        db.DeepEnsemble(activation=activation)


# --- optimizers, schedules, losses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, SGD, partial(torch.optim.RMSprop, lr=1e-2)])
def test_steps_are_those_of_the_given_optimizer(optimizer):
    data = toy_data(SPACE, 40, ThresholdLabels(0.3))
    ours = fit(db.MLPClassifier(training=Training(steps=5, batch_size=1000), optimizer=optimizer), data, epochs=2)
    start = db.MLPClassifier().bind(SPACE)
    batch, theirs = data.labelled(), optimizer(start.net.parameters())
    for _ in range(10):
        theirs.zero_grad()
        start.loss(start.net(start.encode(batch.points)), batch.z, batch.weight).backward()
        theirs.step()
    for one, other in zip(ours.net.parameters(), start.net.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(("interval", "steps"), [("epoch", 3), ("step", 18)])
@pytest.mark.parametrize("by_trainer", [False, True])
def test_a_schedule_goes_on_over_all_iterations_by_epochs_or_by_steps(interval, steps, by_trainer):
    class ByTrainer(db.MLPClassifier):
        def on_train_start(self):
            pass

    head = (ByTrainer if by_trainer else db.MLPClassifier)(
        training=Training(steps=6, lr_interval=interval), optimizer=SGD, lr_scheduler=partial(ExponentialLR, gamma=0.9)
    )
    for _ in range(3):  # three fits
        scores(head, epochs=1)
    (group,) = head.optimization.optimizers[0].param_groups
    assert group["lr"] == pytest.approx(0.1 * 0.9**steps)


@pytest.mark.parametrize(
    ("loss", "link"),
    [
        (nn.BCEWithLogitsLoss(), Link.LOGIT),
        (nn.functional.binary_cross_entropy_with_logits, Link.LOGIT),
        (lambda scores, z: nn.functional.softplus(-scores * (2 * z - 1)), Link.LOGIT),
        (nn.MSELoss(), Link.LOGIT),
    ],
)
def test_a_loss_of_rows_is_weighted_row_by_row(loss, link):
    head = db.DeepEnsemble(members=2, loss=loss).bind(SPACE)
    outputs, z = torch.randn(2, 9, 1, generator=torch.Generator().manual_seed(0)), torch.ones(9, 1)
    weight = torch.linspace(0.1, 1, 9)
    by_hand = sum(float(weight[i] * loss(outputs[m, i], z[i])) / 9 for m in range(2) for i in range(9))
    assert float(head.loss(outputs, z, weight)) == pytest.approx(by_hand, rel=1e-5)
    assert head.link is link


def test_a_loss_of_the_whole_minibatch_is_taken_as_it_is():
    def ranking(scores, z):
        good, bad = scores[z >= 0.5], scores[z < 0.5]
        return nn.functional.softplus(bad[:, None] - good).mean() if len(good) and len(bad) else scores.sum() * 0

    assert scores(db.MLPClassifier(loss=ranking), epochs=8).std() > 0.1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"optimizer": torch.optim.LBFGS}, "LBFGS"),
        ({"optimizer": partial(torch.optim.LBFGS, lr=1.0)}, "LBFGS"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)], lr=1.0)}, "optimizer must be a function"),
        ({"optimizer": "adam"}, "optimizer must be a function"),
        ({"loss": nn.BCEWithLogitsLoss}, "loss must be a function"),
        ({"optimizer": SGD, "training": Training(learning_rate=1.0)}, "its own learning rate"),
        ({"rows": 0}, "rows >= 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_plain_words(settings, says):
    with pytest.raises(SettingError, match=says):
        db.DeepEnsemble(**settings)


def test_an_lbfgs_of_a_subclass_is_refused_too():
    class ByLBFGS(db.MLPClassifier):
        def configure_optimizers(self):
            return torch.optim.LBFGS(self.net.parameters())

    with pytest.raises(SettingError, match="LBFGS"):
        scores(ByLBFGS())


# --- what a subclass may override ------------------------------------------------------------------------------------


class ByMomentum(db.DeepEnsemble):
    def configure_optimizers(self):
        return SGD(self.parameters())


class Tempered(db.MLPClassifier):
    """Has a parameter of its own, which its loss learns."""

    def build(self, space, outputs):
        super().build(space, outputs)
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def loss(self, outputs, z, weight):
        return super().loss(outputs / self.temperature, z, weight)


class Logs(db.MLPClassifier):
    def training_step(self, batch, batch_idx=0):
        x, z, _weight = batch
        loss = nn.functional.mse_loss(self.net(x)[0], z)
        self.log("mine", loss)
        return {"loss": loss}


class Clips(db.MLPClassifier):
    clipped = 0

    def configure_gradient_clipping(self, optimizer, gradient_clip_val=None, gradient_clip_algorithm=None):
        self.clip_gradients(optimizer, gradient_clip_val=0.1, gradient_clip_algorithm="norm")
        self.clipped += 1


class ByHand(db.MLPClassifier):
    """Optimizes by hand, as Lightning documents it."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx=0):
        loss = super().training_step(batch, batch_idx)
        self.optimizers().zero_grad()
        self.manual_backward(loss)
        self.optimizers().step()


@pytest.mark.parametrize("head", [ByMomentum, Tempered, Logs, Clips, ByHand])
def test_a_subclass_may_override_what_it_may_in_any_lightning_module(head):
    study = tried(Study(SQUARE, seed=0, n_initial=4, classifier=(own := head(training=QUICK))), 7)
    assert own.ready
    study.optimize(bowl, 2)
    assert len(study.trials) == 9
    if head is Tempered:
        assert float(own.temperature) != 2.0
    if head is Clips:
        assert own.clipped >= 6


def test_within_another_classifier_overridden_steps_are_taken_too():
    head = db.Calibrated(ByMomentum(training=QUICK))
    assert isinstance(
        fit(head, toy_data(SPACE, 60, ThresholdLabels(0.3))).base.optimization.optimizers[0], torch.optim.SGD
    )
    assert head.ready


# --- what a Trainer does in a step -----------------------------------------------------------------------------------


def optimized(head, n=9, **settings):
    study = Study(SQUARE, seed=0, n_initial=4, classifier=head)
    study.optimize(bowl, n, trainer=quiet_trainer(max_epochs=-1, **settings))
    return study


@pytest.mark.parametrize("head", HEADS, ids=lambda head: head.__name__)
def test_each_head_learns_in_16_bits_with_clipping_and_accumulation(head):
    plan = {"precision": "bf16-mixed", "gradient_clip_val": 0.5, "accumulate_grad_batches": 2}
    study = optimized(head(training=QUICK), 7, **plan)
    assert study.classifier.ready
    assert next(study.classifier.net.parameters()).dtype is torch.float32


def test_clipping_and_accumulation_change_the_weights():
    whole = optimized(db.MLPClassifier(training=QUICK))
    for settings in ({"gradient_clip_val": 1e-3}, {"accumulate_grad_batches": 3}):
        other = optimized(db.MLPClassifier(training=QUICK, optimizer=SGD), **settings)
        assert other.trials[-1].params != whole.trials[-1].params


def test_callbacks_see_each_step(tmp_path):
    class Norms(Callback):
        seen = 0

        def on_before_optimizer_step(self, trainer, pl_module, optimizer):
            self.seen += pl_module.net.layers[0].weight.grad is not None

    norms = Norms()
    monitor, logger = LearningRateMonitor("step"), CSVLogger(tmp_path, name="", version="")
    optimized(
        db.MLPClassifier(training=QUICK, optimizer=SGD),
        7,
        callbacks=[norms, monitor],
        logger=logger,
        log_every_n_steps=1,
    )
    assert norms.seen >= 3 * 6
    assert "lr-SGD" in (tmp_path / "metrics.csv").read_text()


@pytest.mark.parametrize("settings", [{"precision": "bf16-mixed"}, {"accumulate_grad_batches": 2}])
def test_what_only_networks_can_follow_is_refused_for_others(settings):
    with pytest.raises(SettingError, match="only a single head of networks"):
        optimized(db.KernelPLS(), **settings)


def test_weights_of_16_bits_are_refused():
    with pytest.raises(SettingError, match="bf16-mixed"):
        optimized(db.MLPClassifier(), precision="bf16-true")


# --- journals --------------------------------------------------------------------------------------------------------

KINDS = {
    "Adam": {},
    "momentum": {"optimizer": SGD},
    "by epochs": {"optimizer": SGD, "lr_scheduler": partial(ExponentialLR, gamma=0.7)},
    "by steps": {
        "lr_scheduler": partial(CosineAnnealingWarmRestarts, T_0=10),
        "training": Training(steps=6, lr_interval="step"),
    },
    "plateau": {"lr_scheduler": partial(ReduceLROnPlateau, patience=0, factor=0.5)},
    "loss": {"loss": nn.SmoothL1Loss(beta=0.3), "activation": nn.GELU, "rows": None},
}


@pytest.mark.parametrize(
    "settings", [{}, {"gradient_clip_val": 0.5}, {"precision": "bf16-mixed"}], ids=["fast", "clip", "16"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_study_goes_on_bit_for_bit_by_what_its_journal_says_of_the_head(kind, settings, tmp_path):
    def head():
        return db.MLPClassifier(**{"training": QUICK, **KINDS[kind]})

    def run(study, n):
        study.optimize(bowl, n, trainer=quiet_trainer(max_epochs=-1, **settings))

    whole = Study(SQUARE, seed=0, n_initial=4, classifier=head())
    run(whole, 10)
    begun = Study(SQUARE, seed=0, n_initial=4, classifier=head(), journal=tmp_path / "run.jsonl")
    run(begun, 7)
    begun.close()
    again = Study.load(tmp_path / "run.jsonl")
    run(again, 3)
    assert [trial.params for trial in again.trials] == [trial.params for trial in whole.trials]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_of_torch_stands_in_a_journal_by_name(kind):
    described = json.loads(json.dumps(describe(db.DeepEnsemble(**KINDS[kind]))))
    assert "unknown" not in json.dumps(described)
    assert describe(make(described, Classifier)) == described


@pytest.mark.parametrize(
    "path", ["os.system", "torch.hub.load", "torch.nn.functional.torch", "torch.nn.modules", "torch.load"]
)
def test_a_journal_names_nothing_but_modules_losses_and_optimizers_of_torch(path):
    for loss in ({"factory": path}, {"class_path": path, "init_args": {}}):
        with pytest.raises(SettingError):
            make({"class_path": "deepbore.classifiers.DeepEnsemble", "init_args": {"loss": loss}}, Classifier)


def test_a_function_of_ones_own_is_given_again(tmp_path):
    head = partial(db.MLPClassifier, network=own, training=QUICK)
    with pytest.raises(SettingError, match="Give the part itself"):
        make(describe(head()), Classifier)
    tried(Study(SQUARE, seed=0, n_initial=4, classifier=head(), journal=tmp_path / "run.jsonl"), 6).close()
    assert tried(Study.load(tmp_path / "run.jsonl", classifier=head()), 1).classifier.ready


# --- rows and networks -----------------------------------------------------------------------------------------------


def test_all_rows_are_seen_in_time_at_constant_steps():
    seen, ever = [], set()

    class Records(db.MLPClassifier):
        def loss(self, outputs, z, weight):
            seen.append(z)
            return super().loss(outputs, z, weight)

    data = toy_data(SPACE, 1000, ThresholdLabels(0.3))
    batch = data.labelled()
    batch = batch.__class__(batch.points, torch.arange(len(batch.z))[:, None] / len(batch.z), batch.weight)
    head = Records(training=Training(steps=10, batch_size=20), rows=None).bind(SPACE)
    for _ in range(100):
        seen.clear()
        head.fit(batch)
        assert [len(z) for z in seen] == [20] * 10
        ever |= set(torch.cat(seen).flatten().tolist())
    assert len(ever) == batch.n_learned


def test_a_module_is_copied_and_members_have_weights_of_their_own():
    given = own(2, 1)
    single = db.MLPClassifier(network=given).bind(SQUARE)
    assert torch.equal(single.net.members[0][0].weight, given[0].weight)
    several = db.DeepEnsemble(network=given, members=2).bind(SQUARE)
    first, second = (member[0].weight for member in several.net.members)
    assert not torch.equal(first, second)
    assert first is not given[0].weight


class Bare(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(2, 1))

    def forward(self, x):
        return x @ self.slope


def test_a_module_whose_copies_would_be_equal_makes_no_ensemble():
    assert fit(db.MLPClassifier(network=Bare(), training=QUICK), toy_data(SQUARE)).ready
    with pytest.raises(SettingError, match="reset_parameters"):
        db.DeepEnsemble(network=Bare())
