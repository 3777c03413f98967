"""Constraints and fixed values in studies: in every search, to the end of a space, and in their journals."""

import pytest
import torch

import cases
from deepbore import Categorical, Integer, KernelPLS, Real, SearchSpace, Study, candidates
from deepbore.candidates import Search
from deepbore.data.replay import read_record
from deepbore.errors import JournalError, PointError, SpaceError, SpaceExhausted
from deepbore.testing.toys import fit


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


MIXED = SearchSpace(
    {
        "optimizer": Categorical(["sgd", "adam"]),
        "momentum": Real(0, 0.99, when={"optimizer": "sgd"}),
        "batch": Integer(16, 128, step=16),
        "width": Integer(16, 128, step=16),
        "x": Real(0, 1),
    },
    constraints=["batch * width <= 4096", "momentum < 0.5 or x < 0.5"],
)


def loss(params):
    return abs(params["x"] - 0.6) + params.get("momentum", 0.3) - params["batch"] * params["width"] / 8192


def is_allowed(params):
    return params["batch"] * params["width"] <= 4096 and (params.get("momentum", 0) < 0.5 or params["x"] < 0.5)


@pytest.mark.parametrize("name", sorted(set(cases.CANDIDATES) - cases.CONTINUOUS_ONLY))
def test_no_search_proposes_what_is_forbidden(name):
    """Own searches neither: the walk down their ranking passes it over."""
    space = MIXED.with_fixed({"batch": 32})
    head = cases.CLASSIFIERS[cases.SEARCHES_ONLY.get(name, "KernelPLS")]()
    study = Study(MIXED, seed=0, n_initial=12, classifier=head, candidates=cases.CANDIDATES[name]())
    for trial in study.ask(12):
        study.tell(trial, loss(trial.params))
    study.fix({"batch": 32})
    trials = [*study.ask(1), *study.ask(3)]
    assert all(is_allowed(trial.params) and trial.params["batch"] == 32 for trial in trials)
    assert space.points.permitted(space.encode([trial.params for trial in trials])).all()


@pytest.mark.parametrize("name", sorted(cases.CONTINUOUS_ONLY))
def test_no_gradient_proposes_what_is_forbidden(name):
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x + y <= 1"])
    study = Study(space, seed=0, n_initial=8, candidates=cases.CANDIDATES[name]())
    for trial in study.ask(8):
        study.tell(trial, -trial.params["x"] - trial.params["y"])
    assert all(trial.params["x"] + trial.params["y"] <= 1 for trial in study.ask(2))


def test_a_constrained_space_is_searched_to_its_end():
    space = SearchSpace({"a": Integer(1, 6), "b": Integer(1, 6)}, constraints=["a < b", "a + b != 7"])
    study = Study(space, seed=0, n_initial=3)
    seen = []
    for _ in range(12):
        (trial,) = study.ask()
        study.tell(trial, float(trial.params["a"]))
        seen.append((trial.params["a"], trial.params["b"]))
    assert sorted(seen) == [(a, b) for a in range(1, 7) for b in range(a + 1, 7) if a + b != 7]
    with pytest.raises(SpaceExhausted, match="12 of all 12"):
        study.ask()


def test_what_is_forbidden_is_not_taken_in(tmp_path):
    journal = tmp_path / "run.jsonl"
    study = Study(MIXED, seed=0, journal=journal)
    bad = {"optimizer": "adam", "batch": 128, "width": 128, "x": 0.5}
    before = journal.read_bytes()
    for call in (
        lambda: study.add(bad, 1.0),
        lambda: study.enqueue(bad),
        lambda: study.add({k: [v] for k, v in {**bad, "momentum": None}.items()}, [1.0]),
    ):
        with pytest.raises(PointError, match=r"'batch \* width <= 4096' forbids {'optimizer': 'adam', 'batch': 128"):
            call()
    assert journal.read_bytes() == before


def run(study, steps, journal=None, stop=None):
    """Trials of a study that fixes and releases values on its way; perhaps loaded anew before a step."""
    for step in range(steps):
        if step == stop:
            study.close()
            study = Study.load(journal)
        if step == 6:
            study.fix({"optimizer": "sgd", "x": 0.25})
        if step == 14:
            study.fix({})
        for trial in study.ask(1 + step % 2):
            study.tell(trial, loss(trial.params))
    return study, [trial.params for trial in study.trials]


@pytest.mark.slow
@pytest.mark.parametrize("stop", [6, 7, 12, 15])
def test_fixed_values_and_constraints_are_resumed_exactly(tmp_path, stop):
    _, whole = run(Study(MIXED, seed=3, n_initial=6), 16)
    journal = tmp_path / "run.jsonl"
    study, parts = run(Study(MIXED, seed=3, n_initial=6, journal=journal), 16, journal, stop)
    assert parts == whole
    assert all(is_allowed(params) for params in whole)
    fixed = [params for params in whole if params["optimizer"] == "sgd" and params["x"] == 0.25]
    assert fixed == whole[9:21]
    study.close()
    record = read_record(journal)
    assert [trial.params for trial in record.trials] == whole
    assert set(record.space) == set(MIXED.names)


def test_a_fixed_space_is_exhausted_and_released():
    study = Study(SearchSpace({"a": Integer(1, 5), "b": Categorical(["u", "v"])}), seed=0, n_initial=2)
    study.add({"a": [1, 2], "b": ["u", "v"]}, [0.0, 1.0])
    study.fix({"b": "u"})
    for trial in study.ask(4):
        assert trial.params["b"] == "u"
        study.tell(trial, 1.0)
    with pytest.raises(SpaceExhausted):
        study.ask()
    study.fix({"b": "v"})
    assert len(study.ask(4)) == 4
    study.fix({})
    with pytest.raises(SpaceExhausted):
        study.ask()


def test_a_study_may_begin_with_fixed_values(tmp_path):
    journal = tmp_path / "run.jsonl"
    space = SearchSpace({"x": Real(0, 1), "lr": Real(1e-4, 1, log=True)}).with_fixed({"lr": 0.01})
    study = Study(space, seed=0, n_initial=3, journal=journal)
    for _ in range(5):
        (trial,) = study.ask()
        assert trial.params["lr"] == 0.01
        study.tell(trial, trial.params["x"])
    study.close()
    again = Study.load(journal)
    assert again.space == space
    assert again.ask()[0].params["lr"] == 0.01
    again.close()
    Study(space, seed=0, n_initial=3, journal=journal, if_exists="load").close()


def fits(params):
    return params["a"] + params["b"] <= 8


def test_functions_are_given_again(tmp_path):
    """A journal names them; a run can be looked at without, and says what it needs to go on."""
    journal = tmp_path / "run.jsonl"
    space = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=[fits])
    study = Study(space, seed=0, n_initial=3, journal=journal)
    for trial in study.ask(4):
        study.tell(trial, 1.0)
    study.close()
    looked = Study.load(journal)
    assert len(looked.trials) == 4
    with pytest.raises(SpaceError, match=r"the function .*test_space_constraints.fits .*Study.load\(journal, space="):
        looked.ask()
    looked.close()
    with pytest.raises(JournalError, match="another space"):
        Study.load(journal, space=SearchSpace({"a": Integer(1, 9), "b": Integer(1, 8)}, constraints=[fits]))
    again = Study.load(journal, space=space)
    assert fits(again.ask()[0].params)
    again.close()
    again = Study(space, seed=0, n_initial=3, journal=journal, if_exists="load")
    assert fits(again.ask()[0].params)
    again.close()


def test_a_search_of_ones_own_is_held_to_the_constraints():
    class Everything(candidates.Candidates):
        def ranked(self, search, q):
            return search.space.points.sample_any(200, search.generator)

    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x < y"])
    study = Study(space, seed=0)
    for trial in study.ask(10):
        study.tell(trial, trial.params["x"])
    classifier = fit(KernelPLS(), study._state.data)
    search = Search(study._state.recipe.acquisition, classifier, study.observations, generator())
    assert space.points.permitted(Everything().propose(search, 5)).all()
