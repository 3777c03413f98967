"""How a study comes by its state: loaded, copied, or with parts that have learned elsewhere."""

import copy
import pickle
import shutil
import threading
from contextlib import nullcontext

import pytest

import objectives
from deepbore import (
    Calibrated,
    DeepEnsemble,
    DeepPLS,
    DistributedStudy,
    FourierLogistic,
    GPClassifier,
    HyperDeepEnsemble,
    ImprovementLabels,
    KernelPLS,
    LaplaceGGN,
    MCDropout,
    MLPClassifier,
    RandomForest,
    Real,
    RelativeRatio,
    Study,
    Training,
    minimize,
)
from deepbore.data.journal import Journal
from deepbore.errors import JournalError, JournalInUse, SettingError
from deepbore.strategies import ModelStrategy, Turns
from plane import LINE
from workers import PLANE


@pytest.mark.slow
@pytest.mark.parametrize(
    "look",
    [
        lambda study: (study.recommended, study.fit()),
        lambda study: (study.fit(), study.recommended, study.fit()),
        lambda study: (study.fix({}), study.fit()),
    ],
)
def test_looks_at_a_loaded_study_change_no_proposal_in_whatever_order(tmp_path, look):
    found = []
    for name, seen in (("plain", lambda _: None), ("looked", look)):
        journal = tmp_path / f"{name}.jsonl"
        study = Study(PLANE, seed=3, journal=journal)
        study.optimize(objectives.bowl, 12)
        study.close()
        study = Study.load(journal)
        seen(study)
        study.optimize(objectives.bowl, 5)
        study.close()
        found.append([trial.params for trial in study.trials])
    assert found[0] == found[1]


# regression: the default was never tried, where the disk was full at its line, say
def test_a_run_that_ended_before_it_queued_its_default_begins_with_it(tmp_path):
    path, space = tmp_path / "run.jsonl", {"x": Real(0, 1, default=0.25)}
    Study(space, journal=path).close()
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    for _ in range(2):
        study = Study(space, journal=path, if_exists="load")
        study.close()
    assert [trial.params["x"] == 0.25 for trial in study.ask(2)] == [True, False]


def test_a_look_at_a_loaded_study_of_several_models_changes_none_of_them(tmp_path):
    proposed = []
    for look in (lambda study: None, Study.fit):
        journal = tmp_path / f"{len(proposed)}.jsonl"
        networks = [ModelStrategy(MLPClassifier(hidden=(4,), training=Training(steps=10))) for _ in range(2)]
        study = Study(LINE, seed=3, n_initial=4, strategy=Turns(networks), journal=journal)
        go_on(study, 4)  # a snapshot of the design has no weights
        study.close()
        study = Study.load(journal)
        look(study)
        go_on(study, 3)
        study.close()
        proposed.append([trial.params for trial in study.trials])
    assert proposed[0] == proposed[1]


def far_bowl(params):
    return (params["x"] - 1) ** 2 + (params["y"] - 2) ** 2


# regression: each of these was wrong once
def test_a_study_that_is_refused_takes_no_classifier_and_no_labels(tmp_path):
    classifier, labels = MLPClassifier(), ImprovementLabels()
    study = Study(LINE, journal=tmp_path / "run.jsonl", classifier=classifier, labels=labels)
    study.ask()
    with pytest.raises(JournalError, match="holds a run already"):
        Study(LINE, journal=tmp_path / "run.jsonl", classifier=classifier, labels=labels)
    with pytest.raises(SettingError, match="n_trials=None needs something else"):
        minimize(far_bowl, LINE, None, classifier=classifier)
    study.ask()


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)


def test_a_new_run_with_a_classifier_that_has_learned_in_another_says_so(tmp_path, caplog):
    head, path = KernelPLS(), tmp_path / "run.jsonl"
    first = minimize(lambda p: p["x"], LINE, 4, seed=0, n_initial=3, classifier=head, journal=path).study
    assert "has learned" not in caplog.text
    minimize(lambda p: p["x"], LINE, 4, seed=1, n_initial=3, classifier=head)
    assert "this KernelPLS has learned in another run, and goes on from there" in caplog.text
    first.close()
    caplog.clear()
    go_on(Study.load(path, classifier=head), 1)  # which has its weights of then
    assert "has learned" not in caplog.text


def test_a_study_does_not_share_its_classifier_with_another_that_goes_on():
    head = KernelPLS()
    first, second = (Study(LINE, seed=seed, n_initial=2, classifier=head) for seed in (1, 2))
    go_on(second, 3)
    for call in (first.ask, first.fit, lambda: first.optimize(lambda p: p["x"], 1)):
        with pytest.raises(SettingError, match="KernelPLS was given to another study too"):
            call()
    first.add({"x": [0.5]}, [1.0])
    assert len(first.trials) == 1
    alone = Study(LINE, seed=2, n_initial=2)
    go_on(alone, 3)
    assert [trial.params for trial in second.trials] == [trial.params for trial in alone.trials]


def test_a_classifier_that_was_only_tried_out_is_still_new(caplog):
    head = KernelPLS()
    with pytest.raises(SettingError, match="n_trials=None"):
        minimize(lambda p: p["x"], LINE, None, classifier=head)
    Study(LINE, classifier=head)
    suggester = DistributedStudy(LINE, seed=0, n_initial=2, classifier=head)
    go_on(suggester.study, 3)
    assert suggester.study.classifier is head
    assert "has learned" not in caplog.text


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
    KernelPLS,
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


# --- notebooks --------------------------------------------------------------------------------------------------------


CELL = """
study = Study({"x": Real(0, 1)}, journal=path, if_exists="load", seed=0)
study.optimize(lambda params: params["x"], 2, progress=False)
"""


def test_a_cell_that_is_run_again_goes_on(tmp_path):
    names = {"Study": Study, "Real": Real, "path": tmp_path / "run.jsonl"}
    for count in (2, 4, 6):
        exec(CELL, names)
        assert len(names["study"].trials) == count
    first = names["study"]
    exec(CELL, names)
    with pytest.raises(JournalError, match="another study in this one"):
        first.ask()
    assert len(names["study"].trials) == 8


def test_a_study_that_runs_keeps_its_journal(tmp_path):
    def begins_another(study, trial):
        with pytest.raises(JournalInUse):
            Study({"x": Real(0, 1)}, journal=tmp_path / "run.jsonl", if_exists="load", seed=0)
        seen.append(trial.id)

    seen = []
    with Study({"x": Real(0, 1)}, journal=tmp_path / "run.jsonl", seed=0) as study:
        study.optimize(lambda params: params["x"], 2, callbacks=[begins_another], progress=False)
    assert seen == [0, 1]


@pytest.mark.parametrize("error", [None, ZeroDivisionError])
def test_a_study_closes_its_journal_at_the_end_of_a_with_statement(tmp_path, error):
    with (
        pytest.raises(error) if error else nullcontext(),
        Study({"x": Real(0, 1)}, journal=tmp_path / "run.jsonl") as study,
    ):
        study.ask_one()
        if error:
            raise error
    other = Journal(tmp_path / "run.jsonl")
    other.open()  # nobody has it
    other.close()
    with Study({"x": Real(0, 1)}) as study:  # without a journal, too
        assert study.ask_one().id == 0
