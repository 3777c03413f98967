"""Designs and proposals: a call that fails changes nothing, and what is enqueued comes first."""

import resource

import pytest
import torch

import deepbore
from deepbore import Budget, Categorical, Integer, KernelPLS, LogExpectedImprovement, Ordinal, Real, SearchSpace, Study
from deepbore.data.outcome import Status
from deepbore.errors import JournalError, SettingError, SpaceExhausted
from deepbore.loop.engine import Engine
from deepbore.loop.lightning import new_trainer
from deepbore.study.study import share
from objectives import bowl
from plane import DESIGN, LINE, PLANE
from thread_ranks import on_ranks


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, bowl(trial.params))


class Failing(LogExpectedImprovement):
    """Raises an error whenever one is armed."""

    def __init__(self):
        self.armed = None

    def __call__(self, posterior, best):
        if self.armed is not None:
            error, self.armed = self.armed, None
            raise error
        return super().__call__(posterior, best)


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("make", [KernelPLS, lambda: deepbore.DeepPLS(training=deepbore.Training(steps=5))])
def test_a_failed_ask_leaves_the_study_as_it_was(error, make):
    failing, sound = (Study(PLANE, seed=3, n_initial=5, classifier=make(), acquisition=Failing()) for _ in range(2))
    for study in (failing, sound):
        go_on(study, 12)
    pending = [failing.ask(8), sound.ask(8)]
    failing.state.recipe.acquisition.armed = error()
    with pytest.raises(error):
        failing.ask()
    assert len(failing.trials) == 20
    for study, trials in zip((failing, sound), pending, strict=True):
        for trial in trials:
            study.tell(trial, bowl(trial.params))
    go_on(failing, 3)
    go_on(sound, 3)
    assert failing.trials == sound.trials
    assert len({str(trial.params) for trial in failing.trials}) == 23


@pytest.mark.slow
def test_an_ask_that_the_disk_has_no_room_for_changes_nothing(tmp_path):
    whole, short = (Study(PLANE, seed=1, n_initial=4, journal=tmp_path / f"{name}.jsonl") for name in ("a", "b"))
    go_on(whole, 10)
    go_on(short, 8)
    kept = (tmp_path / "b.jsonl").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) + 10, limits[1]))
    try:
        with pytest.raises(JournalError, match="can't be written"):
            short.ask()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "b.jsonl").read_bytes() == kept
    go_on(short, 2)
    assert short.trials == whole.trials


@pytest.mark.parametrize("n_enqueued", [0, 1, 2])
def test_trials_that_an_interrupt_kept_from_the_caller_are_given_next(tmp_path, monkeypatch, n_enqueued):
    study = Study(PLANE, seed=1, n_initial=4, journal=tmp_path / "run.jsonl")
    for x in (0.25, 0.5)[:n_enqueued]:
        study.enqueue({"x": x, "y": x})
    reserve = study.observations.reserve

    def interrupted(*args, **about):
        reserve(*args, **about)
        raise KeyboardInterrupt

    monkeypatch.setattr(study.observations, "reserve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.ask(2)
    monkeypatch.undo()
    trials = study.ask(3)
    assert [trial.id for trial in trials] == [0, 1, 2]
    assert len({str(trial.params) for trial in trials}) == 3


@pytest.mark.parametrize("asked", [0, 8])  # in the design, and beyond
def test_a_part_that_an_interrupt_kept_from_being_completed_is_completed_as_without(monkeypatch, asked):
    whole, part = (Study(PLANE, seed=1, n_initial=4) for _ in range(2))
    for study in (whole, part):
        go_on(study, asked)
        study.enqueue({"x": 0.25})

    def interrupted(*args, **about):
        raise KeyboardInterrupt

    monkeypatch.setattr(part.observations, "reserve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        part.ask()
    monkeypatch.undo()
    go_on(whole, 3)
    go_on(part, 3)
    assert part.trials == whole.trials
    assert whole.trials[asked].params["x"] == 0.25


def test_an_ask_for_more_than_is_left_leaves_the_queue_alone():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    study.enqueue({"k": 3})
    with pytest.raises(SpaceExhausted, match="4 new configurations"):
        study.ask(4)
    assert not study.trials
    assert study.ask()[0].params == {"k": 3}


def test_what_is_enqueued_is_tried_though_a_finite_space_is_used_up():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    for trial in study.ask(3):
        study.tell(trial, trial.params["k"])
    study.enqueue({"k": 2})
    assert study.ask()[0].params == {"k": 2}
    for k in (3, 1, 1):
        study.enqueue({"k": k})
    study.optimize(lambda params: params["k"], 5)  # three that come again, and nothing else is left
    assert [trial.params["k"] for trial in study.trials[4:]] == [3, 1, 1]
    with pytest.raises(SpaceExhausted, match=r"3 of all 3 are evaluated or pending\. Ask for fewer, or enqueue"):
        study.ask()


def test_a_queue_takes_the_place_of_the_configurations_in_it():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    for k in (1, 1, 3):
        study.enqueue({"k": k})
    with pytest.raises(SpaceExhausted, match="4 new configurations were asked for, but 0 of all 3 are evaluated"):
        study.ask(5)
    assert [trial.params["k"] for trial in study.ask(4)] == [1, 1, 3, 2]


def test_a_best_configuration_may_be_tried_again_and_again():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}), seed=0)
    for trial in study.ask(3):
        study.tell(trial, trial.params["k"])
    study.enqueue(study.best_trial.params)
    study.optimize(bowl_of_k, 9, callbacks=[lambda study, trial: study.enqueue(study.best_trial.params)])
    assert len(study.trials) == 12


def bowl_of_k(params):
    return (params["k"] - 2) ** 2


def test_where_all_that_is_not_fixed_is_used_up_the_error_says_how_to_go_on():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3]), "x": Ordinal([0, 1])}))
    study.fix({"k": 2, "x": 1})
    study.ask()
    with pytest.raises(SpaceExhausted, match=r"1 of all 1 with what is fixed are .* or release .* fix\(\{\}\)"):
        study.ask()


def reals(d, **others):
    return SearchSpace({**{f"x{i}": Real(1e-4, 1, log=True) for i in range(d)}, **others})


def first(study):
    return study.ask()[0].params


@pytest.mark.parametrize(("d", "n_initial"), [(10, 10), (20, 10), (40, 10), (12, 30)])
def test_a_wide_design_begins_in_the_middle_of_the_ranges(d, n_initial):
    assert first(Study(reals(d), seed=3, n_initial=n_initial)) == {f"x{i}": 0.01 for i in range(d)}


@pytest.mark.parametrize(
    "space",
    [reals(9), reals(2), reals(10, units=Integer(8, 512)), reals(10, kind=Categorical(["a", "b"]))],
    ids=["nine", "two", "an integer among them", "a category among them"],
)
def test_others_are_sobol_s_alone(space):
    assert first(Study(space, seed=3, n_initial=4)) == space.decode(space.points.sobol(1, seed=3))[0]


def test_the_other_points_are_sobol_s_in_batches_or_not():
    space = reals(24)
    sobol = space.decode(space.points.sobol(6, seed=1, skip=1))
    study = Study(space, seed=1)
    assert [first(study) for _ in range(7)][1:] == sobol
    assert [trial.params for trial in Study(space, seed=1).ask(7)][1:] == sobol


def test_fixed_parameters_stay_where_they_are():
    study = Study(reals(12), seed=0)
    study.fix({"x0": 1.0})
    assert first(study) == {"x0": 1.0} | {f"x{i}": 0.01 for i in range(1, 12)}


def test_a_middle_that_is_forbidden_is_left_out():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(20)}, constraints=["x0 >= 0.6"])
    assert first(Study(space, seed=0)) == space.decode(space.points.sobol(2, seed=0))[1]


def test_earlier_results_take_the_design_s_place():
    space = reals(20)
    study = Study(space, seed=0)
    study.add({name: [0.5] for name in space.names}, [1.0])
    assert first(study) != dict.fromkeys(space.names, 0.01)


# regression: a failed ask gives told trials again
def test_a1_a_failed_ask_gives_nothing_twice():
    study = Study(SearchSpace({"k": Integer(0, 13)}), n_initial=DESIGN)
    for trial in study.ask(12):
        study.tell(trial, 1.0)
    with pytest.raises(SpaceExhausted):
        study.ask(3)
    assert len(study.trials) == 12
    assert [study.ask()[0].id for _ in range(2)] == [12, 13]
    assert len({trial.params["k"] for trial in study.trials}) == 14


# regression: a too big ask reserves the queue
def test_a19_a_too_big_ask_leaves_the_queued_trial_in_the_queue():
    study = Study(SearchSpace({"k": Ordinal([1, 2, 3])}))
    study.enqueue({"k": 2})
    with pytest.raises(SpaceExhausted):
        study.ask(4)
    assert not study.trials
    assert study.ask()[0].params == {"k": 2}


# regression: each of these was wrong once
def test_a_wide_space_whose_parameters_all_stand_still_has_one_configuration():
    still = {f"x{number}": 0.5 for number in range(10)}
    study = Study(SearchSpace({name: Real(0, 1) for name in still}), seed=0)
    study.fix(still)
    assert study.ask()[0].params == still


def test_more_parameters_than_sobols_sequence_has_begin_at_random():
    space = SearchSpace({f"x{number}": Real(0, 1) for number in range(21202)})
    first, all_three = space.points.sobol(2, seed=1), space.points.sobol(3, seed=1)
    assert torch.equal(first, all_three[:2])
    assert torch.equal(space.points.sobol(1, seed=1, skip=2), all_three[2:])


def test_ctrl_c_while_a_proposal_is_forecast_reserves_nothing(monkeypatch):
    study = Study(LINE, seed=0, n_initial=3)
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "expected_labels", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            study.optimize(lambda p: p["x"], 6, trainer=new_trainer())
    study.optimize(lambda p: p["x"], 2)
    assert [trial.status for trial in study.trials] == [Status.COMPLETE] * 5


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


@pytest.mark.parametrize("act", ["withdraw", "correct"])
def test_what_one_rank_alone_takes_back_is_refused(act):
    def run(ranks):
        study = Study(PLANE, seed=0)
        share(study, ranks)
        study.add({"x": [0.5, 0.25], "y": [0.5, 0.25]}, [1.0, 2.0])
        engine = Engine(study.state, ranks)
        engine.check_ranks()
        if ranks.rank:
            study.withdraw(0) if act == "withdraw" else study.correct(0, 3.0)
        with pytest.raises(SettingError, match="on every rank"):
            engine.check_ranks()
        return True

    assert on_ranks(run) == [True, True]
