"""What strategy a run has by default."""

import pytest
import torch

from deepbore import (
    Categorical,
    ClassProbability,
    Condition,
    DeepEnsemble,
    DeepPLS,
    EpsilonGreedy,
    GreedyBatch,
    Integer,
    KernelPLS,
    LaplaceGGN,
    LocalSearch,
    LogExpectedImprovement,
    MLPClassifier,
    RandomSearch,
    Real,
    SearchSpace,
    ThresholdLabels,
    UpperConfidenceBound,
    ValueGradedLabels,
)
from deepbore.classifiers import PerColumn
from deepbore.labels import ChebyshevLabels, ObjectiveLabels
from deepbore.strategies import Evolution, ModelStrategy, NearBest, NeglectedChoices, OtherBranches, RoughGround, Turns
from deepbore.strategies.defaults import default_classifier, default_strategy, innermost, state_of_0_2
from plane import SQUARE

BRANCHED = SearchSpace({"n": Integer(1, 2), "x": Real(0, 1, when=Condition("n", 2))})
CHOICE = SearchSpace({"c": Categorical(list("abc")), "x": Real(0, 1)})
CHOSEN = SearchSpace({"c": Categorical(list("abc")), "x": Real(0, 1, when=Condition("c", "a"))})
SETTINGS = {"rows": 77, "iterations": 3, "prior": False, "crashes": False}


@pytest.mark.parametrize(
    ("objectives", "labels", "columns"),
    [
        (1, None, None),
        (3, None, 3),
        (1, ValueGradedLabels(), None),
        (3, ChebyshevLabels(), None),
        (3, ObjectiveLabels(3), 3),
    ],
)
def test_there_is_a_kernel_for_each_column_where_labels_grade_a_front(objectives, labels, columns):
    classifier = default_classifier(objectives, labels)
    assert type(classifier) is (PerColumn if columns else KernelPLS)
    parts = classifier.parts if columns else [classifier]
    assert [each.alike for each in parts] == ([False] * columns if columns else [True])


def built(classifier=None, space=SQUARE, labels=None, **others):
    return default_strategy(space, labels or ValueGradedLabels(), classifier or KernelPLS(), **others)


@pytest.mark.parametrize(("space", "kind"), [(SQUARE, NearBest), (BRANCHED, OtherBranches), (CHOICE, NeglectedChoices)])
def test_the_others_learn_as_the_classifier_does(space, kind):
    strategy = built(KernelPLS(**SETTINGS, alike=False, additive=False), space)
    other = strategy.others[0]
    beside = [RoughGround] if space is CHOICE else [Evolution] if space is SQUARE else []
    assert [type(each) for each in strategy.others] == [kind, *beside]
    assert all(each.rows == SETTINGS["rows"] for each in strategy.others if isinstance(each, RoughGround))
    if kind is NearBest:
        assert other._settings == SETTINGS
    else:
        given = SETTINGS | {"additive": False} | ({"alike": False} if kind is OtherBranches else {})
        assert {name: getattr(other.model, name) for name in given} == given


@pytest.mark.parametrize(("space", "kind"), [(SQUARE, NearBest), (BRANCHED, OtherBranches), (CHOICE, NeglectedChoices)])
def test_the_settings_of_the_others_are_those_of_a_kernel_by_default(space, kind):
    usual, other = KernelPLS(), built(space=space).others[0]
    made = other._settings if kind is NearBest else vars(other.model)
    for name in ("rows", "iterations", "prior", "crashes"):
        assert made[name] == getattr(usual, name)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("objectives", [1, 2])
def test_the_default_model_knows_whether_values_are_noisy(objectives, noisy):
    model = default_classifier(objectives, None, noisy)
    assert ("noisy=True" in repr(model)) == noisy


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ({}, [NearBest, Evolution]),
        ({"space": BRANCHED}, [OtherBranches]),
        ({"space": SearchSpace({"n": Integer(0, 9)})}, []),
        ({"space": CHOICE}, [NeglectedChoices, RoughGround]),
        ({"space": CHOSEN}, [NeglectedChoices, RoughGround, OtherBranches]),
        ({"classifier": KernelPLS(noisy=True), "space": CHOSEN}, []),
        ({"classifier": KernelPLS(noisy=True)}, [NearBest]),
        ({"classifier": KernelPLS(noisy=True), "space": BRANCHED}, []),
        ({"candidates": EpsilonGreedy(GreedyBatch(LocalSearch()))}, [NearBest, Evolution]),
        ({"candidates": EpsilonGreedy(GreedyBatch(RandomSearch()))}, []),
        ({"classifier": KernelPLS(length_scale=0.5)}, []),
        ({"labels": ChebyshevLabels()}, []),
    ],
)
def test_turns_are_had_where_they_help(given, kinds):
    strategy = built(**given)
    assert [type(each) for each in getattr(strategy, "others", [])] == kinds
    assert type(strategy) is (Turns if kinds else ModelStrategy)


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ({}, [NearBest, Evolution]),
        ({"space": BRANCHED}, [OtherBranches]),
        ({"space": CHOICE}, [NeglectedChoices, RoughGround]),
        ({"space": SearchSpace({"n": Integer(0, 9)})}, []),
        ({"labels": ThresholdLabels()}, []),
        ({"candidates": EpsilonGreedy(GreedyBatch(RandomSearch()))}, []),
        ({"classifier": LaplaceGGN(likelihood="bernoulli")}, []),
    ],
)
@pytest.mark.parametrize("head", [MLPClassifier, DeepEnsemble, LaplaceGGN, DeepPLS])
def test_networks_that_learn_grades_have_turns_too(head, given, kinds):
    strategy = built(**{"classifier": head(), **given})
    assert [type(each) for each in getattr(strategy, "others", [])] == kinds
    assert type(strategy) is (Turns if kinds else ModelStrategy)


def test_a_network_with_deviations_improves_on_the_best_label_in_continuous_spaces_alone():
    assert isinstance(built(DeepPLS()).first.acquisition, LogExpectedImprovement)
    assert isinstance(built(DeepPLS(), CHOICE).first.acquisition, UpperConfidenceBound)
    assert isinstance(built(DeepPLS(), acquisition=ClassProbability()).first.acquisition, ClassProbability)


def test_the_parts_that_are_given_are_those_of_the_first():
    classifier, acquisition, candidates = KernelPLS(), UpperConfidenceBound(), GreedyBatch()
    for space in (SQUARE, SearchSpace({"n": Integer(0, 9)})):
        strategy = built(classifier, space, acquisition=acquisition, candidates=candidates)
        first = getattr(strategy, "first", strategy)
        assert first.classifier is classifier
        assert type(first.acquisition) is UpperConfidenceBound
        assert first.candidates is candidates


def test_the_innermost_search_is_the_one_that_others_wrap():
    search = LocalSearch()
    assert innermost(EpsilonGreedy(GreedyBatch(search))) is innermost(GreedyBatch(search)) is search


OWN = {"weights": {"theta": 1}, "optimizers": [2], "ready": True, "candidates": {"seen": 3}}


@pytest.mark.parametrize(
    ("space", "kept", "others", "had_turn"),
    [
        (SQUARE, {}, [{}, {}], [False, False]),
        (SQUARE, {"nearby": {"is_due": True, "thetas": 4}}, [{"is_due": True, "thetas": 4}, {}], [True, False]),
        (SQUARE, {"nearby": {"is_due": False}, "elsewhere": {"is_due": False}}, [{"is_due": False}, {}], [False] * 2),
        (CHOICE, {}, [{}, {}], [False, False]),
        (CHOSEN, {"elsewhere": {"is_due": False, "x": 5}}, [{}, {}, {"is_due": False, "x": 5}], [False, False, True]),
        (BRANCHED, {}, [{}], [False]),
        (BRANCHED, {"elsewhere": {"is_due": True}, "nearby": {"is_due": True}}, [{"is_due": True}], [False]),
        (BRANCHED, {"elsewhere": {"is_due": False, "theta": 5}}, [{"is_due": False, "theta": 5}], [True]),
    ],
)
def test_a_snapshot_of_version_0_2_says_who_had_a_turn(space, kept, others, had_turn):
    expected = {"strategies": [OWN, *others], "had_turn": had_turn}
    assert state_of_0_2(built(space=space), OWN | kept | {"more": 0}) == expected


def test_a_snapshot_of_version_0_2_of_a_model_alone_has_its_state():
    assert state_of_0_2(ModelStrategy(KernelPLS()), OWN | {"nearby": {}, "more": 0}) == OWN


def test_a_state_of_version_0_2_may_be_loaded():
    first, second = built(), built()
    for each in (first, second):
        each.first.classifier.bind(SQUARE)
    with torch.no_grad():
        first.first.classifier.theta.fill_(0.25)
    second.load_state_dict(state_of_0_2(second, first.first.state_dict()))
    assert torch.equal(second.first.classifier.theta, first.first.classifier.theta)
