"""What a recipe is made of, whatever is given and whatever a header says."""

import pytest

from deepbore import (
    Budget,
    DeepEnsemble,
    EmphasiseChanges,
    GreedyBatch,
    KernelPLS,
    LaplaceGGN,
    LocalSearch,
    LogExpectedImprovement,
    PreferenceLabels,
    RandomForest,
    ThresholdLabels,
    UpperConfidenceBound,
    ValueGradedLabels,
)
from deepbore.classifiers import Link
from deepbore.component import describe
from deepbore.errors import SettingError
from deepbore.labels import ObjectiveLabels
from deepbore.loop.recipe import (
    N_INITIAL,
    Recipe,
    check_budget,
    first_model,
    given_names,
    parts_of,
    refuse_both,
    short_form,
    shown,
)
from deepbore.strategies import Evolution, ModelStrategy, NearBest, Strategy, Turns
from plane import LINE, SQUARE
from rungs import EPOCHS


class Alone(Strategy):
    """A strategy without a model, or with one that is not of a `ModelStrategy`."""

    def __init__(self, *models):
        self.own = models

    @property
    def models(self):
        return self.own

    def propose(self, view, q):
        raise NotImplementedError


# --- what it has -----------------------------------------------------------------------------------------------------


def test_the_parts_of_a_recipe_are_those_of_the_first_strategy():
    first = ModelStrategy(KernelPLS(), UpperConfidenceBound(), GreedyBatch())
    for strategy in (first, Turns([first, NearBest()])):
        recipe = Recipe(ValueGradedLabels(), strategy, 5)
        assert recipe.first is first
        assert (recipe.acquisition, recipe.candidates) == (first.acquisition, first.candidates)
        assert recipe.classifier is first.classifier
    model = KernelPLS()
    recipe = Recipe(ValueGradedLabels(), Alone(model), 5)
    assert recipe.first is recipe.acquisition is recipe.candidates is None
    assert recipe.classifier is model


def test_defaults_are_those_of_the_space():
    recipe = Recipe.resolve(SQUARE)
    assert recipe.n_initial == N_INITIAL == 10
    assert recipe.given == frozenset()
    assert type(recipe.labels) is ValueGradedLabels
    assert [type(each) for each in recipe.strategy.others] == [NearBest, Evolution]
    assert Recipe.resolve(SQUARE, n_initial=3).n_initial == 3


def test_what_is_given_is_taken():
    classifier, labels, candidates = RandomForest(trees=3), ThresholdLabels(0.3), GreedyBatch(LocalSearch(samples=9))
    recipe = Recipe.resolve(SQUARE, labels=labels, classifier=classifier, candidates=candidates)
    assert (recipe.labels, recipe.classifier, recipe.candidates) == (labels, classifier, candidates)
    assert recipe.given == {"labels", "classifier", "candidates"}
    assert Recipe.resolve(SQUARE, classifier=RandomForest(trees=3), gamma=0.4).labels.gamma == 0.4
    assert Recipe.resolve(SQUARE, gamma=0.4).given == {"labels"}
    strategy = ModelStrategy(KernelPLS())
    recipe = Recipe.resolve(SQUARE, strategy=strategy)
    assert (recipe.strategy, recipe.given) == (strategy, {"strategy"})


def test_default_labels_suit_objectives_and_preferences():
    assert type(Recipe.resolve(SQUARE, 2).labels) is ObjectiveLabels
    preferred = Recipe.resolve(SQUARE, by_preference=True).labels
    assert type(preferred) is PreferenceLabels
    assert type(Recipe.resolve(SQUARE, by_preference=True, labels=ThresholdLabels()).labels) is ThresholdLabels


@pytest.mark.parametrize("given", [{}, {"strategy": ModelStrategy(KernelPLS())}])
def test_with_a_budget_labels_and_strategy_know_of_it(given):
    for recipe in (Recipe.resolve(LINE, budget=EPOCHS, **given), Recipe.again(LINE, 1, {}, given, EPOCHS)):
        assert recipe.classifier.budget == EPOCHS
        assert type(recipe.labels) is not ValueGradedLabels
    assert not hasattr(Recipe.resolve(LINE).classifier, "budget")


def test_turns_that_are_given_take_turns():
    near = NearBest()
    recipe = Recipe.resolve(SQUARE, turns=[near])
    assert recipe.strategy.others == [near]
    assert type(Recipe.resolve(SQUARE, turns=[]).strategy) is ModelStrategy
    acquisition, candidates, classifier = UpperConfidenceBound(), GreedyBatch(), KernelPLS()
    for turns in (None, [], [near]):
        strategy = short_form(SQUARE, ValueGradedLabels(), classifier, acquisition, candidates, turns)
        first = getattr(strategy, "first", strategy)
        assert first.classifier is classifier
        assert first.candidates is candidates
        assert type(first.acquisition) is UpperConfidenceBound


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"labels": ThresholdLabels(), "gamma": 0.3}, "either labels or gamma"),
        ({"labels": KernelPLS()}, "labels"),
        ({"strategy": KernelPLS()}, "strategy"),
        ({"classifier": LocalSearch()}, "classifier"),
        ({"acquisition": LocalSearch()}, "acquisition"),
        ({"candidates": KernelPLS()}, "candidates"),
        ({"n_initial": 0}, "n_initial >= 1"),
        ({"budget": 9}, "must be a Budget"),
        ({"budget": EPOCHS, "objectives": 2}, "one objective"),
        ({"strategy": ModelStrategy(KernelPLS()), "classifier": KernelPLS()}, "either strategy or classifier"),
        ({"strategy": Alone()}, "Alone has none"),
        ({"objectives": 2, "labels": ThresholdLabels()}, "outcomes of 1 value.* has 2 direction"),
        ({"strategy": Turns([ModelStrategy(KernelPLS()), NearBest()]), "labels": ObjectiveLabels(1)}, "objective"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        Recipe.resolve(SQUARE, **settings)


def test_some_things_are_no_reason_to_refuse():
    check_budget(None, 3)
    check_budget(EPOCHS)
    refuse_both({"classifier": None, "acquisition": None})
    with pytest.raises(SettingError, match="either strategy or acquisition, candidates"):
        refuse_both({"classifier": None, "acquisition": 1, "candidates": 2})
    model = KernelPLS()
    assert first_model(Alone(model, KernelPLS())) is model


# --- what a header says ----------------------------------------------------------------------------------------------


def test_a_header_names_the_short_form_and_the_turns_unless_a_strategy_was_given():
    recipe = Recipe.resolve(SQUARE, gamma=0.4, n_initial=3)
    described = recipe.described
    assert described == {
        "labels": describe(recipe.labels),
        "classifier": describe(recipe.classifier),
        "acquisition": describe(recipe.acquisition),
        "candidates": describe(recipe.candidates),
        "turns": [describe(each) for each in recipe.strategy.others],
        "n_initial": 3,
        "given": ["labels"],
        "edition": 1,
    }
    assert len(described["turns"]) == 2
    assert Recipe.resolve(SQUARE, classifier=RandomForest(trees=3)).described["turns"] == []
    recipe = Recipe.resolve(SQUARE, strategy=ModelStrategy(KernelPLS()))
    assert recipe.described == {
        "labels": describe(recipe.labels),
        "strategy": describe(recipe.strategy),
        "n_initial": 10,
        "given": ["strategy"],
        "edition": 1,
    }


def test_a_recipe_is_made_again_from_its_header():
    first = Recipe.resolve(SQUARE, classifier=RandomForest(trees=3), gamma=0.3, n_initial=4)
    again = Recipe.again(SQUARE, 1, first.described, {})
    assert again.described == first.described
    assert first.differences(again.described) == []
    changed = Recipe.again(SQUARE, 1, first.described, {"n_initial": 6, "gamma": None})
    assert changed.n_initial == 6
    assert changed.given == {"classifier", "labels"}
    assert changed.differences(first.described) == ["n_initial is 6, was 4"]


def test_what_is_given_again_takes_the_place_of_what_it_stands_for():
    plain = Recipe.resolve(SQUARE, strategy=ModelStrategy(RandomForest(trees=3))).described
    again = Recipe.again(SQUARE, 1, plain, {"classifier": KernelPLS()})
    assert type(again.classifier) is KernelPLS
    assert again.given == {"classifier"}
    short = Recipe.resolve(SQUARE, classifier=RandomForest(trees=3), labels=ThresholdLabels()).described
    again = Recipe.again(SQUARE, 1, short, {"strategy": ModelStrategy(KernelPLS())})
    assert again.given == {"strategy", "labels"}
    assert type(again.classifier) is KernelPLS


HEADER = {
    "labels": describe(ThresholdLabels(0.3)),
    "classifier": describe(RandomForest(trees=3)),
    "acquisition": describe(UpperConfidenceBound(1.0)),
    "candidates": describe(GreedyBatch()),
    "turns": [describe(NearBest())],
    "n_initial": 4,
}


@pytest.mark.parametrize(
    ("given", "was_given", "expected"),
    [
        ({}, [], {"labels", "classifier", "acquisition", "candidates", "turns", "n_initial"}),
        ({"classifier": None}, [], {"labels", "classifier", "acquisition", "candidates", "turns", "n_initial"}),
        ({"n_initial": 7}, [], {"labels", "classifier", "acquisition", "candidates", "turns", "n_initial"}),
        ({"labels": 1}, [], {"labels", "classifier", "acquisition", "candidates", "n_initial"}),
        ({"gamma": 1}, [], {"gamma", "classifier", "acquisition", "candidates", "n_initial"}),
        ({"acquisition": 1}, [], {"labels", "classifier", "acquisition", "candidates", "n_initial"}),
        ({"strategy": 1}, [], {"strategy", "labels", "n_initial"}),
        ({"classifier": 1}, [], {"classifier", "n_initial"}),
        ({"classifier": 1}, ["candidates"], {"classifier", "candidates", "n_initial"}),
        ({"classifier": 1}, ["labels", "n_initial"], {"classifier", "labels", "n_initial"}),
    ],
)
def test_parts_of_a_header_stay_where_they_suit_what_is_given(given, was_given, expected):
    parts = parts_of({**HEADER, "given": was_given}, given)
    assert set(parts) == expected
    assert all(parts[name] == value for name, value in given.items() if value is not None)
    for name in expected - set(given):
        if name == "n_initial":
            assert parts[name] == 4
        else:
            made = [describe(each) for each in parts[name]] if name == "turns" else describe(parts[name])
            assert made == HEADER[name]


def test_a_part_that_can_not_be_made_again_is_named():
    with pytest.raises(SettingError, match=r"the journal's labels can't be made again.* Here: labels=\.\.\."):
        parts_of({"labels": {"class_path": "deepbore.Nothing", "init_args": {}}}, {})


def test_names_of_what_is_given():
    assert given_names({"gamma": 0.3, "strategy": None, "n_initial": 4}) == {"labels", "n_initial"}


def test_differences_pass_over_what_version_0_2_did_not_write():
    recipe = Recipe.resolve(SQUARE)
    header = dict(recipe.described)
    assert recipe.differences({**header, "given": ["labels"]}) == []
    assert len(recipe.differences({**header, "turns": []})) == 1
    del header["turns"]
    assert recipe.differences(header) == []
    (words,) = recipe.differences({**header, "labels": describe(ThresholdLabels(0.3))})
    assert words.startswith("labels is ValueGradedLabels(")
    assert ", was ThresholdLabels(gamma=0.3)" in words


def test_descriptions_are_shown_on_a_line():
    assert shown(describe(ThresholdLabels(0.3))) == "ThresholdLabels(gamma=0.3)"
    assert shown(describe(EmphasiseChanges(ThresholdLabels(0.3), boost=2.0))).startswith("EmphasiseChanges(")
    assert "=ThresholdLabels(gamma=0.3), " in shown(describe(EmphasiseChanges(ThresholdLabels(0.3), boost=2.0)))
    assert shown(["a", 1, None]) == "['a', 1, None]"
    assert shown({"a": 1}) == "{'a': 1}"


def test_the_default_acquisition_of_a_kernel_is_expected_improvement():
    assert type(Recipe.resolve(SQUARE).acquisition) is LogExpectedImprovement
    assert Budget("epochs", 1, 27) == EPOCHS


# --- runs of versions 0.1 to 0.3 with networks, whose defaults were others -------------------------------------------

BEFORE = {"class_path": "deepbore.labels.ThresholdLabels", "init_args": {"gamma": 0.25}}


def header_of_0_3(head):
    """The recipe in the header of a journal of version 0.3 with a network that was given alone."""
    described = {"class_path": f"deepbore.classifiers.{head}", "init_args": {}}
    bound = {"class_path": "deepbore.acquisition.UpperConfidenceBound", "init_args": {"kappa": 1.0}}
    search = {"class_path": "deepbore.candidates.GreedyBatch", "init_args": {}}
    parts = {"labels": BEFORE, "classifier": described, "acquisition": bound, "candidates": search}
    return {**parts, "turns": [], "n_initial": 10, "given": ["classifier"]}


def is_as_before(recipe):
    return type(recipe.labels) is ThresholdLabels and type(recipe.strategy) is ModelStrategy


@pytest.mark.parametrize("head", [DeepEnsemble, LaplaceGGN])
@pytest.mark.parametrize("leave", [(), ("turns",)], ids=["0.3", "0.2"])
@pytest.mark.parametrize("is_given", [False, True])
def test_a_run_with_a_network_goes_on_with_the_defaults_that_it_began_with(head, leave, is_given):
    header = {name: part for name, part in header_of_0_3(head.__name__).items() if name not in leave}
    recipe = Recipe.again(SQUARE, 1, header, {"classifier": head()} if is_given else {})
    assert is_as_before(recipe)
    assert recipe.differences(header) == []
    if head is LaplaceGGN:
        assert recipe.classifier.link is Link.LOGIT
        assert recipe.classifier.activation == "auto"


def test_a_network_that_is_given_to_a_run_of_version_0_1_has_the_labels_of_then():
    assert is_as_before(Recipe.again(SQUARE, 1, {}, {"classifier": DeepEnsemble()}))


def test_another_network_than_the_runs_own_has_the_defaults_of_today():
    recipe = Recipe.again(SQUARE, 1, header_of_0_3("DeepEnsemble"), {"classifier": LaplaceGGN()})
    assert type(recipe.labels) is ValueGradedLabels
    assert type(recipe.strategy) is Turns
    assert recipe.classifier.link is Link.IDENTITY


@pytest.mark.parametrize("given", [{}, {"classifier": LaplaceGGN}])
def test_a_run_of_today_is_made_again_as_it_is(given):
    made = Recipe.resolve(SQUARE, classifier=LaplaceGGN())
    again = Recipe.again(SQUARE, 1, made.described, {name: part() for name, part in given.items()})
    assert again.described == made.described
    assert again.classifier.link is Link.IDENTITY
