import numpy as np
import pytest
import torch

import deepbore
from deepbore.acquisition import ClassProbability
from deepbore.candidates import Search
from deepbore.compute.distributed import Ranks
from deepbore.errors import SettingError, SpaceExhausted
from deepbore.testing import candidates, fit, toy_data
from thread_ranks import on_ranks

RNG = np.random.default_rng(0)
BITS = RNG.random((600, 64)) < RNG.random((600, 1)) * 0.5
VALUES = -BITS[:, :16].sum(1).astype(float)  # a sum over some bits: similar rows have similar values
LIBRARY = deepbore.Library(BITS)


def test_the_contract_holds_beside_other_parameters():
    space = deepbore.SearchSpace({"molecule": LIBRARY, "dose": deepbore.Real(0, 1)})
    candidates.check_proposals(deepbore.LibrarySearch(chunk=100), deepbore.LibraryPLS(), space)


def test_the_best_of_all_new_levels_are_proposed():
    study = deepbore.Study({"molecule": LIBRARY}, n_initial=30, candidates=deepbore.LibrarySearch(chunk=77))
    for trial in study.ask(30):
        study.tell(trial, VALUES[trial.params["molecule"]])
    pending = study.ask(5)
    with torch.no_grad():
        posterior = study.classifier.posterior(torch.arange(600.0, dtype=torch.float64)[:, None])
        score = (posterior.mean + 2 * posterior.std).numpy()
    score[[trial.params["molecule"] for trial in study.trials]] = -np.inf
    expected = np.argsort(-score)[:20]
    assert len(pending) == 5
    assert sorted(trial.params["molecule"] for trial in study.ask(20)) == sorted(expected)


def test_a_batch_is_not_made_of_copies():
    """Each molecule is there five times, and its copies tell nothing more."""
    study = deepbore.Study({"molecule": deepbore.Library(np.repeat(BITS, 5, axis=0))}, n_initial=30)
    for trial in study.ask(30):
        study.tell(trial, VALUES[trial.params["molecule"] // 5])
    assert len({trial.params["molecule"] // 5 for trial in study.ask(60)}) > 40


def test_the_default_is_a_bound_on_all_values():
    recipe = deepbore.Study({"molecule": LIBRARY}).state.recipe
    assert (recipe.labels.gamma, recipe.labels.tail) == (0.97, 0)
    assert isinstance(recipe.first.acquisition, deepbore.UpperConfidenceBound)
    assert isinstance(recipe.first.candidates, deepbore.BelieverBatch)
    few = deepbore.Study({"molecule": LIBRARY}, gamma=0.2, classifier=deepbore.MLPClassifier()).state.recipe
    assert few.labels.gamma == 0.2
    assert isinstance(few.first.candidates, deepbore.LibrarySearch)


def test_a_run_ends_with_the_library():
    study = deepbore.Study({"molecule": deepbore.Library(BITS[:40])}, n_initial=5)
    seen = []
    while len(seen) < 40:
        trials = study.ask(min(15, 40 - len(seen)))
        seen += [trial.params["molecule"] for trial in trials]
        for trial in trials:
            study.tell(trial, VALUES[trial.params["molecule"]])
    assert sorted(seen) == list(range(40))
    with pytest.raises(SpaceExhausted, match="all 40"):
        study.ask()


def test_other_parameters_are_searched_with_it():
    space = {"molecule": LIBRARY, "dose": deepbore.Real(0, 1), "salt": deepbore.Categorical(["Na", "K"])}

    def objective(params):
        return VALUES[params["molecule"]] / 8 + 10 * (params["dose"] - 0.8) ** 2 + (params["salt"] == "K")

    study = deepbore.Study(space, n_initial=40, seed=3)
    for q in (40, 40, 40):
        for trial in study.ask(q):
            study.tell(trial, objective(trial.params))
    latest = [trial.params for trial in study.trials][80:]
    assert np.mean([abs(params["dose"] - 0.8) for params in latest]) < 0.12  # of random ones .34
    assert np.mean([params["salt"] == "Na" for params in latest]) > 0.9
    assert np.mean([VALUES[params["molecule"]] for params in latest]) < np.quantile(VALUES, 0.2)  # it explores, too


def test_two_libraries_are_refused():
    with pytest.raises(SettingError, match="goes through one library"):
        deepbore.Study({"acid": LIBRARY, "amine": LIBRARY})


def test_a_single_hit_is_believed():
    study = deepbore.Study({"molecule": LIBRARY}, n_initial=30)
    for trial in study.ask(60):
        study.tell(trial, VALUES[trial.params["molecule"]] + 1000 * (trial.id != 20))
    study.ask()
    assert not study.observations.suspicion


def test_a_batch_may_be_chosen_by_another_search():
    for search in (deepbore.ThompsonBatch, deepbore.GreedyBatch):
        study = deepbore.Study({"molecule": LIBRARY}, n_initial=30, candidates=search(deepbore.LibrarySearch()))
        for trial in study.ask(30):
            study.tell(trial, VALUES[trial.params["molecule"]])
        names = [trial.params["molecule"] for trial in study.ask(30)]
        assert len(set(names)) == 30
        assert VALUES[names].mean() < VALUES.mean()


def test_a_fixed_library_leaves_the_others():
    study = deepbore.Study({"molecule": LIBRARY, "dose": deepbore.Real(0, 1)}, n_initial=5)
    for trial in study.ask(12):
        study.tell(trial, trial.params["dose"])
    study.fix({"molecule": 7})
    assert {trial.params["molecule"] for trial in study.ask(3)} == {7}


@pytest.mark.parametrize("make", [deepbore.RandomForest, deepbore.KernelPLS])
def test_any_model_scores_a_library(make):
    space = deepbore.SearchSpace({"molecule": LIBRARY})
    candidates.check_proposals(deepbore.LibrarySearch(), make(), space)


def test_ranks_find_together_what_one_finds():
    data = toy_data(deepbore.SearchSpace({"molecule": LIBRARY}), 30)
    model = fit(deepbore.LibraryPLS(), data)

    def proposed(ranks):
        stream = torch.Generator().manual_seed(7)
        search = Search(ClassProbability(), model, data.observations, stream, ranks)
        return deepbore.LibrarySearch(chunk=64).propose(search, 20)

    one, other = on_ranks(proposed)
    assert torch.equal(one, other)
    assert torch.equal(one, proposed(Ranks()))
