"""Searches of the box and without gradients: evolution, random restarts, climbing with values fixed."""

import pytest
import scipy.optimize
import torch

import deepbore as db
from deepbore import (
    BoTorchBatch,
    Categorical,
    Condition,
    DifferentialEvolution,
    Integer,
    KernelPLS,
    LocalSearch,
    MLPClassifier,
    MultiStartLBFGS,
    Ordinal,
    RandomForest,
    Real,
    Relaxed,
    RelaxedSearch,
    SearchSpace,
    Study,
    XGBoost,
)
from deepbore.acquisition import ClassProbability
from deepbore.candidates import Search
from deepbore.classifiers import PointEstimate
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.testing import toy_data
from peaks import FIVE, MIXED, Peak, search
from plane import SQUARE
from tried import asked_by, round_bowl, tried


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Flat(MLPClassifier):
    """One score everywhere, with a gradient of 0."""

    def posterior(self, points):
        return PointEstimate(0 * points.sum(-1), self.link, "Flat")


class Bowl(MLPClassifier):
    """Scores that fall with the distance from the middle, level columns counted in ranges."""

    def posterior(self, points):
        return PointEstimate(-(points - 0.4).square().sum(-1), self.link, "Bowl")


def searching(classifier, space=SQUARE, n=20, seed=0):
    data = toy_data(space, n) if n else None
    observations = data.observations if data else Observations(space)
    return Search(ClassProbability(), classifier.bind(space), observations, torch.Generator().manual_seed(seed))


def test_random_restarts_are_uniform_points_as_they_come():
    starts = SQUARE.points.sample(3, torch.Generator().manual_seed(0))
    ranked = MultiStartLBFGS(restarts=3, samples=3, near_best=False).ranked(searching(Flat()), 1)
    assert torch.equal(ranked.unique(dim=0), starts.unique(dim=0))  # nowhere to climb to
    climbed = MultiStartLBFGS(restarts=3, samples=3, near_best=False).ranked(searching(Bowl()), 1)
    assert torch.allclose(climbed[0], torch.tensor([0.4, 0.4], dtype=torch.float64), atol=1e-4)
    with pytest.raises(SettingError, match="restarts <= samples must hold if all starts are random points"):
        MultiStartLBFGS(restarts=4, samples=3, near_best=False)


@pytest.mark.parametrize("near_best", [True, False])
def test_a_population_has_the_best_observed_points_if_it_may(near_best):
    search = searching(Bowl())
    best = search.observations.points[search.observations.centres.best_rows(1)]
    evolution = DifferentialEvolution(evaluations=20, population=10, near_best=near_best)
    assert (evolution.ranked(search, 1) == best).all(-1).any() == near_best


def test_climbing_in_the_box_finds_the_best_configuration():
    space = SearchSpace({"k": Ordinal([1, 2, 4, 8, 16]), "c": Categorical(["a", "b", "c"]), "x": Real(0, 1)})

    class BoxBowl(MLPClassifier):
        """Scores around the box's vector of k = 8, c = "b", x = 0.2."""

        def posterior(self, points):
            aim = torch.tensor([0.75, 0.0, 1.0, 0.0, 0.2], dtype=torch.float64)
            return PointEstimate(-(points - aim).square().sum(-1), self.link, "BoxBowl")

    lbfgs = MultiStartLBFGS(restarts=3, samples=3, near_best=False)
    search = searching(Relaxed(BoxBowl()), space, n=0)
    (found,) = space.decode(RelaxedSearch(lbfgs).ranked(search, 1)[:1])
    assert (found["k"], found["c"]) == (8, "b")
    assert found["x"] == pytest.approx(0.2, abs=1e-4)
    with pytest.raises(SettingError, match=r"MultiStartLBFGS needs real parameters without conditions"):
        lbfgs.check(space, Relaxed(BoxBowl()))
    with pytest.raises(SettingError, match=r"Give Relaxed\(MLPClassifier\(\.\.\.\)\)"):
        Study(space, classifier=MLPClassifier(), candidates=RelaxedSearch(lbfgs))


def test_evolution_finds_levels_and_numbers_together():
    top = MIXED.encode([{"x": 0.3, "y": 0.6, "n": 20, "c": "d"}])[0]
    ranked = DifferentialEvolution().ranked(search(MIXED, top), q=1)
    assert (ranked[0] - top).norm() < 0.05
    assert torch.equal(ranked, MIXED.points.snap(ranked))
    assert set(ranked[:, 3].tolist()) == set(range(6))


def test_evolution_scores_only_configurations():
    space = SearchSpace({"c": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("c", "a")), "n": Integer(1, 4)})
    at = search(space, torch.tensor([1.0, 0.9, 0.5]))  # nearest to x = 0.9, which is inactive there
    (found,) = space.decode(DifferentialEvolution(evaluations=200, population=10).propose(at, q=1))
    assert found["c"] == "b"
    assert set(found) == {"c", "n"}


@pytest.mark.parametrize(("evaluations", "population"), [(200, 20), (219, 20), (5, 5)])
def test_evolution_spends_its_evaluations_and_no_more(evaluations, population):
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    ranked = DifferentialEvolution(evaluations, population).ranked(search(FIVE, top, observed=30), q=1)
    assert len(ranked) == evaluations // population * population
    values = Peak(top).height(ranked)
    assert (values.diff() <= 0).all()


def test_evolution_begins_with_the_best_observed_points():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    at = search(FIVE, top, observed=30)
    first = DifferentialEvolution(evaluations=10, population=10).ranked(at, q=1)
    best = at.observations.points[at.observations.centres.best_rows(3)]
    assert [bool((first - point).norm(dim=-1).min() < 1e-9) for point in best] == [True, True, False]


@pytest.mark.parametrize(
    "space",
    [
        SearchSpace({f"x{i}": Real(0, 1) for i in range(200)}),
        SearchSpace({"c": Categorical([f"level {i}" for i in range(1000)]), "x": Real(0, 1)}),
    ],
    ids=["200 parameters", "1000 levels"],
)
def test_evolution_takes_wide_spaces_and_many_levels(space):
    found = DifferentialEvolution(evaluations=100, population=10).propose(
        search(space, space.points.bounds[1] / 2), q=3
    )
    assert torch.equal(found, space.points.snap(found))
    assert len(set(space.points.identify(found))) == 3


@pytest.mark.parametrize("settings", [{"population": 4}, {"evaluations": 10, "population": 11}])
def test_evolution_needs_a_population_within_its_evaluations(settings):
    with pytest.raises(SettingError, match="5 <= population <= evaluations must hold"):
        DifferentialEvolution(**settings)


@pytest.mark.parametrize("make", [RandomForest, XGBoost])
def test_gradients_on_trees_are_refused_with_what_to_use_instead(make):
    at = Search(ClassProbability(), make().bind(FIVE), Observations(FIVE), generator())
    says = rf"{make.__name__} on .* Use LocalSearch, DifferentialEvolution or Random"
    with pytest.raises(SettingError, match=says):
        MultiStartLBFGS().propose(at, q=1)
    with pytest.raises(SettingError, match=says):
        MultiStartLBFGS().check(FIVE, make())


# regression: each of these was wrong once
@pytest.mark.parametrize("base", [db.GreedyBatch, db.ThompsonBatch, db.RaisedIncumbent], ids=lambda base: base.__name__)
@pytest.mark.parametrize("name", ["mixed", "finite"])
def test_a_relaxed_search_goes_with_any_search_of_the_box(base, name):
    spaces = {
        "mixed": db.SearchSpace({"x": db.Real(0, 1), "c": db.Categorical(["a", "b", "c"])}),
        "finite": db.SearchSpace({"k": db.Ordinal([0, 1, 2, 3]), "l": db.Ordinal([0, 1, 2, 3, 4])}),
    }
    head = db.Relaxed(db.DeepEnsemble(members=2, training=db.Training(steps=5)))
    study = db.Study(spaces[name], n_initial=4, classifier=head, candidates=db.RelaxedSearch(base()))
    tried(study, 5, lambda params: float(len(str(params))))
    asked = [trial.params for trial in study.ask(3)]
    seen = [trial.params for trial in study.trials[:5]]
    assert all(asked.count(params) == 1 and params not in seen for params in asked)


@pytest.mark.slow
@pytest.mark.parametrize("search", [MultiStartLBFGS(), BoTorchBatch(), BoTorchBatch(joint=True)])
def test_searches_by_gradients_go_on_where_a_value_is_fixed_during_the_run(search):
    study = Study(SQUARE, seed=0, candidates=search)
    asked_by(study, 12)
    study.fix({"x": 0.5})
    asked = asked_by(study, 3)
    assert [params["x"] for params in asked] == [0.5] * 3
    assert min(abs(params["y"] - 0.3) for params in asked) < 0.05


@pytest.mark.slow
def test_searches_by_gradients_start_where_what_is_fixed_breaks_no_constraint():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x + y <= 1"])
    study = Study(space, seed=0, candidates=MultiStartLBFGS())
    asked_by(study, 12)
    study.fix({"x": 0.9})  # the best rows so far have y > 0.1
    assert all(params["y"] <= 0.1 + 1e-9 for params in asked_by(study, 3))


@pytest.mark.slow
def test_a_relaxed_search_searches_where_what_is_fixed_stands():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(5)})
    study = Study(space, seed=0, classifier=Relaxed(KernelPLS()), candidates=RelaxedSearch(LocalSearch()))
    asked_by(study, 20)
    study.fix({"x4": 0.5})
    asked = asked_by(study, 10)
    assert {params["x4"] for params in asked} == {0.5}
    assert min(map(round_bowl, asked)) < 0.2**2 + 1e-3  # the best with what is fixed is 0.2^2


def test_evolution_knows_which_columns_are_whole_numbers(monkeypatch):
    kinds = {
        "x": Real(-5, 5),
        "log": Real(1e-3, 1, log=True),
        "step": Real(0, 1, step=0.25),
        "n": Integer(3, 7),
        "many": Integer(0, 10**7),
        "c": Categorical(["a", "b", "c"]),
        "o": Ordinal([1, 2, 4, 8]),
        "two": Categorical(["a", "b"]),
    }
    space, told = SearchSpace(kinds), {}
    evolve = scipy.optimize.differential_evolution

    def listened(*args, **about):
        told.update(about)
        return evolve(*args, **about)

    monkeypatch.setattr("scipy.optimize.differential_evolution", listened)
    DifferentialEvolution(evaluations=60, population=20).ranked(searching(Bowl(), space), q=1)
    drawn = space.points.sample(300, generator())
    bounds = torch.as_tensor(told["bounds"])
    whole = (drawn == drawn.round()).all(0) & (bounds[:, 1] == drawn.max(0).values)
    assert list(told["integrality"]) == whole.tolist()
    assert 2 <= sum(told["integrality"]) < len(space)
    assert told["maxiter"] == 2  # after the first of three generations
