"""The loop as a Lightning callback: a run is one fit of an ordinary Trainer."""

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from deepbore import DeepEnsemble, KernelPLS, Outcome, Real, SearchSpace, Study, minimize
from trainers import quiet_trainer

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


@pytest.mark.parametrize("classifier", [KernelPLS, DeepEnsemble])
def test_a_run_is_one_fit_an_iteration_an_epoch(tmp_path, classifier):
    keep = ModelCheckpoint(tmp_path, filename="last", enable_version_counter=False)
    trainer = quiet_trainer(callbacks=[keep], enable_checkpointing=True)
    study = Study(PLANE, classifier=classifier(), n_initial=6, seed=1)
    study.optimize(bowl, 20, batch_size=2, trainer=trainer)
    assert len(study.observations) == study.observations.n_complete == 20
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
    assert 0 < result.study.observations.n_failed < 14
    assert result.best_params["x"] <= 0


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

        def fit(self, batch):
            torch.linalg.cholesky(-torch.eye(2))

    space = SearchSpace({"x": Real(0, 1)})
    result = minimize(lambda p: p["x"], space, n_trials=15, classifier=Singular())
    assert np.isfinite(result.values).all()
    assert len(set(result.values)) == 15
    said = [record.message for record in caplog.records if "could not be fitted" in record.message]
    assert len(said) == 1
    assert said[0].startswith("Singular could not be fitted, exploring instead")
