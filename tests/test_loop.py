"""The loop as a Lightning callback: a run is one fit of an ordinary Trainer."""

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from deepbore import DeepEnsemble, KernelPLS, Real, SearchSpace, minimize
from deepbore.data.observations import Observations
from deepbore.evaluators import SerialEvaluator
from deepbore.labels.datamodule import LabelledObservations
from deepbore.loop import LoopController
from deepbore.loop.lightning import quiet

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


@pytest.mark.parametrize("classifier", [KernelPLS, DeepEnsemble])
def test_a_run_is_one_fit_an_iteration_an_epoch(tmp_path, classifier):
    data = LabelledObservations(Observations(PLANE))
    loop = LoopController(SerialEvaluator(bowl), n_trials=20, n_initial=6, batch_size=2, seed=1)
    keep = ModelCheckpoint(tmp_path, filename="last", enable_version_counter=False)
    with quiet():
        trainer = Trainer(callbacks=[loop, keep], max_epochs=-1, logger=False, devices=1, enable_progress_bar=False)
        trainer.fit(classifier(), datamodule=data)
    assert len(data.observations) == data.observations.n_complete == 20
    assert trainer.current_epoch == trainer.global_step == 7  # of two trials each
    assert {"best_value", "tau", "trials", "seconds_per_suggestion", "loss"} <= set(trainer.callback_metrics)
    checkpoint = torch.load(tmp_path / "last.ckpt", weights_only=True)
    assert checkpoint["epoch"] == 6
    assert torch.equal(checkpoint["callbacks"]["LoopController"]["generator"], loop.generator.get_state())


def test_a_run_never_evaluates_more_than_it_was_given():
    data = LabelledObservations(Observations(PLANE))
    loop = LoopController(SerialEvaluator(bowl), n_trials=5, batch_size=4)
    with quiet():
        Trainer(callbacks=[loop], max_epochs=-1, logger=False, enable_checkpointing=False).fit(
            KernelPLS(), datamodule=data
        )
    assert len(data.observations) == 5


def test_the_trainer_may_end_the_run_too():
    data = LabelledObservations(Observations(PLANE))
    with quiet():
        trainer = Trainer(
            callbacks=[LoopController(SerialEvaluator(bowl))],
            max_epochs=3,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
        )
        trainer.fit(KernelPLS(), datamodule=data)
    assert len(data.observations) == 13


def test_the_objective_has_all_threads_and_gradients():
    threads = torch.get_num_threads()
    seen = []

    def objective(params):
        seen.append((torch.get_num_threads(), torch.is_grad_enabled()))
        return bowl(params)

    minimize(objective, PLANE, n_trials=13, seed=0)
    assert set(seen) == {(threads, True)}
    assert torch.get_num_threads() == threads


def test_results_do_not_depend_on_the_number_of_threads():
    threads = torch.get_num_threads()
    values = []
    for count in (1, 2):
        torch.set_num_threads(count)
        values.append(minimize(bowl, PLANE, n_trials=14, seed=0).values.tolist())
    torch.set_num_threads(threads)
    assert values[0] == values[1]


def test_a_classifier_that_cannot_be_fitted_leaves_the_loop_exploring_and_says_so_once(caplog):
    class Singular(KernelPLS):
        """Fails as a matrix that is not positive definite does."""

        def learn(self, batch):
            torch.linalg.cholesky(-torch.eye(2))

    space = SearchSpace({"x": Real(0, 1)})
    result = minimize(lambda p: p["x"], space, n_trials=15, classifier=Singular())
    assert np.isfinite(result.values).all()
    assert len(set(result.values)) == 15
    said = [record.message for record in caplog.records if "could not be fitted" in record.message]
    assert len(said) == 1
    assert said[0].startswith("Singular could not be fitted, exploring instead")
