"""Plausible mistakes: each is an error of deepbore that names rule, value and way out, before anything is evaluated."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import deepbore
from deepbore import (
    BoTorchBatch,
    Budget,
    Calibrated,
    Categorical,
    ClassProbability,
    DecayingGamma,
    DeepPLS,
    DistributedStudy,
    EmphasiseChanges,
    EpsilonGreedy,
    ExecutorEvaluator,
    GreedyBatch,
    HyperDeepEnsemble,
    KernelPLS,
    LocalSearch,
    LogExpectedImprovement,
    MLPClassifier,
    Outcome,
    ProcessEvaluator,
    RaisedIncumbent,
    Real,
    SearchSpace,
    SeveralThresholds,
    Study,
    ThompsonBatch,
    Training,
    maximize,
    minimize,
    plots,
    problems,
)
from deepbore.errors import (
    JournalError,
    ObjectiveError,
    PointError,
    SettingError,
    ShapeError,
    SpaceError,
    TableError,
    TrialError,
    ValueTypeError,
)
from plane import LINE

SPACE = SearchSpace({"x": Real(0, 1), "act": Categorical(["relu", "tanh"])})

CALLS = []


def objective(params):
    CALLS.append(params)
    return params["x"]


def study():
    return Study(SPACE)


def asked(n=2):
    asking = Study(SPACE)
    asking.ask(n)
    return asking


def told():
    telling = asked()
    for trial in telling.trials:
        telling.tell(trial, trial.params["x"])
    return telling


def run(journal, **settings):
    return minimize(objective, LINE, 5, journal=journal, **settings)


SPACES = [
    (lambda: SPACE.with_fixed(None), SpaceError, "fixed values are a dict, but got None"),
    (lambda: study().fix(None), SpaceError, "Give {} to release all"),
    (lambda: SPACE.decode([[0.5, 0]]), ShapeError, "points must be a tensor of shape n x 2, but got [[0.5, 0]]"),
    (lambda: SPACE.decode(np.zeros((2, 2))), ShapeError, "points must be a tensor"),
]

PARTS = [
    (lambda: MLPClassifier(hidden=32), "hidden must be a list of widths, as in (32, 32), but got hidden=32"),
    (lambda: MLPClassifier(hidden=(0,)), "hidden >= 1 must hold, but got hidden=0"),
    (lambda: MLPClassifier(hidden=("a",)), "hidden must be a whole number"),
    (lambda: DeepPLS(hidden=None), "hidden must be a list of widths"),
    (lambda: MLPClassifier(activation="swosh"), "but got activation='swosh'"),
    (lambda: MLPClassifier(network=5), "network must be a function (features, outputs) -> module, but got 5"),
    (lambda: MLPClassifier(training={"steps": 5}), "training must be a Training, but got {'steps': 5}"),
    (lambda: Training(warm_start="no"), "warm_start must be one of"),
    (
        lambda: HyperDeepEnsemble(width=32),
        "width must be (least, greatest), finite and in this order",
    ),
    (lambda: HyperDeepEnsemble(dropout=0.5), "dropout must be (least, greatest)"),
    (lambda: Calibrated(5), "classifier must be a Classifier, but got 5"),
    (lambda: Calibrated(KernelPLS), "Give KernelPLS()"),
    (lambda: SeveralThresholds([DecayingGamma()]), "0 < gammas < 1 must hold, but got gammas=DecayingGamma("),
    (lambda: SeveralThresholds(0.3), "gammas must be a list of proportions, as in [0.1, 0.5], but got 0.3"),
    (lambda: DecayingGamma(start="high"), "start < 1 must hold, but got start='high'"),
    (lambda: DecayingGamma(half_life=0), "half_life > 0 must hold"),
    (lambda: EmphasiseChanges(5), "base must be a Labelling, but got 5"),
    (lambda: ClassProbability(0.5), "ClassProbability has no settings, but got [0.5]"),
    (lambda: LogExpectedImprovement(best=1), "LogExpectedImprovement has no settings, but got ['best']"),
    (lambda: EpsilonGreedy(5), "base must be a Candidates, but got 5"),
    (lambda: EpsilonGreedy(LocalSearch), "Give LocalSearch()"),
    (lambda: GreedyBatch(LocalSearch), "Give LocalSearch()"),
    (lambda: ThompsonBatch(5), "base must be a Candidates"),
    (lambda: RaisedIncumbent(base=5), "base must be a Candidates"),
    (lambda: BoTorchBatch(joint="yes"), "joint must be one of [False, True], but got joint='yes'"),
    (lambda: BoTorchBatch(inequality_constraints=5), "inequality_constraints must be a list"),
    (lambda: problems.Noisy(5, 1.0), "problem must be a Problem, but got 5"),
    (lambda: problems.LightningCLIProblem(LINE, ""), "metric must name what the program logs, as val_loss, but got ''"),
    (lambda: ProcessEvaluator(math.sin, workers=None), "workers must be given, but got workers=None"),
    (lambda: ProcessEvaluator(math.sin, retries=None), "retries must be given"),
    (lambda: ExecutorEvaluator(objective, 5), "an executor of concurrent.futures, but got 5"),
    (lambda: ExecutorEvaluator(objective, ThreadPoolExecutor), "Give an object, as ThreadPoolExecutor(4)"),
]

RUNS = [  # each gets a journal that is not there, and must not be there afterwards
    (lambda journal: Study(LINE, directions=[], journal=journal), "at least one direction is needed"),
    (lambda journal: Study(LINE, directions=2, journal=journal), "directions must be a list"),
    (
        lambda journal: Study(LINE, acquisition="ei", journal=journal),
        "acquisition must be an Acquisition, but got 'ei'",
    ),
    (lambda journal: Study(LINE, gamma="0.3", journal=journal), "but got gamma='0.3'"),
    (lambda journal: minimize(lambda: 1, LINE, 5, journal=journal), "one argument, the dict of parameters"),
    (lambda journal: maximize(lambda x, y, /: x, LINE, 5, journal=journal), "Take the parameters from it"),
    (lambda journal: minimize(problems.Branin, LINE, 5, journal=journal), "Give an object of the class: Branin()"),
    (lambda journal: run(journal, callbacks=[lambda: None]), "callbacks must be functions of (study, trial)"),
    (lambda journal: run(journal, callbacks=[lambda trial: None]), "takes 1 positional argument|too many positional"),
    (lambda journal: run(journal, budget=Budget("epochs", 1, 9)), "objective(params, trial), and let it spend"),
    (lambda journal: Study(LINE, journal=journal).optimize(objective, 1, trainer="cpu"), "Trainer, but got 'cpu'"),
]

TOLD = [
    (lambda: study().ask(None), SettingError, "q must be given, but got q=None"),
    (lambda: Study({"lr": [0.1, 0.2]}), SpaceError, "but got list. Give Categorical([0.1, 0.2]), or Real and Integer"),
    (lambda: study().ask(10**12), SettingError, "q <= 1000000 must hold, but got q=1000000000000"),
    (lambda: study().ask_one().report(0.5, step=[1]), ValueTypeError, "such as an epoch, but got [1]"),
    (lambda: study().ask_one().report(0.5, step=np.array(1)), ValueTypeError, "a step must be"),
    (lambda: asked().report(0, 0.5, {}), ValueTypeError, "a step must be"),
    (lambda: study().tell(0, 1.0), TrialError, "no trial exists yet, but got 0"),
    (lambda: asked().tell(True, 1.0), TrialError, "a trial is named by its id, a whole number, but got True"),
    (lambda: asked().tell(0, 1.0, failed="no"), ValueTypeError, "failed must be True or False, but got failed='no'"),
    (lambda: study().add([{"x": 0.5, "act": "relu"}], [1.0]), PointError, "results are columns by name"),
    (lambda: study().add(None, 1.0), PointError, "results are columns by name"),
    (lambda: study().add(np.zeros((2, 2)), [1.0, 2.0]), PointError, "a DataFrame, or one configuration"),
    (lambda: study().add({"x": [0.5, 0.6]}, [1, 2], budgets=[1, 3]), SettingError, "results of several budgets (1, 3)"),
    (lambda: study().add_csv(None), TableError, "None can't be read as a CSV file"),
    (
        lambda: Outcome(1, status="done"),
        ValueTypeError,
        "a status must be Status.COMPLETE, FAILED or PRUNED, but got 'done'",
    ),
    (lambda: Outcome(1, reason=5), ValueTypeError, "a reason must be a text, but got 5"),
    (
        lambda: DistributedStudy(LINE).tell([1.0]),
        ValueTypeError,
        "values must be a dict, as {trial.id: 0.5}, but got [1.0]",
    ),
    (lambda: Study(LINE, journal=5), JournalError, "a journal is named by the path of a file, but got 5"),
    (lambda: Study.load(None), JournalError, "a journal is named by the path of a file, but got None"),
    (
        lambda: Study.load("run.jsonl", space={"x": 1}),
        SpaceError,
        "parameter 'x' must be a Real, Integer, Ordinal, Categorical or Library",
    ),
    (lambda: Study.load("run.jsonl", direction="maximize"), SettingError, "a run is loaded with its own direction"),
    (lambda: Study.load("run.jsonl", gama=0.3), SettingError, "classifier, acquisition, candidates, labels, gamma"),
]

PLOTS = [
    (lambda: plots.history(5), "what is drawn is a study, but got 5"),
    (lambda: plots.history("run.jsonl"), "what is drawn is a study, but got 'run.jsonl'"),
    (lambda: plots.history(["a"]), "values must be a list of numbers, one for each trial, but got ['a']"),
    (lambda: plots.history([1.0], direction="up"), "direction must be one of ['maximize', 'minimize']"),
    (lambda: plots.history(told(), path="history.xyz"), "suffix must be one of"),
    (lambda: plots.importance(5), "what is drawn is a study"),
    (lambda: plots.pairs(SPACE), "what is drawn is a study"),
    (lambda: plots.landscape(LINE), "what is drawn is a study"),
    (lambda: plots.report(None), "what is drawn is a study, but got None"),
    (lambda: plots.comparison(5), "groups must be a list of Curves, but got 5"),
    (lambda: plots.comparison([told()]), "Give Curves(name, [values])"),
]


def expect(error, says, call):
    CALLS.clear()
    with pytest.raises(error) as raised:
        call()
    assert any(each in str(raised.value) for each in says.split("|")), str(raised.value)
    assert not CALLS


# regression: each of these was wrong once
@pytest.mark.parametrize(("call", "error", "says"), [*SPACES, *TOLD])
def test_spaces_and_what_a_study_is_told(call, error, says):
    expect(error, says, call)


@pytest.mark.parametrize(("call", "says"), [*PARTS, *PLOTS])
def test_parts_and_pictures(call, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expect(SettingError, says, call)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("call", "says"), RUNS[:-1])
def test_a_run_that_can_not_be_meant_begins_no_journal(call, says, tmp_path):
    expect(SettingError, says, lambda: call(tmp_path / "run.jsonl"))
    assert not (tmp_path / "run.jsonl").exists()


def test_another_trainer_than_lightnings_evaluates_nothing(tmp_path):
    call, says = RUNS[-1]
    expect(SettingError, says, lambda: call(tmp_path / "run.jsonl"))


def test_what_the_first_evaluation_returns_is_told_with_one_full_stop():
    with pytest.raises(ObjectiveError, match=r"but got \(1\.0, 2\.0\)\. Fix the objective"):
        minimize(lambda p: (1, 2), LINE, 5)


def test_a_misspelt_name_is_told_what_was_meant():
    with pytest.raises(AttributeError, match="Did you mean 'minimize'"):
        deepbore.minimise  # noqa: B018  # asking is the test
