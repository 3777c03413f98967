"""A study that is loaded goes on whatever is called first, and what a study says of itself."""

import pytest

from deepbore import Budget, KernelPLS, Study, maximize, minimize
from deepbore.errors import SettingError
from deepbore.study.running import check_takes_trial
from deepbore.study.study import reseed
from plane import LINE, SQUARE
from tried import some_bowl


def begun(path, **settings):
    study = Study(LINE, journal=path, seed=0, **settings)
    (trial,) = study.ask()
    study.tell(trial, 1.0)
    study.enqueue({"x": 0.25})
    study.close()
    return Study.load(path)


def test_what_is_enqueued_first_stands_behind_what_was_before(tmp_path):
    study = begun(tmp_path / "run.jsonl")
    study.enqueue({"x": 0.75})
    assert [trial.params["x"] for trial in study.ask(2)] == [0.25, 0.75]


def test_another_seed_stays(tmp_path):
    study = begun(tmp_path / "run.jsonl")
    reseed(study, 5)
    study.ask()
    assert study.state.seed == 5


def test_a_study_whose_classifier_was_taken_recommends_nothing():
    classifier = KernelPLS()
    study = Study(SQUARE, classifier=classifier, seed=0)
    study.add(*some_bowl(12, 0))
    Study(SQUARE, classifier=classifier)
    with pytest.raises(SettingError, match="was given to another study"):
        _ = study.recommended


def test_a_report_promotes_none_but_its_own_trial():
    study = Study(LINE, budget=Budget("epochs", 1, 9), n_initial=10, seed=0)
    *told, reported = study.ask(4)
    for trial in told:
        study.tell(trial, float(trial.id))  # the first one waits to be promoted
    assert not study.report(reported, 9.0, step=1)
    assert len(study.trials) == 4
    assert study.ask()[0].resume_from.id == told[0].id


def test_a_study_shows_its_trials_and_the_best_value():
    study = Study(LINE, seed=0)
    assert repr(study) == "Study(0 trials)"
    trials = study.ask(4)
    study.tell(trials[0], 2.5)
    study.tell(trials[1], 1.25)
    study.tell(trials[2], failed=True)
    assert repr(study) == "Study(4 trials, 1 pending, 1 failed, best 1.25)"
    several = Study(LINE, directions=["minimize"] * 2)
    several.tell(several.ask()[0], [1.0, 2.0])
    assert repr(several) == "Study(1 trials)"


def test_a_problem_is_asked_whether_it_knows_a_budget():
    asked = []

    def problem(params, trial):
        return 0.0

    check_takes_trial(problem, Budget("epochs", 1, 9))
    problem.check_budget = asked.append
    budget = Budget("epochs", 1, 9)
    check_takes_trial(problem, budget)
    check_takes_trial(problem, None)
    assert asked == [budget]


@pytest.mark.parametrize(("call", "best"), [(minimize, min), (maximize, max)])
def test_one_call_looks_for_the_least_or_the_greatest_value(call, best):
    result = call(lambda params: params["x"], LINE, 4, n_initial=10, seed=0)
    assert result.best_value == best(result.values)
    assert result.study.observations.direction == call.__name__
