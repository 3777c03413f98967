"""What users try: trials of an `ask` that failed, rows of frames, copies in callbacks, looks at a loaded study."""

import copy
import logging
import pickle
import shutil
import threading

import optuna
import pytest

from deepbore import (
    Budget,
    Calibrated,
    Categorical,
    Condition,
    DeepEnsemble,
    DeepPLS,
    FourierLogistic,
    GPClassifier,
    HyperDeepEnsemble,
    KernelPLS,
    LaplaceGGN,
    MCDropout,
    MLPClassifier,
    RandomForest,
    Real,
    RelativeRatio,
    SearchSpace,
    Study,
)
from deepbore.errors import PointError
from deepbore.integrations.optuna import DeepBoreSampler

LINE = SearchSpace({"x": Real(0, 1)})
BRANCHES = SearchSpace({"x": Real(0, 1), "o": Categorical(["a", "b"]), "m": Real(0, 0.99, when=Condition("o", "a"))})


class OutOfMemory(KernelPLS):
    """Fails when it learns first."""

    has_failed = False

    def fit(self, batch):
        if not self.has_failed:
            self.has_failed = True
            raise RuntimeError("out of memory")
        return super().fit(batch)


def test_what_an_ask_that_failed_left_pending_is_not_asked_for_again_once_it_is_told():
    study = Study(LINE, seed=0, n_initial=2, classifier=OutOfMemory(), budget=Budget("epochs", 1, 9))
    for trial in study.ask(3):
        study.tell(trial, trial.params["x"])
    with pytest.raises(RuntimeError, match="out of memory"):
        study.ask(2)  # a promotion was reserved, and the proposal failed
    told = [study.tell(trial, 0.1) or trial.id for trial in study.pending]
    asked = study.ask(2)
    assert told
    assert len(asked) == 2
    assert not {trial.id for trial in asked} & set(told)
    assert [trial.status.name for trial in asked] == ["PENDING", "PENDING"]


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_row_of_a_frame_is_one_configuration_whatever_it_has_for_inactive_parameters(nothing):
    study = Study(BRANCHES, seed=0)
    study.add({"x": 0.1, "o": "b", "m": nothing}, 1.0)
    study.enqueue({"x": 0.2, "o": "b", "m": nothing})
    (trial,) = study.ask()
    assert trial.params == {"x": 0.2, "o": "b"}
    with pytest.raises(PointError, match="every active parameter needs a value"):
        study.add({"x": 0.1, "o": "a", "m": nothing}, 1.0)
    with pytest.raises(PointError, match="inactive parameters must be left out"):
        study.add({"x": 0.1, "o": "b", "m": 0.5}, 1.0)


def test_a_frame_of_a_conditional_space_comes_back_row_by_row():
    study, again = Study(BRANCHES, seed=0), Study(BRANCHES)
    for trial in study.ask(6):
        study.tell(trial, trial.params["x"])
    frame = study.to_frame()
    for _, row in frame.iterrows():
        again.add(row[BRANCHES.names], row["value"])
    assert [trial.params for trial in again.trials] == [trial.params for trial in study.trials]


def test_optuna_says_nothing_of_a_classifier_that_the_user_never_gave(caplog):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0))

    def objective(trial):
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + trial.suggest_float("y", 0, 1)

    with caplog.at_level(logging.WARNING):
        study.optimize(objective, 12)
        study.enqueue_trial({"x": 0.25})  # and y as it comes, not as it was proposed
        study.optimize(objective, 2)
    assert not [record for record in caplog.records if "another run" in record.message]


def test_a_study_can_be_copied_from_a_callback():
    study, copies = Study(LINE, seed=0), []

    def keep(study, trial):
        if trial.id in (5, 11):
            copies.extend([pickle.loads(pickle.dumps(study)), copy.deepcopy(study)])

    study.optimize(lambda params: params["x"], 13, callbacks=[keep])
    assert [len(each.trials) for each in copies] == [6, 6, 12, 12]
    assert copies[-1].ask()[0].params == study.trials[12].params


HEADS = [
    DeepEnsemble,
    DeepPLS,
    FourierLogistic,
    GPClassifier,
    HyperDeepEnsemble,
    GPClassifier,
    HyperDeepEnsemble,
    KernelPLS,
    LaplaceGGN,
    MCDropout,
    LaplaceGGN,
    MCDropout,
    MLPClassifier,
    RandomForest,
    RelativeRatio,
    lambda: Calibrated(MLPClassifier()),
]


@pytest.mark.slow
@pytest.mark.parametrize("classifier", HEADS)
def test_a_look_at_a_study_that_was_loaded_in_its_design_changes_nothing(classifier, tmp_path):
    study = Study(LINE, seed=0, n_initial=4, journal=tmp_path / "run.jsonl", classifier=classifier())
    for _ in range(4):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)
    study.close()
    proposed = []
    for looks in (0, 2):
        path = shutil.copy(tmp_path / "run.jsonl", tmp_path / f"{looks}.jsonl")
        shutil.copy(tmp_path / "run.jsonl.ckpt", f"{path}.ckpt")
        loaded = Study.load(path)
        if looks:
            loaded.fit(looks)
        proposed.append([loaded.ask()[0].params for _ in range(2)])
    assert proposed[0] == proposed[1]


class Locked(KernelPLS):
    """Can't be copied."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


def test_a_loaded_study_may_be_looked_at_whatever_its_classifier_holds(tmp_path):
    study = Study(LINE, seed=0, n_initial=4, journal=tmp_path / "run.jsonl", classifier=Locked())
    for trial in study.ask(4):
        study.tell(trial, trial.params["x"] ** 2)
    study.close()
    assert Study.load(tmp_path / "run.jsonl", classifier=Locked()).fit().ready
