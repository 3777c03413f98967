"""What `deepbore.loop.lightning` relies on beyond Lightning's documented interface, thing by thing."""

import logging
import signal

import pytest
from lightning.pytorch import Callback

from deepbore import DeepEnsemble, KernelPLS, MLPClassifier, Real, SearchSpace, Study, Training
from deepbore.data.observations import Observations
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.loop.lightning import DataModule, detached, listening, module_of, new_trainer, run, run_and_then
from deepbore.loop.metrics import Metrics
from deepbore.loop.quiet import LAUNCHER, quiet
from kinds_of_jobs import JOBS
from trainers import quiet_trainer

SPACE = SearchSpace({"x": Real(0, 1)})


def data():
    observations = Observations(SPACE)
    observations.add({"x": [0.1, 0.4, 0.6, 0.9]}, [3.0, 1.0, 2.0, 4.0])
    return LabelledObservations(observations)


class Counting(Callback):
    """Counts epochs."""

    def __init__(self):
        self.epochs = 0

    def on_train_epoch_end(self, trainer, pl_module):
        self.epochs += 1


def test_the_number_of_epochs_may_be_set_between_two_fits_of_one_trainer():
    trainer, counting, classifier, rows = new_trainer(), Counting(), module_of([KernelPLS()]), data()
    for wanted in (2, 5, 6):
        with listening(trainer, counting):
            run(trainer, classifier, rows, epochs=wanted - counting.epochs)
        assert counting.epochs == trainer.current_epoch == wanted


def test_callbacks_are_a_list_that_is_asked_anew_at_every_hook():
    trainer, first, second = new_trainer(), Counting(), Counting()
    with listening(trainer, first), listening(trainer, second):
        assert trainer.callbacks[:2] == [second, first]
        run(trainer, module_of([KernelPLS()]), data(), epochs=1)
    assert (first.epochs, second.epochs, trainer.callbacks) == (1, 1, [])


def test_a_function_runs_at_the_end_while_the_classifier_is_still_attached_and_gives_its_result():
    classifier = KernelPLS()
    module = module_of([classifier])
    result = run_and_then(new_trainer(), module, data(), 2, lambda: (classifier.ready, module.trainer.training))
    assert result == (True, True)


def test_a_classifier_can_be_parted_from_its_trainer_for_a_while():
    trainer, classifier = new_trainer(), MLPClassifier()
    run(trainer, classifier, data(), epochs=1)
    assert classifier.trainer is trainer
    with detached(classifier), pytest.raises(RuntimeError, match="not attached"):
        _ = classifier.trainer
    assert classifier.trainer is trainer


@pytest.mark.parametrize("handler", [signal.default_int_handler, lambda *_: None])
def test_a_fit_that_ctrl_c_ends_leaves_by_an_exit_with_the_interrupt_behind_it(handler):
    class Pressing(Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        trainer = quiet_trainer(callbacks=[Pressing()], max_epochs=2)
        with quiet(), pytest.raises(SystemExit) as ended:  # what Lightning makes of it
            trainer.fit(module_of([KernelPLS()]), datamodule=DataModule(data()))
        assert isinstance(ended.value.__context__, KeyboardInterrupt)
        signal.signal(signal.SIGINT, handler)
        trainer = new_trainer()
        with listening(trainer, Pressing()), pytest.raises(KeyboardInterrupt):  # and what we make of that
            run(trainer, module_of([KernelPLS()]), data(), epochs=2)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_exit_that_nobody_pressed_stays_an_exit():
    class Leaving(Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            raise SystemExit(3)

    trainer = new_trainer()
    with listening(trainer, Leaving()), pytest.raises(SystemExit, match="3"):
        run(trainer, module_of([KernelPLS()]), data(), epochs=2)


def test_the_launcher_of_ranks_is_heard_and_the_rest_of_lightning_is_not():
    from lightning.fabric.strategies.launchers import subprocess_script

    assert subprocess_script.__name__ == LAUNCHER
    with quiet():
        assert logging.getLogger(LAUNCHER).isEnabledFor(logging.INFO)
        assert not logging.getLogger("lightning.pytorch").isEnabledFor(logging.WARNING)


def test_metrics_go_on_where_they_were():
    one, other = Metrics(), Metrics()
    rows = data()
    batch = rows.labelled()
    for metrics in (one, other):
        metrics.relabelled(batch, rows.observations)
        with metrics.forecast(2, batch.z[2]):
            pass
    loaded = Metrics()
    loaded.load_state_dict(one.state_dict())
    flipped = LabelledBatch(batch.points, 1 - batch.z, batch.weight)
    for metrics in (other, loaded):
        metrics.relabelled(flipped, rows.observations)
    assert loaded.known == other.known
    assert set(loaded.known) == {"label_flips", "brier_score"}


@pytest.mark.parametrize("job", JOBS)
def test_a_study_of_one_process_asks_no_cluster(job, monkeypatch):
    for name, value in JOBS[job].items():
        monkeypatch.setenv(name, value)
    study = Study(SPACE, seed=0, n_initial=3, classifier=DeepEnsemble(members=1, training=Training(steps=2)))
    for _ in range(4):
        (trial,) = study.ask()
        study.tell(trial, trial.params["x"])
    study.optimize(lambda params: params["x"], 1)
    assert study.fit(1).ready
    assert study.recommended is not None
    assert new_trainer().world_size == 1
