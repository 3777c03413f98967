"""The loop as a Lightning callback: a run is one fit of an ordinary Trainer, also inside other fits."""

import numpy as np
import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

import deepbore
import deepbore as db
from deepbore import (
    Categorical,
    DeepEnsemble,
    Integer,
    KernelPLS,
    MLPClassifier,
    Outcome,
    Real,
    SearchSpace,
    SerialEvaluator,
    Study,
    minimize,
)
from deepbore.errors import SettingError
from deepbore.loop.lightning import new_trainer
from deepbore.loop.quiet import quiet
from objectives import bowl
from plane import DESIGN, LINE, PLANE, SQUARE
from trainers import QUIET, quiet_trainer


@pytest.mark.parametrize("classifier", [KernelPLS, DeepEnsemble])
def test_a_run_is_one_fit_an_iteration_an_epoch(tmp_path, classifier):
    keep = ModelCheckpoint(tmp_path, filename="last", enable_version_counter=False)
    trainer = quiet_trainer(callbacks=[keep], enable_checkpointing=True)
    study = Study(PLANE, classifier=classifier(), n_initial=6, seed=1)
    study.optimize(bowl, 20, batch_size=2, trainer=trainer)
    assert len(study.observations) == study.observations.ledger.statistics.n_complete == 20
    assert trainer.current_epoch == trainer.global_step == 7  # of two trials each
    assert {"best_value", "tau", "trials", "seconds_per_suggestion", "loss"} <= set(trainer.callback_metrics)
    assert torch.load(tmp_path / "last.ckpt", weights_only=True)["epoch"] == 6
    assert trainer.callbacks == [keep]  # the loop is there while it runs only


def test_a_run_with_a_trainer_of_your_own_is_the_same_run():
    own = Study(PLANE, seed=4).optimize(bowl, 16, trainer=quiet_trainer())
    assert own.values.tolist() == minimize(bowl, PLANE, n_trials=16, seed=4).values.tolist()


def test_a_run_never_evaluates_more_than_it_was_given():
    assert len(Study(PLANE).optimize(bowl, 5, batch_size=4).values) == 5


def test_the_trainer_may_end_the_run_too():
    assert len(Study(PLANE).optimize(bowl, None, trainer=quiet_trainer(max_epochs=3)).values) == 13


def test_an_outcome_with_another_number_of_values_is_a_failed_trial():
    def several(params):
        return [bowl(params), 1.0] if params["x"] > 0 else Outcome(bowl(params), constraints=[-1.0])

    with pytest.warns(RuntimeWarning, match="number of objective values must be 1"):
        result = minimize(several, PLANE, n_trials=14, n_initial=10)
    assert 0 < result.study.observations.ledger.statistics.n_failed < 14
    assert result.best_params["x"] <= 0


def test_a_classifier_that_cannot_be_fitted_leaves_the_loop_exploring_and_says_so_once(caplog):
    class Singular(KernelPLS):
        """Fails as a matrix that is not positive definite does."""

        def fit(self, batch):
            torch.linalg.cholesky(-torch.eye(2))

    space = SearchSpace({"x": Real(0, 1)})
    result = minimize(lambda p: p["x"], space, n_trials=15, classifier=Singular())
    assert np.isfinite(result.values).all()
    assert len(set(result.values)) == 15
    said = [record.message for record in caplog.records if "could not be fitted" in record.message]
    assert len(said) == 1
    assert said[0].startswith("Singular could not be fitted, exploring instead")


def value(params):
    return (params["x"] - 0.3) ** 2 + params["y"]


# regression: each of these was wrong once
def test_a_trainer_that_says_nothing_of_epochs_ends_no_run():
    trainer = Trainer(accelerator="cpu", **QUIET)
    Study(SQUARE, seed=0).optimize(value, 12, trainer=trainer)
    assert trainer.max_epochs == -1


@pytest.mark.slow
def test_a_trainer_that_ends_a_run_is_named(caplog):
    study = Study(SQUARE, seed=0)
    study.optimize(value, 20, trainer=quiet_trainer(max_epochs=3))
    assert len(study.trials) == 13
    assert "ends after 13 of 20 trials, at trainer.max_epochs=3" in caplog.text


# regression: the evaluator is wrapped at every setup
def test_a21_repeated_fits_evaluate_each_trial_once():
    seen = []
    evaluator = SerialEvaluator(lambda params: seen.append(params) or bowl(params))
    study, trainer = Study(PLANE, n_initial=DESIGN), new_trainer()
    for _ in range(3):
        study.optimize(evaluator, 3, trainer=trainer)
    assert seen == [trial.params for trial in study.trials]
    assert [trial.id for trial in study.trials] == list(range(9))


LOWEST = 0.3


def valley(params):
    return (params["x"] - LOWEST) ** 2


def banana(params):
    return (params["y"] - params["x"] ** 2) ** 2 / 10 + (params["x"] - LOWEST) ** 2


def proposed(study):
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize("at", [1, 4])  # in the design, and beyond
def test_an_exhausted_iterator_in_a_callback_is_an_error(at):
    def exhausted(study, trial):
        if trial.id == at:
            next(iter([]))

    study = Study(LINE, seed=0, n_initial=3)
    with pytest.raises(RuntimeError, match="StopIteration"):
        study.optimize(valley, 10, callbacks=[exhausted])
    assert len(study.trials) == at + 1
    study.optimize(valley, 3)
    assert len(study.trials) == at + 4


@pytest.mark.parametrize("method", ["fit", "posterior"])
def test_an_exhausted_iterator_in_a_classifier_is_an_error(method):
    def exhausted(*_):
        next(iter([]))

    classifier = type("Mine", (KernelPLS,), {method: exhausted})()
    with pytest.raises(RuntimeError, match="StopIteration"):
        minimize(valley, LINE, 8, n_initial=3, classifier=classifier)


def test_a_trainer_that_stops_while_the_classifier_learns_leaves_no_training_behind():
    class Stop(Callback):
        at = None

        def on_train_batch_end(self, trainer, *_):
            trainer.should_stop = trainer.current_epoch == self.at

    def trainer():
        return quiet_trainer(max_epochs=-1, callbacks=[Stop()])

    whole, part = (Study(SQUARE, seed=0, n_initial=4, classifier=MLPClassifier()) for _ in range(2))
    whole.optimize(banana, 12, trainer=trainer())
    stopping = trainer()
    stopping.callbacks[0].at = 3
    part.optimize(banana, 12, trainer=stopping)
    assert 4 < len(part.trials) < 12
    part.optimize(banana, 12 - len(part.trials), trainer=trainer())
    assert proposed(part) == proposed(whole)


@pytest.mark.parametrize("n", [16, 22])  # the last of 25 are drawn at random
def test_a_run_that_fails_in_its_design_draws_the_rest_as_if_it_had_not(n, monkeypatch):
    space = SearchSpace({"a": Integer(1, 5), "b": Categorical(list("uvwxy"))})
    whole, part = (Study(space, seed=0, n_initial=25) for _ in range(2))
    reserve = type(part.observations).reserve

    def full(observations, points, *args, **kwargs):
        if len(observations) == n:
            raise OSError("no space left")
        return reserve(observations, points, *args, **kwargs)

    whole.optimize(lambda params: params["a"], 25)
    monkeypatch.setattr(type(part.observations), "reserve", full)
    with pytest.raises(OSError, match="no space left"):
        part.optimize(lambda params: params["a"], 25)
    monkeypatch.undo()
    part.optimize(lambda params: params["a"], 25 - n)
    assert proposed(part) == proposed(whole)


def test_a_large_value_that_falls_by_little_is_logged_as_it_is():
    stopping = EarlyStopping("best_value", patience=4)
    trainer = quiet_trainer(callbacks=[stopping])
    study = db.Study(SQUARE, seed=0, classifier=db.RandomForest(trees=5), n_initial=3)
    study.optimize(lambda params, trial: 2e7 - 0.01 * trial.id, 14, trainer=trainer)
    assert len(study.trials) == 14
    assert float(stopping.best_score) == pytest.approx(2e7 - 0.13, abs=1e-6)


class Line(LightningModule):
    """A model that has its own learning rate tuned in the middle of an epoch."""

    def __init__(self):
        super().__init__()
        self.layer, self.found = torch.nn.Linear(1, 1), []

    def training_step(self, batch, batch_idx):
        x, y = batch
        if batch_idx == 1:
            self.found.append(deepbore.minimize(bowl, PLANE, n_trials=13, seed=3).values.tolist())
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_minimize_inside_a_running_fit_is_the_same_run_and_disturbs_nothing():
    x = torch.linspace(-1, 1, 8)[:, None]
    model = Line()
    trainer = quiet_trainer(max_epochs=2)
    with quiet():
        trainer.fit(model, DataLoader(TensorDataset(x, 2 * x), batch_size=2))
    assert model.found == [deepbore.minimize(bowl, PLANE, n_trials=13, seed=3).values.tolist()] * 2
    assert trainer.current_epoch == 2
    assert trainer.global_step == 8


def test_an_objective_may_train_with_a_trainer_of_its_own():
    def train(params):
        x = torch.linspace(-1, 1, 8)[:, None]
        model = torch.nn.Linear(1, 1)

        class Fit(LightningModule):
            def __init__(self):
                super().__init__()
                self.model = model

            def training_step(self, batch, batch_idx):
                return torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=params["lr"])

        trainer = quiet_trainer(max_epochs=1)
        with quiet():
            trainer.fit(Fit(), DataLoader(TensorDataset(x, 2 * x), batch_size=4))
        return float(trainer.callback_metrics.get("loss", (model(x) - 2 * x).square().mean()))

    result = deepbore.minimize(train, SearchSpace({"lr": Real(1e-3, 1, log=True)}), n_trials=12, n_initial=10)
    assert result.study.observations.ledger.statistics.n_complete == 12


@pytest.mark.parametrize("precision", ["64-true", "bf16-true"])
def test_a_trainer_of_another_precision_is_refused_before_anything_is_evaluated(precision):
    study = Study(LINE)
    with pytest.raises(SettingError, match=r"trainer\.precision"):
        study.optimize(lambda p: p["x"], 3, trainer=Trainer(accelerator="cpu", max_epochs=-1, precision=precision))
    assert not study.trials


class Exp(torch.nn.Module):
    def forward(self, x):
        return x.exp()


@pytest.mark.parametrize(
    "classifier",
    [
        lambda: db.MLPClassifier(
            network=lambda f, o: torch.nn.Sequential(torch.nn.Linear(f, 64), Exp(), torch.nn.Linear(64, 64), Exp(),
                                                     torch.nn.Linear(64, o)),
            training=db.Training(learning_rate=1.0),
        ),
        lambda: db.DeepPLS(training=db.Training(learning_rate=1e10)),
        lambda: db.HyperDeepEnsemble(training=db.Training(learning_rate=1e30)),
    ],
)  # fmt: skip
def test_a_training_that_diverges_explores_and_says_so(classifier, caplog):
    head = classifier()
    result = db.minimize(lambda params: params["x"] + params["y"], SQUARE, 14, seed=0, classifier=head)
    assert len(result.study.observations) == 14
    assert not head.ready
    assert "smaller learning rate" in caplog.text
