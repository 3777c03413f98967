"""Trials that report, and that a pruner ends early: in runs, by ask and tell, resumed, in frames."""

import copy
import json
import math
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepbore import (
    Budget,
    DistributedStudy,
    ExecutorEvaluator,
    MedianPruner,
    Outcome,
    Pruner,
    RandomForest,
    Real,
    SearchSpace,
    Study,
    SuccessiveHalvingPruner,
    TrialPruned,
    minimize,
)
from deepbore.compute.distributed import Ranks
from deepbore.data.replay import read_record
from deepbore.data.trial import Status
from deepbore.errors import JournalError, SettingError, StudyRunning, TrialError, ValueTypeError
from deepbore.evaluators import Evaluator, Finished
from deepbore.worker.objective import evaluate
from learning import EPOCHS, loss, train, train_in_parts
from plane import LINE
from rungs import EPOCHS as RUNGS
from thread_ranks import on_ranks

NAN = float("nan")


class NeverBelow(Pruner):
    """Ends all that has not got below a bound after three steps."""

    def __init__(self, bound: float = 0.4):
        self.bound = bound

    def should_prune(self, curve, others):
        return len(curve) == 3 and curve.lowest[-1] > self.bound


SHAPES = {  # the steps of one trial
    "several validations an epoch": [epoch for epoch in range(3) for _ in range(4)],
    "folds": [1, 2, 3] * 4,
    "pre-training and fine-tuning": [*range(8), *range(4)],
    "falling": list(range(12, 0, -1)),
    "rising": list(range(12)),
    "rising and rarely": [5 * k for k in range(12)],
}


def learned(trial, steps, start):
    """A training that reports at given steps; the larger the start, the worse it is at any time."""
    for number, step in enumerate(steps):
        trial.report(start / (1 + number), step=step)
        if trial.should_prune():
            return False
    return True


@pytest.mark.parametrize("pruner", [MedianPruner(3), SuccessiveHalvingPruner()], ids=["median", "halving"])
@pytest.mark.parametrize("by_run", [True, False], ids=["run", "ask and tell"])
@pytest.mark.parametrize("shape", SHAPES)
def test_equal_trainings_are_never_pruned_and_bad_ones_are(shape, by_run, pruner):
    def pruned(steps, starts):
        study = Study(LINE, seed=0, pruner=pruner, strategy="random")
        left = iter(starts)

        def objective(params, trial):
            start = next(left)
            if not learned(trial, steps, start):
                raise TrialPruned
            return start

        if by_run:
            study.optimize(objective, len(starts))
        for start in [] if by_run else starts:
            (trial,) = study.ask()
            study.tell(trial, start) if learned(trial, steps, start) else study.tell(trial, pruned=True)
        return [trial.status == Status.PRUNED for trial in study.trials]

    assert not any(pruned(SHAPES[shape], [1.0] * 8))
    mixed = [1.0, 1.0, 1.0, 1.0, 9.0, 1.0, 9.0, 1.0]
    ended = pruned(SHAPES[shape], mixed)
    assert not any(is_pruned and start == 1.0 for is_pruned, start in zip(ended, mixed, strict=True))
    if shape != "falling" or isinstance(pruner, MedianPruner):  # it begins at 12: beyond the rungs that others reach
        assert any(ended)
        assert ended == pruned(SHAPES["rising"], mixed)


def test_a_trial_that_begins_again_in_another_process_reports_anew_from_there(tmp_path):
    study = Study(LINE, seed=0, journal=tmp_path / "run.jsonl")
    (trial,) = study.ask()
    for step in (1, 2, 1, 2):
        trial.report(1.0, step=step)
    study.close()
    again = Study.load(tmp_path / "run.jsonl")
    (trial,) = again.pending
    assert list(trial.reports) == [1, 2, 3, 4]
    for step in (2, 1):
        trial.report(0.5, step=step)
    again.tell(trial, 0.5)
    assert again.trials[0].reports == {1: 1.0, 2: 0.5, 3: 0.5}


def test_with_a_budget_a_step_that_comes_again_replaces_what_followed():
    study = Study(LINE, seed=0, budget=Budget("epochs", 9, 27))
    (trial,) = study.ask()
    for step, value in ((1, 0.9), (2, 0.8), (3, 0.7), (2, 0.5)):
        study.report(trial, value, step=step)
    assert study.trials[0].reports == {1: 0.9, 2: 0.5}


def shape(study):
    return [(trial.status.name, len(trial.reports), trial.value) for trial in study.trials]


def by_hand(study, n):
    """Trials by ask and tell, as `train` does it."""
    for _ in range(n):
        (trial,) = study.ask()
        for epoch in range(1, EPOCHS + 1):
            trial.report(loss(trial.params, epoch), step=epoch)
            if trial.should_prune():
                study.tell(trial, pruned=True)
                break
        else:
            study.tell(trial, loss(trial.params, EPOCHS))
    return study


# --- runs ------------------------------------------------------------------------------------------------------------


def test_a_pruned_trial_is_no_failure_and_not_the_best():
    study = minimize(train, LINE, 16, pruner=MedianPruner(), progress=False).study
    pruned = [trial for trial in study.trials if trial.status is Status.PRUNED]
    assert pruned
    assert study.observations.ledger.statistics.n_failed == 0
    assert all(trial.value is None and 0 < len(trial.reports) < EPOCHS for trial in pruned)
    assert study.best_trial.status is Status.COMPLETE
    assert study.recommended.status is Status.COMPLETE
    assert study.best_trial.reports == {epoch: loss(study.best_trial.params, epoch) for epoch in range(1, EPOCHS + 1)}
    assert f"{len(pruned)} pruned" in repr(study)


def test_a_run_by_ask_and_tell_is_the_same_run():
    options = {"pruner": MedianPruner(), "seed": 3}
    run = minimize(train, LINE, 16, progress=False, **options).study
    assert shape(by_hand(Study(LINE, **options), 16)) == shape(run)


@pytest.mark.parametrize("labels", ["default", "thresholds"])
@pytest.mark.parametrize("n", [13, 14])
def test_a_run_is_resumed_exactly(tmp_path, n, labels):
    parts = {"classifier": RandomForest(trees=10)} if labels == "thresholds" else {}
    study = Study(LINE, pruner=MedianPruner(), journal=tmp_path / "one" / "run.jsonl", **parts)
    study.optimize(train, n, progress=False)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    loaded = Study.load(tmp_path / "other" / "run.jsonl")
    assert isinstance(loaded.state.recipe.pruner, MedianPruner)
    assert list(loaded.trials) == list(study.trials)
    for each in (study, loaded):
        each.optimize(train, 4, progress=False)
    assert shape(loaded) == shape(study)
    assert [t.params for t in loaded.trials] == [t.params for t in study.trials]


def test_equal_runs_have_equal_journals_with_a_line_for_each_outcome(tmp_path):
    for name in ("one", "other"):
        minimize(train, LINE, 12, pruner=MedianPruner(), journal=tmp_path / f"{name}.jsonl", progress=False)
    one, other = ([json.loads(line) for line in (tmp_path / f"{name}.jsonl").open()] for name in ("one", "other"))
    assert [{**each, "crc": 0} for each in one[1:]] == [{**each, "crc": 0} for each in other[1:]]
    assert {each["event"] for each in one} == {"created", "asked", "told", "pruned"}
    assert one[2]["reports"]["steps"] == list(range(1, EPOCHS + 1))


def test_records_and_frames_have_the_curves(tmp_path):
    study = minimize(train, LINE, 12, pruner=MedianPruner(), journal=tmp_path / "run.jsonl", progress=False).study
    record = read_record(tmp_path / "run.jsonl")
    assert [trial.reports for trial in record.trials] == [trial.reports for trial in study.trials]
    assert [trial.status for trial in record.trials] == [trial.status for trial in study.trials]
    frame = study.to_frame()
    assert frame.reports[0] == study.trials[0].reports
    assert set(frame.status) == {"complete", "pruned"}
    frame.to_csv(tmp_path / "all.csv")
    again = Study(LINE)
    again.add_csv(tmp_path / "all.csv")
    assert len(again.trials) == study.observations.ledger.statistics.n_complete


def test_a_pruner_of_your_own_is_one_method(tmp_path):
    study = Study(LINE, pruner=NeverBelow(), journal=tmp_path / "run.jsonl")
    study.optimize(train, 8, progress=False)
    for trial in study.trials:
        assert (trial.status is Status.PRUNED) == (len(trial.reports) == 3) == (loss(trial.params, 3) > 0.4)
    study.close()
    with pytest.raises(SettingError, match="pruner"):
        Study.load(tmp_path / "run.jsonl")
    assert shape(Study.load(tmp_path / "run.jsonl", pruner=NeverBelow())) == shape(study)


def test_other_pruners_are_another_run(tmp_path):
    Study(LINE, pruner=MedianPruner(), journal=tmp_path / "run.jsonl").close()
    for pruner in (None, MedianPruner(startup_trials=9)):
        with pytest.raises(JournalError, match="pruner"):
            Study(LINE, pruner=pruner, journal=tmp_path / "run.jsonl", if_exists="load")


def test_reports_are_kept_without_a_pruner():
    study = minimize(train, LINE, 3, progress=False).study
    assert [len(trial.reports) for trial in study.trials] == [EPOCHS] * 3
    assert study.observations.ledger.statistics.n_pruned == 0


def test_maximised_values_are_pruned_the_other_way_round():
    def rising(params, trial):
        for epoch in range(1, EPOCHS + 1):
            trial.report(-loss(params, epoch), step=epoch)
            if trial.should_prune():
                raise TrialPruned
        return -loss(params, EPOCHS)

    study = Study(LINE, direction="maximize", pruner=MedianPruner())
    study.optimize(rising, 14, progress=False)
    falling = minimize(train, LINE, 14, pruner=MedianPruner(), progress=False).study
    assert [trial.status for trial in study.trials] == [trial.status for trial in falling.trials]
    assert study.trials[0].reports == {step: -value for step, value in falling.trials[0].reports.items()}


def test_what_has_crashed_keeps_its_curve():
    def dies(params, trial):
        trial.report(1.0, step=1)
        trial.report(NAN, step=2)
        raise ValueError("broken")

    study = Study(LINE)
    with pytest.warns(RuntimeWarning, match="broken"):
        study.optimize(dies, 1, progress=False, max_failures=None)
    (trial,) = study.trials
    assert (trial.status, list(trial.reports)) == (Status.FAILED, [1, 2])
    assert math.isnan(trial.reports[2])


def test_threads_and_evaluators_of_your_own_report_too():
    class Plain(Evaluator):
        """Calls the objective without any help."""

        def __init__(self, objective):
            self.objective, self.trials = objective, []

        def submit(self, trial):
            self.trials.append(trial)

        def collect(self):
            trial = self.trials.pop()
            try:
                return [Finished(trial, Outcome(self.objective(trial.params, trial)))]
            except TrialPruned:
                return [Finished(trial, Outcome.pruned())]

        @property
        def outstanding(self):
            return len(self.trials)

        def close(self):
            self.trials.clear()

    expected = shape(minimize(train, LINE, 14, pruner=MedianPruner(), progress=False).study)
    assert shape(minimize(Plain(train), LINE, 14, pruner=MedianPruner(), progress=False).study) == expected
    with ThreadPoolExecutor(2) as threads:
        study = minimize(
            ExecutorEvaluator(train, threads), LINE, 14, pruner=MedianPruner(), progress=False, n_initial=14
        ).study
    assert study.observations.ledger.statistics.n_pruned
    assert all(trial.reports for trial in study.trials)


# regression: trials failed, or a log said that the study could not be reached
def test_a_mistake_in_a_pruner_fails_no_trial(caplog):
    class Mistaken(Pruner):
        def should_prune(self, curve, others):
            return others.best(curve) < curve.lowest[-1]

    study = minimize(train, LINE, 3, pruner=Mistaken(), progress=False).study
    assert [trial.status.name for trial in study.trials] == ["COMPLETE"] * 3
    assert "goes on unjudged: the pruner has failed (AttributeError" in caplog.text
    assert "others.best(curve)" in caplog.text
    trial = study.ask_one()
    trial.report(0.5, step=1)
    with pytest.raises(AttributeError):
        trial.should_prune()


def test_a_run_of_pruned_trials_alone_goes_on():
    def hopeless(params, trial):
        trial.report(params["x"], step=1)
        raise TrialPruned

    study = minimize(hopeless, LINE, 14, progress=False).study
    assert study.observations.ledger.statistics.n_pruned == 14
    assert study.best_trial is None


# --- by ask and tell -------------------------------------------------------------------------------------------------


def test_what_a_running_trial_reports_is_in_the_journal_at_once(tmp_path):
    study = Study(LINE, journal=tmp_path / "run.jsonl")
    (trial,) = study.ask()
    trial.report(0.5, step=1)
    trial.report(NAN, step=2)
    assert list(read_record(tmp_path / "run.jsonl").trial(0).reports) == [1, 2]
    study.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    (again,) = loaded.pending
    assert list(again.reports) == [1, 2]
    again.report(0.25, step=2)
    loaded.tell(again, 0.25)
    assert loaded.trials[0].reports == {1: 0.5, 2: 0.25}


def test_report_says_whether_to_go_on_and_ends_what_does_not():
    study = Study(LINE, pruner=SuccessiveHalvingPruner())
    for _ in range(2):
        (trial,) = study.ask()
        goes_on = study.report(trial, 1.0 + trial.id, step=1)
    assert not goes_on
    assert study.trials[0].status is Status.PENDING
    assert study.trials[1].status is Status.PRUNED
    with pytest.raises(TrialError, match="ended"):
        study.report(1, 0.5, step=2)


def test_a_handle_stays_valid_through_promotions():
    study = Study(LINE, budget=Budget("epochs", 1, 9))
    for value in (3.0, 2.0):
        (trial,) = study.ask()
        assert not study.report(trial, value, step=1)
    (trial,) = study.ask()
    assert study.report(trial, 1.0, step=1)
    trial.report(0.9, step=2)
    study.tell(trial, failed=True)  # it has died in its third epoch
    assert study.pending == []
    assert [each.status.name for each in study.trials] == ["COMPLETE"] * 3 + ["FAILED"]
    assert study.trials[3].reports == {2: 0.9}
    with pytest.raises(TrialError, match="told once"):
        study.tell(trial, 1.0)


def test_a_stopped_trial_is_not_told_by_its_handle_again():
    study = Study(LINE, budget=Budget("epochs", 1, 3))
    handles = study.ask(2)
    for handle in handles:
        assert not study.report(handle, 1.0 + handle.id, step=1)
    (third,) = study.ask()
    study.report(third, 5.0, step=1)
    (promoted,) = study.ask()
    assert promoted.resume_from.id == 0
    with pytest.raises(TrialError, match="told once"):
        study.tell(handles[0], 0.5)


def test_copies_of_a_trial_do_not_report():
    (trial,) = Study(LINE).ask()
    for other in (pickle.loads(pickle.dumps(trial)), copy.deepcopy(trial)):
        assert other == trial
        with pytest.raises(TrialError, match=r"study\.report"):
            other.report(1.0, step=1)


@pytest.mark.parametrize(
    "more", [{"value": 1.0}, {"failed": True}, {"constraints": [1.0]}, {"noise": 1.0}, {"pruned": 1}]
)
def test_pruned_is_all_of_an_outcome(more):
    study = Study(LINE)
    (trial,) = study.ask()
    with pytest.raises(ValueTypeError, match="pruned"):
        study.tell(trial, **{"pruned": True, **more})
    assert study.trials[0].status is Status.PENDING


def test_a_pruned_trial_may_be_corrected_and_withdrawn():
    study = by_hand(Study(LINE, pruner=MedianPruner()), 12)
    pruned = [trial for trial in study.trials if trial.status is Status.PRUNED]
    with pytest.raises(ValueTypeError, match="pruned"):
        study.correct(pruned[0], constraints=[1.0])
    study.correct(pruned[0], -1.0)
    assert study.best_trial.id == pruned[0].id
    assert study.best_trial.former[0].status is Status.PRUNED
    study.withdraw(study.best_trial)
    assert study.trials[pruned[0].id].reports == pruned[0].reports
    assert study.best_trial.id != pruned[0].id


# --- with budgets, and what is refused -------------------------------------------------------------------------------


def test_within_a_budget_trials_are_pruned_and_promoted():
    study = Study(LINE, budget=RUNGS, pruner=MedianPruner())
    study.optimize(train_in_parts, 30, progress=False)
    kinds = {trial.status.name for trial in study.trials}
    assert kinds == {"COMPLETE", "PRUNED"}
    assert all(trial.resume_from is None or trial.resume_from.status is Status.COMPLETE for trial in study.trials)


def test_report_within_a_run_goes_by_the_trial():
    study, said = Study(LINE, budget=Budget("epochs", 2, 8)), []

    def objective(params, trial):
        other = Study(LINE).ask()[0] if trial.id == 0 else None
        said.append([study.report(trial, loss(params, epoch), step=epoch) for epoch in (1, 2)])
        if other is not None:
            with pytest.raises(StudyRunning):
                study.report(0, 1.0, step=1)
        return loss(params, 2)

    study.optimize(objective, 2, progress=False)
    assert said == [[True, False]] * 2
    assert [len(trial.reports) for trial in study.trials] == [2, 2]


def test_several_objectives_and_preferences_have_no_pruner():
    for options in ({"directions": ["minimize", "minimize"]}, {"preferences": True}):
        with pytest.raises(SettingError, match="one objective"):
            Study(LINE, pruner=MedianPruner(), **options)
        (trial,) = Study(LINE, **options).ask()
        with pytest.raises(ValueTypeError, match="one objective"):
            trial.report(1.0, step=1)


def test_a_pruner_needs_an_objective_that_reports():
    with pytest.raises(SettingError, match=r"trial\.report"):
        minimize(lambda params: params["x"], LINE, 3, pruner=MedianPruner())
    with pytest.raises(SettingError, match="Pruner"):
        Study(SearchSpace({"x": Real(0, 1)}), pruner="median")


def test_all_ranks_learn_what_the_trials_of_each_have_reported(monkeypatch):
    here = threading.local()
    monkeypatch.setattr(Ranks, "found", classmethod(lambda cls: here.ranks))

    def driven(ranks):
        here.ranks = ranks
        together = DistributedStudy(LINE, pruner=MedianPruner(startup_trials=3), n_initial=8)
        for _ in range(6):
            told = {}
            for trial in together.share(together.ask(2)):
                outcome = evaluate(train, trial)
                told[trial.id] = Outcome.pruned() if outcome.status is Status.PRUNED else outcome
                for step, value in outcome.reports.items():
                    trial.report(value, step)
            together.tell(told)
        return [(trial.params, trial.status, trial.reports) for trial in together.study.trials]

    first, second = on_ranks(driven)
    assert first == second
    assert {status for _, status, _ in first} == {Status.COMPLETE, Status.PRUNED}
    assert all(reports for _, _, reports in first)


def test_a_run_in_which_nothing_is_reported_says_so_once():
    def silent(params, trial):
        return params["x"]

    with pytest.warns(RuntimeWarning, match=r"has reported nothing.*trial\.report") as warned:
        Study(LINE, seed=0, pruner=MedianPruner()).optimize(silent, 5, progress=False)
    assert len(warned) == 1


@pytest.mark.parametrize("objective", ["reports", "has no pruner", "fails first"])
def test_no_other_run_is_said_to_be_silent(objective, recwarn):
    def reports(params, trial):
        if objective != "has no pruner":
            trial.report(params["x"], 1)
        if objective == "fails first" and trial.id == 0:
            raise ValueError("by chance")
        return params["x"]

    pruner = None if objective == "has no pruner" else MedianPruner()
    Study(LINE, seed=0, pruner=pruner).optimize(reports, 3, progress=False)
    assert not [each for each in recwarn if "reported nothing" in str(each.message)]
