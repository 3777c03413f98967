"""Components and their old names: `deepbore.component` and `deepbore.validation` of version 0.2."""

import importlib
import inspect
from functools import partial

import pytest

from cases import ACQUISITIONS, CANDIDATES, CLASSIFIERS, LABELLINGS, PROBLEMS, STRATEGIES
from deepbore import (
    MedianPruner,
    ProcessEvaluator,
    Real,
    SerialEvaluator,
    Study,
    acquisition,
    candidates,
    classifiers,
    component,
    data,
    labels,
    strategies,
    validation,
)
from deepbore.acquisition import ClassProbability, UpperConfidenceBound
from deepbore.classifiers import AtBudgets, DeepEnsemble, KernelPLS, Training
from deepbore.component import Component, describe, make
from deepbore.data import Budget
from deepbore.errors import SettingError
from deepbore.evaluators import Timed

ROOMS = (acquisition, candidates, classifiers, labels, strategies, data)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        ("parts", "P" + "art", component.Component),
        ("parts", "describe", component.describe),
        ("checks", "whole", validation.whole),
    ],
)
def test_old_modules_give_the_new_objects_with_a_warning(module, name, value):
    old = importlib.import_module("deepbore." + module)
    with pytest.warns(DeprecationWarning, match=rf"is now {value.__module__}.{value.__name__}"):
        assert getattr(old, name) is value
    with pytest.raises(AttributeError):
        _ = old.no_such_name


def test_a_component_is_made_again_from_its_description():
    again = make(describe(UpperConfidenceBound(2.0)), UpperConfidenceBound)
    assert type(again) is UpperConfidenceBound
    assert again.kappa == 2.0


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("os.path.join", "not a class of deepbore"),
        ("deepbore.acquisition.Nowhere", "is no part of a run"),
        ("deepbore.acquisition.UpperConfidenceBound", "must be a ClassProbability"),
    ],
)
def test_a_description_of_another_class_is_refused(path, says):
    with pytest.raises(SettingError, match=says):
        make({"class_path": path, "init_args": {}}, ClassProbability)


FOREIGN = [
    {"class_path": "deepbore.problems.FunctionProblem", "init_args": {"function": "evil.f", "space": ""}},
    {"class_path": "deepbore.problems.base.FunctionProblem", "init_args": {"function": "evil.f", "space": ""}},
    {"class_path": "deepbore.cli.config.RunCLI", "init_args": {"args": ["fit"]}},
    {"class_path": "deepbore.loop.lightning.Trainer", "init_args": {}},
    {"class_path": "deepbore.evaluators.ProcessEvaluator", "init_args": {"objective": "evil.f"}},
    {"class_path": "deepbore.classifiers.kernel.least_squares.KernelPLS", "init_args": {}},
    {"class_path": "deepbore.classifiers.Link", "init_args": {"value": "logit"}},
    {"class_path": "deepbore.strategies.View", "init_args": {}},
    {"class_path": "deepbore.labels.evil.f", "init_args": {}},
    {"class_path": "deepbore.labels.__builtins__", "init_args": {}},
    {"class_path": "evil.f", "init_args": {}},
    {"class_path": ["evil.f"], "init_args": {}},
    {"class_path": "deepbore.classifiers.KernelPLS", "init_args": ["evil.f"]},
    {"init_args": {}},
    {},
]


@pytest.mark.parametrize("foreign", FOREIGN, ids=[str(each)[:60] for each in FOREIGN])
@pytest.mark.parametrize("place", ["whole", "setting", "list", "deep"])
def test_text_names_nothing_that_is_not_on_a_list(foreign, place, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("open('ran', 'w').write('x')\ndef f(params): return 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    inner = {"class_path": "deepbore.candidates.GreedyBatch", "init_args": {"base": foreign}}
    described = {
        "whole": foreign,
        "setting": inner,
        "list": {"class_path": "deepbore.strategies.Turns", "init_args": {"strategies": [foreign]}},
        "deep": {"class_path": "deepbore.candidates.EpsilonGreedy", "init_args": {"base": inner}},
    }[place]
    with pytest.raises(SettingError):
        make(described, component.Component)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "part", [DeepEnsemble(training=Training(steps=3)), AtBudgets(KernelPLS(), Budget("epochs", 1, 9))]
)
def test_records_of_settings_are_made_again(part):
    assert describe(make(describe(part), component.Component)) == describe(part)


MISPLACED = {
    "a classifier for a search": ("candidates.GreedyBatch", {"base": "classifiers.KernelPLS"}),
    "a labelling for a classifier": ("classifiers.Calibrated", {"classifier": "labels.ThresholdLabels"}),
    "a record for a classifier": ("classifiers.PerColumn", {"classifier": "classifiers.Training"}),
    "a search in a number": ("classifiers.KernelPLS", {"rows": "candidates.RandomSearch"}),
    "a search for a function": ("classifiers.MLPClassifier", {"network": "candidates.RandomSearch"}),
    "a classifier among strategies": ("strategies.Turns", {"strategies": ["classifiers.KernelPLS"]}),
    "a search for a schedule": ("labels.ThresholdLabels", {"gamma": "candidates.RandomSearch"}),
}


@pytest.mark.parametrize(("outer", "settings"), MISPLACED.values(), ids=MISPLACED)
def test_a_part_stands_only_where_its_kind_is_expected(outer, settings):
    def described(name):
        return {"class_path": f"deepbore.{name}", "init_args": {}}

    inner = {
        name: [described(each) for each in value] if isinstance(value, list) else described(value)
        for name, value in settings.items()
    }
    with pytest.raises(SettingError, match=r"must be a|is no part"):
        make({**described(outer), "init_args": inner}, component.Component)


@pytest.mark.parametrize("settings", [{"rows": "many"}, {"no_such": 1}, {"rows": [1]}, {"": None}, {"rows": 1e308}])
def test_damaged_settings_are_refused_in_words(settings):
    with pytest.raises(SettingError):
        make({"class_path": "deepbore.classifiers.KernelPLS", "init_args": settings}, component.Component)


PARTS = [
    *ACQUISITIONS.values(),
    *CANDIDATES.values(),
    *CLASSIFIERS.values(),
    *LABELLINGS.values(),
    *STRATEGIES.values(),
]
NAMES = {name: getattr(room, name) for room in ROOMS for name in room.__all__}


@pytest.mark.parametrize("make_part", PARTS, ids=lambda each: getattr(each, "__name__", None))
def test_a_part_prints_as_the_call_that_makes_it(make_part):
    part = make_part()
    assert describe(eval(repr(part), dict(NAMES))) == describe(part)


def activation(x):
    return x


class Odd(component.Component):
    """Takes everything."""

    def __init__(self, *parts, function=None, **more):
        pass


def test_functions_and_classes_are_named_and_what_is_long_is_cut():
    given = partial(sorted, key=len)
    part = Odd(1, Odd("a"), function=activation, cls=Odd, of=[(1,), given], text="x" * 1000, what=object())
    assert repr(part).startswith(
        "Odd(1, Odd('a'), function=activation, cls=Odd, of=[(1,), partial(sorted, key=len)], text='xxx"
    )
    assert repr(part).endswith("x..., what=<object object>)")
    assert len(repr(part)) < 400


def test_a_recipe_prints_its_parts_in_notebooks_too():
    study = Study({"x": Real(0, 1)}, classifier=KernelPLS(noisy=True), pruner=MedianPruner(startup_trials=3))
    assert "KernelPLS(noisy=True)" in repr(study.state.recipe)
    assert "<td>pruner</td><td>MedianPruner(startup_trials=3)</td>" in study.state.recipe._repr_html_()


@pytest.mark.parametrize("problem", ["Branin", "Hartmann", "ZDT"])
def test_a_problem_and_an_evaluator_print_no_address(problem):
    made = PROBLEMS[problem]()
    assert repr(made) == f"<{problem} of {len(made.space)} parameters>"
    assert repr(SerialEvaluator(activation)) == "SerialEvaluator(activation)"
    assert repr(Timed(ProcessEvaluator(activation, 3))) == "Timed(ProcessEvaluator(activation, workers=3))"


def test_help_shows_the_arguments_of_a_class_and_of_an_object_those_of_a_call():
    import deepbore

    for name in dir(deepbore):
        kind = getattr(deepbore, name)
        if inspect.isclass(kind) and issubclass(kind, Component):
            shown = str(inspect.signature(kind))
            assert "*args" not in shown, name
            assert not shown.startswith("(self"), name
    assert str(inspect.signature(deepbore.ClassProbability)) == "()"
    assert list(inspect.signature(deepbore.MedianPruner).parameters) == ["startup_trials", "warmup_steps"]
    assert list(inspect.signature(deepbore.ClassProbability()).parameters) == ["posterior", "best"]
