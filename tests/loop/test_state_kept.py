"""What the state of a run says of it, and takes up again."""

import pytest
import torch

from deepbore import Budget, EmphasiseChanges, Outcome, Study, ThresholdLabels
from deepbore.errors import SettingError
from deepbore.loop.metrics import Metrics
from deepbore.loop.state import as_seed, without
from plane import SQUARE
from tried import some_bowl


def told(seed=0, **settings):
    study = Study(SQUARE, seed=seed, **settings)
    study.add(*some_bowl(12, 0))
    return study


def test_a_state_is_taken_up_whole():
    def labels():
        return EmphasiseChanges(ThresholdLabels(0.3))

    one, other = told(3, labels=labels()), told(4, labels=labels())
    one.ask()
    one.enqueue({"x": 0.25, "y": 0.5})
    one.state.pending_promotions, one.state.warmup_epochs, one.state.low_gain_streaks = [(1, 3.0)], 7, {"rule": 2}
    one.state.metrics = Metrics()
    one.state.metrics.label_flips = 0.5
    kept = one.state.state_dict()
    assert kept["asked"] == 1
    other.state.load_state_dict(kept)
    state = other.state
    assert state.seed == 3
    assert torch.equal(state.generator.get_state(), one.state.generator.get_state())
    assert [point.tolist() for point in state.queue] == [[0.25, 0.5]]
    assert (state.pending_promotions, state.warmup_epochs, state.low_gain_streaks) == ([(1, 3.0)], 7, {"rule": 2})
    assert state.metrics.known == {"label_flips": 0.5}
    assert str(state.recipe.labels.state_dict()) == str(one.state.recipe.labels.state_dict())
    assert torch.equal(state.classifier.theta, one.state.classifier.theta)
    state.queue.clear()
    state.pending_promotions.clear()
    assert (len(one.state.queue), len(one.state.pending_promotions)) == (1, 1)


def test_a_run_that_has_begun_nothing_says_little():
    kept = told().state.state_dict()
    assert kept.keys() == {"asked", "seed", "generator", "queue", "warmup_epochs"}
    state = told(5).state
    state.pending_promotions, state.low_gain_streaks = [(0, 1.0)], {"rule": 1}
    state.load_state_dict(kept)
    assert (state.seed, state.pending_promotions, state.low_gain_streaks, state.metrics) == (0, [], {}, None)
    del kept["seed"]  # of version 0.1
    state = told(5).state
    state.load_state_dict(kept)
    assert state.seed == 5
    assert not state.is_bound


def test_models_of_constraints_are_kept_once_there_are_constraints():
    one, other = told(n_initial=1), told(n_initial=1)
    for study in (one, other):
        for trial, constraint in zip(study.ask(8), [1.0, -1.0] * 4, strict=True):
            study.tell(trial, Outcome(float(trial.id), constraints=[constraint]))
    one.ask()
    assert one.state.feasibility.is_needed
    other.state.load_state_dict(one.state.state_dict())
    kept, again = (str(each.state.feasibility.state_dict()) for each in (one, other))
    assert kept == again != str(told().state.feasibility.state_dict())


@pytest.mark.parametrize("objectives", [1, 2])
def test_the_header_of_a_run_has_budget_and_preferences_where_there_are_some(objectives):
    header = Study(SQUARE, seed=3, directions=["minimize"] * objectives).state.header()
    assert header.keys() == {"space", "directions", "seed", "recipe"}
    assert (header["directions"], header["seed"]) == (["minimize"] * objectives, 3)
    budget = Budget("epochs", 1, 9)
    assert Study(SQUARE, budget=budget).state.header()["budget"] == budget.to_dict()
    assert Study(SQUARE, preferences=True).state.header()["preferences"] is True


def test_what_is_missing_of_a_design_counts_configurations_of_this_run():
    study = Study(SQUARE, n_initial=6, seed=0)
    assert (study.state.n_begun, study.state.n_missing) == (0, 6)
    study.ask(2)
    study.add({"x": [0.1, 0.2], "y": [0.1, 0.2]}, [1.0, 2.0], task="before")
    assert (study.state.n_begun, study.state.n_missing) == (2, 4)
    assert study.state.has_earlier_tasks
    study.add(*some_bowl(9, 0))
    assert (study.state.n_begun, study.state.n_missing) == (11, 0)
    study = Study(SQUARE, n_initial=6, seed=0, budget=Budget("epochs", 1, 9))
    for trial in study.ask(3):
        study.tell(trial, float(trial.id))
    study.ask(1)  # promoted
    assert (study.state.n_begun, study.state.n_missing) == (3, 3)


def test_models_belong_to_a_run_until_it_releases_them():
    study = told()
    state = study.state
    assert state.classifier.run is state.classifier.generator is state.generator
    state.check_classifier()
    assert state.release() is state.classifier
    with pytest.raises(SettingError, match="KernelPLS was given to another study"):
        state.check_classifier()


def test_copies_of_the_models_draw_from_the_runs_stream():
    state = told().state
    copies = state.copies_of_models()
    assert len(copies) == len(state.models)
    for copy, model in zip(copies, state.models, strict=True):
        assert copy is not model
        assert copy.generator is state.generator


@pytest.mark.parametrize("seed", [-(2**63), 2**63 - 1, 0])
def test_seeds_are_whole_numbers_of_64_bits(seed):
    assert as_seed(seed) == seed
    state = told().state
    state.reseed(seed)
    assert state.seed == seed
    assert state.generator.initial_seed() == seed or not 0 <= seed < 2**32  # all bits of others count, too


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 1.0, True, None, "1"])
def test_other_seeds_are_refused(seed):
    with pytest.raises(SettingError, match="seed must be a whole number"):
        as_seed(seed)


def test_points_are_taken_out_of_a_queue_once_each():
    one, two, three = (torch.tensor([float(k)]) for k in (1, 2, 3))
    queue = [one, two, one, three]
    assert without(queue, [one.clone(), three.clone(), torch.tensor([9.0])]) == [two, one]
    assert len(queue) == 4
