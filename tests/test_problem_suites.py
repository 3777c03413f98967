"""The problems of the benchmark: COCO, real training runs, noisy functions, and their names."""

import pickle

import numpy as np
import pytest
import torch
from scipy import stats

from deepbore.data.outcome import Outcome
from deepbore.errors import PointError, SettingError
from deepbore.problems import Branin, Coco, Noisy, Problem, TrainingRun, suites
from deepbore.problems.training import RUNS
from deepbore.space import Real, SearchSpace

COCO_FUNCTIONS = [
    (suite, function, dimension)
    for suite, dimension in [("bbob", 2), ("bbob-mixint", 5), ("bbob-noisy", 3), ("bbob-largescale", 20)]
    for function in Coco.functions(suite)
]


def some(problem, n, seed=0):
    return problem.space.decode(problem.space.sample(n, torch.Generator().manual_seed(seed)))


def named(x):
    return {f"x{i}": value for i, value in enumerate(x)}


# --- COCO ------------------------------------------------------------------------------------------------------------


def best_of(problem, monkeypatch, tmp_path):
    """COCO's own best configuration, which it writes into the working directory."""
    monkeypatch.chdir(tmp_path)
    problem._function._best_parameter("print")
    best = np.loadtxt("._bbob_problem_best_parameter.txt").tolist()
    return {
        name: int(value) if parameter.kind == "integer" else value
        for (name, parameter), value in zip(problem.space.parameters.items(), best, strict=True)
    }


@pytest.mark.parametrize(("suite", "function", "dimension"), COCO_FUNCTIONS)
def test_a_coco_functions_optimum_is_0(suite, function, dimension, monkeypatch, tmp_path):
    for instance in (1, 4):
        problem = Coco(suite, function, instance, dimension)
        assert problem.true_value(best_of(problem, monkeypatch, tmp_path)) == pytest.approx(0.0, abs=1e-8)
        assert min(map(problem.true_value, some(problem, 5))) > 0


def test_a_coco_functions_values_are_cocos(monkeypatch, tmp_path):
    cocoex = pytest.importorskip("cocoex")
    theirs = cocoex.Suite("bbob-mixint", "instances: 2", "function_indices: 15 dimensions: 10").get_problem(0)
    ours = Coco("bbob-mixint", 15, 2, 10)
    lowest = theirs(list(best_of(ours, monkeypatch, tmp_path).values()))
    for params in some(ours, 10):
        assert ours(params) == pytest.approx(theirs(list(params.values())) - lowest, rel=1e-9)
        assert ours.true_value(params) == ours(params)


@pytest.mark.parametrize(("noisy", "free", "factor"), [(101, 1, 1), (112, 8, 1), (114, 7, 1), (125, 19, 0.1)])
def test_a_noisy_functions_true_value_is_that_of_the_function_without_noise(noisy, free, factor):
    problem, reference = Coco("bbob-noisy", noisy, 3, 5), Coco("bbob", free, 3, 5)
    for params in some(problem, 10):
        assert problem.true_value(params) == pytest.approx(factor * reference(params), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("function", [102, 107, 108, 109, 116, 130])
def test_the_noise_has_the_distribution_of_cocos(function):
    cocoex = pytest.importorskip("cocoex")
    wanted = f"function_indices: {function - 100} dimensions: 5"
    theirs = cocoex.Suite("bbob-noisy", "instances: 1", wanted).get_problem(0)
    ours, x = Coco("bbob-noisy", function, 1, 5), [1.0, -2.0, 0.5, 3.0, 0.0]
    without_noise = Coco("bbob-noisy", function, 1, 5).true_value(named(x))
    lowest = Coco("bbob", {116: 10, 130: 21}.get(function, 1), 1, 5)._lowest
    values = np.array([[ours(named(x)), theirs(x) - lowest] for _ in range(800)]).round(6)
    assert stats.ks_2samp(*values.T, method="asymp").pvalue > 0.01
    assert len(np.unique(values[:, 0])) > 50
    assert without_noise == ours.true_value(named(x))


def test_noise_is_of_the_seed_the_configuration_and_how_often_it_was_seen():
    here, there, other = (Coco("bbob-noisy", 107, 1, 2, seed=seed) for seed in (0, 0, 1))
    first, second = some(here, 2)
    values = [here(first), here(second), here(first)]
    assert [there(second), there(first), there(first)] == [values[1], values[0], values[2]]  # in another order
    assert values[0] != values[2]
    assert other(first) != values[0]
    assert pickle.loads(pickle.dumps(there))(second) == here(second)


def test_a_mixed_functions_space_is_cocos():
    space = Coco("bbob-mixint", 1, 1, 10).space
    highs = [parameter.high for parameter in space.parameters.values()]
    assert highs == [1, 1, 3, 3, 7, 7, 15, 15, 5, 5]
    assert [parameter.kind for parameter in space.parameters.values()] == ["integer"] * 8 + ["real"] * 2
    assert Coco("bbob", 1, 1, 3).space == SearchSpace({f"x{i}": Real(-5.0, 5.0) for i in range(3)})


def test_coco_goes_to_worker_processes():
    problem = Coco("bbob-largescale", 3, 1, 20)
    params = some(problem, 1)[0]
    assert pickle.loads(pickle.dumps(problem))(params) == problem(params)


@pytest.mark.parametrize(
    "settings", [("bob", 1, 1, 2), ("bbob", 25, 1, 2), ("bbob-noisy", 1, 1, 2), ("bbob", 1, 0, 2), ("bbob", 1, 1, 4)]
)
def test_a_coco_function_that_is_none_is_refused(settings):
    with pytest.raises(SettingError):
        Coco(*settings)
    with pytest.raises(PointError):
        Coco("bbob", 1, 1, 2)({"x0": 6.0, "x1": 0.0})


def test_a_true_value_is_what_a_call_gives_where_there_is_no_noise():
    assert Branin().true_value({"x0": 3.0, "x1": 2.0}) == Branin()({"x0": 3.0, "x1": 2.0})
    assert Problem.true_value is Branin.true_value


# --- training runs ---------------------------------------------------------------------------------------------------


def outcome_of(problem, params):
    """A value, or the name of the error that there is in its place."""
    try:
        return problem(params)
    except Exception as error:  # whatever scikit-learn raises
        return type(error).__name__


@pytest.mark.parametrize("name", RUNS)
def test_a_training_run_gives_a_value_or_fails_by_itself_and_always_the_same(name):
    problem, again = TrainingRun(name), TrainingRun(name)
    sobol = problem.space.decode(problem.space.sobol(3, seed=0))
    values = [outcome_of(problem, params) for params in sobol]
    assert [value for value in values if isinstance(value, float)]
    assert {value for value in values if isinstance(value, str)} <= {
        "ValueError",
        "AttributeError",
        "NotImplementedError",
    }
    torch.manual_seed(5)
    np.random.seed(5)
    assert repr(outcome_of(again, sobol[0])) == repr(values[0])
    assert problem.optimum is None


@pytest.mark.parametrize(
    ("name", "params", "bar"),
    [
        ("svm-digits", {"kernel": "rbf", "C": 10.0, "gamma": 1e-3}, 0.96),
        (
            "mlp-wine",
            {"scaler": "standard", "width": 32, "depth": 1, "activation": "tanh", "alpha": 1e-2, "solver": "lbfgs"},
            0.95,
        ),
        ("pipeline-digits", {"model": "bayes", "scaler": "none", "components": 20, "bayes_var_smoothing": 1e-9}, 0.85),
    ],
)
def test_a_good_model_is_good(name, params, bar):
    assert bar < TrainingRun(name)(params) < 1.0


def test_a_training_run_is_what_scikit_learn_gives():
    from sklearn.datasets import load_iris
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(
        SVC(C=0.7, kernel="poly", gamma=0.2, degree=3, coef0=1.0), *load_iris(return_X_y=True), cv=folds
    )
    params = {"kernel": "poly", "C": 0.7, "gamma": 0.2, "degree": 3, "coef0": 1.0}
    assert TrainingRun("svm-iris")(params) == pytest.approx(scores.mean(), rel=1e-12)


def test_settings_that_do_not_go_together_fail_with_scikit_learns_errors():
    logistic = {"scaler": "standard", "solver": "sag", "class_weight": None, "max_iter": 50}
    with pytest.raises(ValueError, match="Solver sag supports only 'l2' or None penalties"):
        TrainingRun("logistic-cancer")(logistic | {"penalty": "l1", "C": 1.0})
    assert TrainingRun("logistic-cancer")(logistic | {"penalty": "none"}) < 0.2
    with pytest.raises(NotImplementedError, match="shrinkage not supported"):
        TrainingRun("pipeline-wine")(
            {
                "model": "linear",
                "scaler": "none",
                "components": 5,
                "linear_solver": "svd",
                "linear_shrinks": True,
                "linear_shrinkage": 0.5,
            }
        )


def test_training_that_diverges_is_reported_as_it_is():
    wild = {"learning_rate": 1.0, "width": 64, "depth": 3, "activation": "relu", "batch_size": 32, "dropout": 0.0}
    wild |= {"weight_decay": 0.1, "optimizer": "sgd", "momentum": 0.99}
    assert not np.isfinite(TrainingRun("network-diabetes")(wild))


def test_a_training_run_that_is_none_is_refused():
    with pytest.raises(SettingError, match="name must be one of"):
        TrainingRun("svm")
    with pytest.raises(PointError):
        TrainingRun("svm-iris")({"kernel": "linear", "C": 1.0, "gamma": 1.0})


# --- noise -----------------------------------------------------------------------------------------------------------

CENTRE = {"x0": 2.5, "x1": 7.5}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "law"), [("normal", stats.norm()), ("student", stats.t(3, scale=3**-0.5)), ("cauchy", stats.cauchy())]
)
def test_noise_has_the_law_and_the_scale_it_says(kind, law):
    problem = Noisy(Branin(), scale=5.0, kind=kind)
    noise = np.array([problem(CENTRE) for _ in range(2000)]) - problem.true_value(CENTRE)
    assert stats.kstest(noise / 5.0, law.cdf).pvalue > 0.01
    if kind != "cauchy":
        assert law.std() == pytest.approx(1.0)
        assert noise.mean() == pytest.approx(0.0, abs=4 * 5.0 / 2000**0.5)


def test_noise_is_of_the_seed_and_new_at_each_evaluation():
    here, there, other = (Noisy(Branin(), scale=1.0, seed=seed) for seed in (0, 0, 1))
    values = [here(CENTRE), here(CENTRE)]
    assert values == [there(CENTRE), there(CENTRE)]
    assert len({*values, other(CENTRE), other(CENTRE)}) == 4
    fresh = pickle.loads(pickle.dumps(Noisy(Branin(), scale=1.0)))
    assert fresh(CENTRE) == values[0]


def test_a_noisy_problem_keeps_what_is_known_of_the_one_beneath():
    problem = Noisy(Branin(), scale=1.0)
    assert problem.true_value(CENTRE) == Branin()(CENTRE)
    assert (problem.optimum, problem.direction) == (Branin().optimum, "minimize")
    assert Noisy(TrainingRun("svm-iris"), scale=0.01).direction == "maximize"
    for settings in ({"scale": 0.0}, {"scale": 1.0, "kind": "uniform"}, {"scale": 1.0, "seed": -1}):
        with pytest.raises(SettingError):
            Noisy(Branin(), **settings)


def test_a_failure_beneath_noise_is_one():
    class Failing(Branin):
        def __call__(self, params):
            return Outcome.failure("out of memory")

    assert Noisy(Failing(), scale=1.0)({"x0": 0.0, "x1": 0.0}).reason == "out of memory"


@pytest.mark.slow
@pytest.mark.parametrize("name", suites.SPREADS)
def test_spreads_are_standard_deviations_over_the_space(name):
    problem = suites.problem(name)
    values = [problem(params) for params in some(problem, 2000)]
    assert suites.SPREADS[name] == pytest.approx(np.std(values), rel=0.1)


def test_the_seed_of_a_run_is_that_of_its_noise():
    first, second = (suites.problem("noisy/hartmann6-loud", seed=seed) for seed in (0, 1))
    params = some(first, 1)[0]
    assert first(params) != second(params)
    assert first.true_value(params) == second.true_value(params)
    assert first.scale == pytest.approx(0.5 * 0.384)
    assert suites.problem("bbob-noisy/f107/i01/d02", seed=3).seed == 3


# --- names -----------------------------------------------------------------------------------------------------------

DEVELOPMENT = {
    "branches": [
        "branches/12x2-3",
        "branches/12x2-6",
        "branches/12x2-0",
        "branches/6x3-0",
        "branches/6x3-1",
        "branches/6x3-2",
        "branches/12x2-5",
        "branches/6x3-7",
    ],
    "tables": [
        "hpolib/slice_localization",
        "nasbench201/cifar10",
        "nasbench201/cifar100",
        "hpolib/protein_structure",
    ],
    "training": [
        "training/network-cancer",
        "training/boosting-cancer",
        "training/svm-diabetes",
        "training/logistic-digits",
        "training/pipeline-diabetes",
        "training/logistic-cancer",
        "training/knn-cancer",
        "training/mlp-diabetes",
        "training/knn-digits",
        "training/svm-digits",
        "training/pipeline-digits",
        "training/descent-wine",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tables", "training", "levels", "noisy", "functions", "control"])
def test_every_name_makes_a_problem(name):
    for each in suites.suite(name, half="all"):
        assert isinstance(suites.problem(each), Problem)


@pytest.mark.parametrize("name", list(Coco.DIMENSIONS))
def test_a_coco_name_makes_its_function(name):
    for each in suites.suite(name, dimensions=Coco.DIMENSIONS[name][1:2], instances=[3]):
        made = suites.problem(each)
        assert f"{made.suite}/f{made.function:02d}/i{made.instance:02d}/d{made.dimension:02d}" == each
        assert len(made.space.names) == made.dimension


@pytest.mark.parametrize("name", suites.SUITES)
def test_halves_share_nothing_and_are_the_whole(name):
    half = {half: suites.suite(name, half=half) for half in ("development", "held_out", "all")}
    assert not set(half["development"]) & set(half["held_out"])
    assert sorted(half["development"] + half["held_out"]) == sorted(half["all"])
    assert len(set(half["all"])) == len(half["all"])


@pytest.mark.parametrize("name", DEVELOPMENT)
def test_the_half_for_development_stays_as_it_was_drawn(name):
    assert suites.suite(name) == DEVELOPMENT[name]


@pytest.mark.parametrize("half", ["development", "held_out", "all"])
def test_a_run_on_levels_is_in_the_half_of_the_run_without(half):
    names = [name.partition("/")[2] for name in suites.suite("training", half=half)]
    assert suites.suite("levels", half=half) == [f"levels/{name}" for name in names]


def test_cocos_instances_above_5_are_held_out():
    instances = {int(each.split("/")[2][1:]) for each in suites.suite("bbob", half="held_out")}
    assert instances == set(range(6, 16))
    assert suites.suite("bbob", half="held_out", dimensions=[2], instances=[71])[0] == "bbob/f01/i71/d02"
    assert suites.suite("bbob-noisy", dimensions=[5], instances=[1])[-1] == "bbob-noisy/f130/i01/d05"
    for half, instance in [("development", 6), ("held_out", 5)]:
        with pytest.raises(SettingError, match=f"but got instance={instance} for half='{half}'"):
            suites.suite("bbob", half=half, instances=[instance])


@pytest.mark.parametrize(
    "name", ["bob/f01/i01/d05", "bbob/f1/i1/d5", "bbob/f01/i01/d005", "bbob/f01/i01/d04", "tables", "hpobench/x"]
)
def test_a_name_that_no_problem_has_is_refused(name):
    with pytest.raises(SettingError):
        suites.problem(name)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("bob", {}), ("bbob", {"half": "test"}), ("bbob", {"dimensions": [4]}), ("tables", {"dimensions": [5]})],
)
def test_a_suite_that_is_none_is_refused(name, settings):
    with pytest.raises(SettingError):
        suites.suite(name, **settings)
