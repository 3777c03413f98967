"""What docstrings and guides promise of runs, where somebody has relied on it in vain."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepbore import (
    BoTorchBatch,
    Budget,
    Categorical,
    DistributedStudy,
    EmphasiseChanges,
    ExecutorEvaluator,
    GreedyBatch,
    KernelPLS,
    NoImprovement,
    Outcome,
    ProcessEvaluator,
    Real,
    SearchSpace,
    SerialEvaluator,
    Study,
    ThresholdLabels,
    minimize,
)
from deepbore.data.outcomes import Status
from deepbore.data.record import read_record
from deepbore.errors import JournalError, SettingError, ValueTypeError
from deepbore.evaluators import Timed

LINE = SearchSpace({"x": Real(0, 1)})
EPOCHS = Budget("epochs", 1, 9)


def statuses(study):
    return [trial.status for trial in study.trials]


# --- evaluators ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_process_is_left")
def test_a_worker_that_comes_later_and_cannot_load_the_objective_ends_the_run(tmp_path, monkeypatch):
    module = tmp_path / "edited_meanwhile.py"
    module.write_text('import time\ndef f(p):\n    time.sleep(60 * (p["x"] > 0.9))\n    return p["x"]\n')
    monkeypatch.syspath_prepend(tmp_path)
    from edited_meanwhile import f

    def edit(study, trial):
        module.write_text('def f(p):\n    return p["x"\n')

    study = Study(LINE, seed=0)
    for x in (0.1, 0.95, 0.2):
        study.enqueue({"x": x})
    evaluator = ProcessEvaluator(f, workers=1, timeout=0.5)
    with pytest.warns(RuntimeWarning, match="timed out"), pytest.raises(SettingError, match="import the objective"):
        study.optimize(evaluator, 12, callbacks=[edit])
    assert statuses(study)[:3] == [Status.COMPLETE, Status.FAILED, Status.PENDING]
    assert Status.FAILED not in statuses(study)[2:]
    module.write_text('def f(p):\n    return p["x"]\n')
    study.optimize(evaluator, 0)  # what was left
    assert Status.PENDING not in statuses(study)


# --- what ends a run -------------------------------------------------------------------------------------------------


def test_no_improvement_counts_from_when_the_best_trial_was_told():
    told, others, first = [], threading.Event(), threading.Event()

    def objective(params):
        if params["x"] != 0.5:
            if others.is_set():
                first.wait(60)  # the others do not run ahead on a busy machine
            return 1 + params["x"]
        others.wait(60)  # the first trial is told late
        return 0.0

    def look(study, trial):
        told.append(trial.id)
        if len(told) == 3:
            others.set()
        if trial.id == 0:
            first.set()

    study = Study(LINE, seed=0, n_initial=30)
    study.enqueue({"x": 0.5})
    with ThreadPoolExecutor(2) as threads:
        evaluator = ExecutorEvaluator(objective, threads)
        study.optimize(evaluator, 30, stop_when=NoImprovement(5), callbacks=[look])
    late = told.index(0)
    assert 3 <= late <= 4
    assert len(told) in (late + 1 + 5, late + 1 + 6)  # one more may run when the rule is met


# --- what goes together ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"constraints": [1.0]}, {"noise": 0.1}])
def test_a_study_of_preferences_is_told_no_constraints_or_noise_even_of_a_failure(tmp_path, given):
    study = Study(LINE, preferences=True, journal=tmp_path / "run.jsonl")
    (trial,) = study.ask()
    with pytest.raises(ValueTypeError, match="in a study of preferences"):
        study.tell(trial, Outcome(float("nan"), **given))
    assert statuses(study) == [Status.PENDING]
    study.observations.journal.write({"event": "failed", "trial": 0, **given})  # as an earlier version did
    study.close()
    for read in (Study.load, read_record):
        with pytest.raises(JournalError, match="in a study of preferences"):
            read(tmp_path / "run.jsonl")


def place(params):
    return params["x"]


def place_after(params, trial):
    return params["x"] + 1 / trial.budget


def test_budgets_are_refused_where_the_objective_within_an_evaluator_never_hears_of_them(tmp_path):
    with ThreadPoolExecutor(1) as thread:
        deaf = [SerialEvaluator(place), ExecutorEvaluator(place, thread), ProcessEvaluator(place)]
        for evaluator in [*deaf, Timed(SerialEvaluator(place), tmp_path / "times")]:
            with pytest.raises(SettingError, match=r"objective\(params, trial\)"):
                minimize(evaluator, LINE, 8, budget=EPOCHS)
            with pytest.raises(SettingError, match="takes the configuration alone"):
                Study(LINE, budget=EPOCHS).optimize(evaluator, 8)
        result = minimize(ExecutorEvaluator(place_after, thread), LINE, 8, budget=EPOCHS, seed=0)
    assert result.study.best_trial.budget == 3


def test_trials_with_other_values_than_the_fixed_ones_are_not_promoted():
    space = SearchSpace({"x": Real(0, 1), "o": Categorical(["a", "b"])})
    study = Study(space, budget=EPOCHS, seed=0, n_initial=40)
    for trial in study.ask(12):
        assert not study.report(trial, trial.id + 100 * (trial.params["o"] == "b"), step=1) or trial.id == 2
    study.fix({"o": "b"})
    later = study.ask(6)
    assert {trial.params["o"] for trial in later} == {"b"}
    study.fix({})
    assert study.ask()[0].resume_from.params["o"] == "a"


def test_what_takes_one_score_refuses_a_classifier_of_several_objectives():
    from deepbore.integrations.botorch import BoTorchClassifier  # takes a second to import

    study = Study(LINE, directions=["minimize"] * 2)
    with pytest.raises(SettingError, match="Wrap one of its parts"):
        BoTorchClassifier(study.classifier)
    assert BoTorchClassifier(study.classifier.parts[1]).gaussian
    for candidates in (BoTorchBatch(), GreedyBatch(BoTorchBatch())):
        with pytest.raises(SettingError, match="one for each objective"):
            Study(LINE, directions=["minimize"] * 2, candidates=candidates)


# --- parts that are given to two runs --------------------------------------------------------------------------------


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
        with pytest.raises(SettingError, match="KernelPLS was given to another study, too"):
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


def test_labels_that_remember_begin_each_run_anew():
    def run(labels):
        return minimize(lambda p: (p["x"] - 0.3) ** 2, LINE, 14, seed=0, labels=labels).values.tolist()

    labels = EmphasiseChanges(ThresholdLabels(0.3))
    assert run(labels) == run(labels) == run(EmphasiseChanges(ThresholdLabels(0.3)))
