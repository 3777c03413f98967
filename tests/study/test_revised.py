"""`Study.withdraw` and `Study.correct`: runs go on without what was wrong, and are resumed exactly across it."""

import shutil

import pytest

from deepbore import (
    Budget,
    DistributedStudy,
    EmphasiseChanges,
    KernelPLS,
    Outcome,
    Study,
    ThresholdLabels,
    ValueGradedLabels,
)
from deepbore.data.trial import Status
from deepbore.errors import TrialError, ValueTypeError
from deepbore.testing import TOY_SPACES
from plane import DESIGN, LINE, SQUARE
from tried import some_bowl

NAN = float("nan")
MIXED = TOY_SPACES["mixed"]


def value_of(trial):
    return sum(0.1 * number**2 for number in trial.params.values() if isinstance(number, float)) + 0.01 * trial.id


def asked(study, n):
    """The next trials, one by one."""
    found = []
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, value_of(trial))
        found.append(trial.params)
    return found


@pytest.mark.parametrize("n", [3, 4])
@pytest.mark.parametrize(
    ("space", "labels"),
    [
        (SQUARE, ValueGradedLabels),
        pytest.param(MIXED, lambda: EmphasiseChanges(ThresholdLabels()), marks=pytest.mark.slow),
    ],
    ids=["square", "emphasis"],
)
def test_a_run_is_resumed_exactly_across_what_was_withdrawn_and_corrected(tmp_path, n, space, labels):
    study = Study(space, seed=0, n_initial=4, labels=labels(), journal=tmp_path / "one" / "run.jsonl")
    if space is SQUARE:
        study.add(*some_bowl(26, 1))  # enough for a model near the best
    asked(study, 4 + n)
    (pending,) = study.ask()
    study.tell(pending, -50.0)
    study.withdraw([len(study.trials) - 2, pending], "diverged")
    study.correct(1, 7.5)
    study.correct(2, failed=True)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    expected = asked(study, 3)
    study.close()
    loaded = Study.load(tmp_path / "other" / "run.jsonl", labels=labels())
    assert asked(loaded, 3) == expected
    assert loaded.trials == study.trials


def test_a_run_that_goes_on_after_a_withdrawal_is_that_of_what_remains():
    columns, values = some_bowl(14, 0)
    one, other = (Study(SQUARE, seed=0, classifier=KernelPLS()) for _ in range(2))
    one.add(columns, values)
    one.add({"x": 0.5, "y": 0.5}, -1e6)
    one.withdraw(one.best_trial)
    other.add(columns, values)
    assert one.best_trial.params == other.best_trial.params
    assert one.recommended.params == other.recommended.params
    assert [trial.params for trial in one.ask(2)] == [trial.params for trial in other.ask(2)]


def test_a_recommendation_follows_a_correction():
    study = Study(SQUARE, seed=0, n_initial=DESIGN)
    study.add({"x": [0.1, 0.9], "y": [0.1, 0.9]}, [1.0, 2.0])
    assert study.recommended.id == 0
    study.correct(0, 3.0)
    assert study.recommended.id == study.best_trial.id == 1


def test_a_withdrawn_configuration_may_be_tried_again():
    study = Study(TOY_SPACES["finite"], seed=0, n_initial=DESIGN)
    n = int(study.space.cardinality)
    trials = study.ask(n)
    for trial in trials:
        study.tell(trial, 1.0)
    assert study.observations.columns.n_left == 0
    study.withdraw(trials[:2])
    assert {str(trial.params) for trial in study.ask(2)} == {str(trial.params) for trial in trials[:2]}
    study.withdraw(trials[3])
    study.enqueue(trials[3].params)
    assert study.ask()[0].params == trials[3].params


def test_the_design_is_filled_up_by_new_points():
    study = Study(LINE, seed=0, n_initial=4)
    trials = study.ask(4)
    for trial in trials:
        study.tell(trial, 1.0)
    study.withdraw(trials[1:3])
    assert study.state.n_missing == 2
    again = study.ask(2)
    assert not {trial.params["x"] for trial in again} & {trial.params["x"] for trial in trials}


def test_a_pending_trial_is_given_up_and_what_comes_later_is_not_kept():
    study = Study(LINE, seed=0, n_initial=DESIGN)
    one, other = study.ask(2)
    study.withdraw(one)
    assert [trial.id for trial in study.pending] == [other.id]
    assert study.observations.ledger.statistics.n_failed == 0
    with pytest.raises(TrialError, match="trial 0 was withdrawn, so nothing is told of it"):
        study.tell(one, 1.0)
    assert repr(study) == "Study(2 trials, 1 pending, 1 withdrawn)"


def test_while_a_run_goes_on_trials_are_withdrawn_by_a_callback_and_still_count_as_evaluated():
    study = Study(LINE, seed=0, n_initial=DESIGN)

    def doubt(study, trial):
        if trial.status is Status.COMPLETE and trial.value > 0.5:
            study.withdraw(trial, "too large")

    study.optimize(lambda params: params["x"], 8, callbacks=[doubt])
    told = [trial.former[0].value for trial in study.trials if trial.former]
    assert len(study.trials) == 8
    assert told
    assert min(told) > 0.5 >= max(trial.value for trial in study.trials if trial.value is not None)


def test_what_an_objective_returns_for_a_trial_that_it_has_withdrawn_is_not_kept():
    study = Study(LINE, seed=0, n_initial=DESIGN)
    seen = []

    def objective(params):
        if not seen:
            study.withdraw(study.pending)
        return params["x"]

    study.optimize(objective, 3, callbacks=[lambda study, trial: seen.append(trial.status)])
    assert seen == [Status.WITHDRAWN, Status.COMPLETE, Status.COMPLETE]


def test_a_promotion_stays_evaluated_and_its_rung_is_judged_without_what_was_withdrawn():
    study = Study(LINE, seed=0, n_initial=DESIGN, budget=Budget("epochs", 1, 9))
    for trial in study.ask(6):
        study.tell(trial, float(trial.id))
    promoted, other = study.ask(2)
    assert [promoted.resume_from.id, other.resume_from.id] == [0, 1]
    study.tell(promoted, 0.5)
    study.tell(other, 9.0)
    study.withdraw(0)
    assert study.best_trial.id == promoted.id
    (new,) = study.ask()  # five results are left, and the best floor(5/3) of them was promoted before
    assert new.resume_from is None
    study.withdraw(other)  # the result of the promotion alone
    assert study.ask()[0].resume_from.id == 1


def test_a_promotion_that_a_crash_has_lost_is_dropped_with_its_trial(tmp_path):
    study = Study(LINE, seed=0, n_initial=DESIGN, budget=Budget("epochs", 1, 9), journal=tmp_path / "run.jsonl")
    for trial in study.ask(3):
        study.tell(trial, float(trial.id))
    before = (tmp_path / "run.jsonl").read_bytes()
    assert study.ask()[0].resume_from.id == 0
    study.close()
    (tmp_path / "run.jsonl").write_bytes(before)  # as after a crash between snapshot and journal
    loaded = Study.load(tmp_path / "run.jsonl")
    loaded.withdraw(0)
    assert loaded.ask()[0].resume_from is None


def test_comparisons_with_a_withdrawn_trial_are_dropped(tmp_path):
    study = Study(LINE, seed=0, preferences=True, journal=tmp_path / "run.jsonl")
    one, other, third, fourth = study.ask(4)
    for better, worse in [(one, other), (one, third), (third, other), (fourth, one)]:
        study.prefer(better, worse)
    study.withdraw(one, "a slip")
    fresh = Study(LINE, seed=0, preferences=True)
    fresh.ask(4)
    fresh.prefer(2, 1)
    assert study.observations.preferences == ((2, 1),)
    assert [trial.value for trial in study.trials] == [trial.value for trial in fresh.trials]
    assert [trial.status for trial in study.trials[1:]] == [trial.status for trial in fresh.trials[1:]]  # 3 is pending
    labels = study.state.recipe.labels(study.observations.of_task(0)), fresh.state.recipe.labels(fresh.observations)
    assert labels[0].z.tolist() == labels[1].z[1:].tolist()
    with pytest.raises(TrialError, match="but trial 0 was withdrawn"):
        study.prefer(0, 1)
    with pytest.raises(ValueTypeError, match="compare the two the other way round"):
        study.correct(1, 3.0)
    study.prefer(fourth, third)
    study.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    assert (loaded.trials, loaded.observations.preferences) == (study.trials, ((2, 1), (3, 2)))


def test_an_earlier_task_is_withdrawn_as_if_it_had_never_been_added():
    columns, values = some_bowl(14, 0)
    studies = [Study(SQUARE, seed=0) for _ in range(2)]
    for study in studies:
        study.add(columns, values, task="this year")
    studies[0].add(columns, [-value for value in values], task="last year")
    assert studies[0].state.earlier.tasks[1].rows == 14
    studies[0].withdraw([trial for trial in studies[0].trials if trial.task == "last year"])
    one, other = ([trial.params for trial in study.ask(4)] for study in studies)
    assert one == other
    studies[0].correct(0, 3.0)
    assert len(studies[0].ask(2)) == 2
    studies[0].withdraw(range(14))
    assert not studies[0].state.has_earlier_tasks


def test_a_frame_says_what_was_withdrawn_and_is_read_without_it(tmp_path):
    pytest.importorskip("pandas")
    study = Study(LINE, seed=0)
    study.add({"x": [0.1, 0.2, 0.3]}, [1.0, 2.0, 3.0])
    study.withdraw(0, "wrong")
    study.correct(1, 0.5)
    frame = study.to_frame()
    assert frame["status"].tolist() == ["withdrawn", "complete", "complete"]
    assert frame["former_value"].tolist()[:2] == [1.0, 2.0]
    assert frame["reason"].tolist()[0] == "wrong"
    frame.to_csv(tmp_path / "trials.csv", index=False)
    again = Study(LINE)
    again.add_csv(tmp_path / "trials.csv")
    assert [trial.value for trial in again.trials] == [0.5, 3.0]


def test_every_rank_of_a_distributed_study_withdraws_and_corrects():
    study = DistributedStudy(LINE, seed=0)
    trials = study.ask(3)
    study.tell({trial.id: float(trial.id) for trial in trials})
    study.withdraw(trials[0], "wrong")
    study.correct(1, NAN)
    study.correct(trials[2], Outcome(5.0))
    assert [trial.status.name for trial in study.study.trials] == ["WITHDRAWN", "FAILED", "COMPLETE"]
