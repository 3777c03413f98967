"""What a strategy sees of a run, and the strategy of one model."""

import logging
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from deepbore import (
    Budget,
    GreedyBatch,
    KernelPLS,
    LocalSearch,
    LogExpectedImprovement,
    MLPClassifier,
    Outcome,
    RandomForest,
    Study,
)
from deepbore.classifiers import PerColumn
from deepbore.compute.numerics import LinAlgError
from deepbore.errors import SettingError
from deepbore.labels import ObjectiveLabels, SeveralThresholds, ThresholdLabels
from deepbore.loop.engine import Engine
from deepbore.strategies import ModelStrategy
from deepbore.strategies.base import check_columns
from plane import SQUARE
from tried import some_bowl


def told(n=12, **settings):
    study = Study(SQUARE, seed=0, **settings)
    study.add(*some_bowl(n, 0))
    return study


def view_of(study):
    study.state.data.labelled()
    return Engine(study.state).view()


def test_the_values_are_those_of_the_labelled_rows_and_means_of_replicates():
    study = told(3)
    study.add({"x": [0.5, 0.5], "y": [0.5, 0.5]}, [1.0, 3.0])
    study.add({"x": [0.6], "y": [0.6]}, [float("nan")])
    view = view_of(study)
    (trial,) = study.ask()
    study.tell(trial, 7.0)
    assert view.values[3:].tolist()[:2] == [2, 2]
    assert bool(view.values[5].isnan())
    assert len(view.values) == 6
    assert view.values[:3].tolist() == [each.value for each in study.trials[:3]]
    assert len(Engine(told().state).view().values) == 0  # before the first labelling


def with_outcomes(kind):
    if kind == "objectives":
        return Study(SQUARE, directions=["minimize"] * 2)
    if kind == "budget":
        return Study(SQUARE, budget=Budget("epochs", 1, 9))
    study = told()
    if kind == "constraints":
        (trial,) = study.ask()
        study.tell(trial, Outcome(0.4, constraints=[-1.0]))
    if kind == "earlier tasks":
        study.add({"x": [0.1, 0.2], "y": [0.1, 0.4]}, [1.0, 2.0], task="earlier")
    return study


@pytest.mark.parametrize("kind", ["plain", "objectives", "budget", "constraints", "earlier tasks"])
def test_outcomes_are_plain_where_they_are_one_value_each(kind):
    assert Engine(with_outcomes(kind).state).view().has_plain_outcomes == (kind == "plain")


def test_a_search_has_all_that_the_view_knows():
    view, classifier, acquisition = view_of(told()), KernelPLS(), LogExpectedImprovement()
    feasibility, points = object(), torch.rand(2, 2)
    search = replace(view, feasibility=feasibility, chosen=points).search(classifier, acquisition)
    assert (search.classifier, search.acquisition) == (classifier, acquisition)
    assert (search.observations, search.generator, search.ranks) == (view.observations, view.generator, view.ranks)
    assert (search.feasibility, search.chosen) == (feasibility, points)
    assert view.search(classifier, acquisition).chosen is None


def test_points_beside_others_join_them():
    one, two = torch.rand(1, 2), torch.rand(2, 2)
    view = view_of(told())
    assert torch.equal(view.beside(one).chosen, one)
    assert torch.equal(view.beside(one).beside(two).chosen, torch.cat([one, two]))
    assert view.chosen is None


def fails():
    raise LinAlgError("no factor")


@pytest.mark.parametrize(
    ("learn", "others", "agreed"),
    [
        (lambda: True, [True], True),
        (lambda: True, [True, False], False),
        (lambda: False, [True], False),
        (fails, [True], False),
    ],
)
def test_all_ranks_must_have_learned(learn, others, agreed, caplog):
    ranks = SimpleNamespace(gather=lambda mine: [mine, *others])
    view = replace(view_of(told()), ranks=ranks)
    with caplog.at_level(logging.WARNING):
        assert view.agreed(learn, "not learned: %s") is agreed
    assert ("not learned: no factor" in caplog.text) == (learn is fails)


# --- the strategy of one model ---------------------------------------------------------------------------------------


def trained(study):
    study.fit()
    return study.state.strategy


def test_a_model_strategy_proposes_what_its_search_finds_by_its_classifier():
    study = told(strategy=ModelStrategy(KernelPLS()))
    strategy, view = trained(study), view_of(study)
    state = view.generator.get_state()
    proposal = strategy.propose(view, 2)
    view.generator.set_state(state)
    search = view.search(strategy.classifier, strategy.acquisition)
    assert torch.equal(proposal.points, strategy.candidates.propose(search, 2))
    assert proposal.model is strategy.classifier
    assert strategy.models == (strategy.classifier,)


def test_a_model_strategy_goes_on_from_its_state():
    kept = trained(told(strategy=ModelStrategy(KernelPLS()))).state_dict()
    again = ModelStrategy(KernelPLS())
    assert again.state_dict() == {"weights": None, "optimizers": [], "ready": False, "candidates": {}}
    again.load_state_dict(again.state_dict())
    again.classifier.bind(SQUARE)
    again.load_state_dict(kept)
    assert again.classifier.ready is True
    assert torch.equal(again.state_dict()["weights"]["theta"], kept["weights"]["theta"])
    assert not torch.equal(kept["weights"]["theta"], ModelStrategy(KernelPLS().bind(SQUARE)).classifier.theta)


def test_the_optimizers_of_a_network_go_on_too():
    kept = trained(told(strategy=ModelStrategy(MLPClassifier()))).state_dict()
    again = ModelStrategy(MLPClassifier())
    again.classifier.bind(SQUARE)
    again.load_state_dict(kept)
    again.classifier.optimizers_made()
    (one,), (other,) = (of["optimizers"][0]["optimizers"] for of in (kept, again.state_dict()))
    assert one["state"]
    assert one["state"].keys() == other["state"].keys()
    for name, tensor in one["state"][0].items():
        assert torch.equal(torch.as_tensor(tensor), torch.as_tensor(other["state"][0][name]))


def test_what_a_search_remembers_is_in_the_state():
    class Counting(GreedyBatch):
        count = 0

        def state_dict(self):
            return {"count": self.count}

        def load_state_dict(self, state):
            self.count = state["count"]

    one, other = (ModelStrategy(KernelPLS(), candidates=Counting()) for _ in range(2))
    one.candidates.count = 3
    other.load_state_dict(one.state_dict())
    assert other.candidates.count == 3


def test_at_budgets_the_classifier_alone_is_another():
    strategy = ModelStrategy(KernelPLS(), candidates=GreedyBatch(LocalSearch()))
    there = strategy.at_budgets(Budget("epochs", 1, 9))
    assert there.classifier.base is strategy.classifier
    assert (there.candidates, type(there.acquisition)) == (strategy.candidates, type(strategy.acquisition))


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ((None,), "classifier must be given"),
        ((GreedyBatch(),), "classifier must be a Classifier"),
        ((KernelPLS(), KernelPLS()), "acquisition must be an? Acquisition"),
        ((KernelPLS(), None, KernelPLS()), "candidates must be a Candidates"),
    ],
)
def test_parts_of_other_kinds_are_refused(parts, says):
    with pytest.raises(SettingError, match=says):
        ModelStrategy(*parts)


class Pair(ModelStrategy):
    """A strategy of two models."""

    def __init__(self):
        super().__init__(KernelPLS())
        self.second = KernelPLS()

    @property
    def models(self):
        return (self.classifier, self.second)


def test_a_strategy_is_ready_when_all_of_its_models_are():
    strategy = Pair()
    for strategy.classifier.ready, strategy.second.ready in (
        (False, True),
        (True, False),
        (False, False),
        (True, True),
    ):
        both = strategy.classifier.ready and strategy.second.ready
        assert strategy.fit(view_of(told())) == both


class Grumbling(GreedyBatch):
    """A search that goes with nothing."""

    def check(self, space, classifier):
        raise SettingError("no search")


@pytest.mark.parametrize(
    ("strategy", "labels", "says"),
    [
        (ModelStrategy(KernelPLS()), ObjectiveLabels(2), "needs the front of several objectives"),
        (ModelStrategy(PerColumn(KernelPLS(), 2)), ThresholdLabels(), "LogHypervolumeImprovement needs the front"),
        (ModelStrategy(PerColumn(KernelPLS(), 3)), ObjectiveLabels(2), "3 column.* has 2.*columns=2"),
        (ModelStrategy(RandomForest(), candidates=Grumbling()), ThresholdLabels(), "no search"),
    ],
)
def test_parts_that_do_not_go_together_are_refused(strategy, labels, says):
    with pytest.raises(SettingError, match=says):
        strategy.check(SQUARE, labels)


def test_parts_that_go_together_are_taken():
    ModelStrategy(PerColumn(KernelPLS(), 2)).check(SQUARE, ObjectiveLabels(2))
    ModelStrategy(RandomForest()).check(SQUARE, SeveralThresholds([0.1, 0.3]))
    check_columns(ThresholdLabels(), KernelPLS(), LogExpectedImprovement())
