"""Runs with priors: the design, turns, journals that are resumed, YAML, and what a prior is worth."""

import itertools
import json
import math

import pytest
import torch
import yaml

from deepbore import Categorical, Integer, Normal, Ordinal, Real, SearchSpace, Study, minimize
from deepbore.errors import JournalError
from deepbore.strategies import Turns

SPACE = {
    "model": Categorical(["svc", "forest", "net"], prior={"svc": 6, "forest": 1, "net": 1}),
    "C": Real(1e-3, 1e3, log=True, when={"model": "svc"}, prior=Normal(1.0, 10.0)),
    "trees": Integer(1, 500, log=True, when={"model": "forest"}, prior=Normal(50, 3.0)),
    "size": Ordinal(["s", "m", "l"], prior=Normal("m", 1)),
    "x": Real(0, 1, prior=Normal(0.2, 0.1)),
    "y": Real(0, 1, default=0.4),
}
WRITTEN = """
model: {type: categorical, choices: [svc, forest, net], prior: {svc: 6, forest: 1, net: 1}}
C: {type: real, low: 1.0e-3, high: 1.0e+3, log: true, when: {model: svc}, prior: {centre: 1.0, spread: 10.0}}
trees: {type: integer, low: 1, high: 500, log: true, when: {model: forest}, prior: {centre: 50, spread: 3}}
size: {type: ordinal, choices: [s, m, l], prior: {centre: m, spread: 1}}
x: {type: real, low: 0, high: 1, prior: {centre: 0.2, spread: 0.1}}
y: {type: real, low: 0, high: 1, default: 0.4}
"""


def loss(params):
    return (params["x"] - 0.25) ** 2 + (params["y"] - 0.5) ** 2 + (params["model"] != "svc")


def go_on(study, n):
    while len(study.trials) < n:
        for trial in study.ask(1 + len(study.trials) % 3):
            study.tell(trial, loss(trial.params))
    return [trial.params for trial in study.trials]


def test_yaml_declares_the_same_space():
    space = SearchSpace.from_dict(yaml.safe_load(WRITTEN))
    for name, parameter in SPACE.items():
        assert space.parameters[name].prior == parameter.prior
    assert go_on(Study(space, seed=0), 16) == go_on(Study(SPACE, seed=0), 16)


@pytest.mark.parametrize("ended", [1, 7, 13, 17])
def test_a_resumed_run_goes_on_bit_for_bit(tmp_path, ended):
    whole = go_on(Study(SPACE, seed=3), 24)
    study = Study(SPACE, seed=3, journal=tmp_path / "run.jsonl")
    go_on(study, ended)
    study.close()
    space = None if ended % 2 else SPACE
    assert go_on(Study.load(tmp_path / "run.jsonl", space=space), 24) == whole


def test_a_journal_has_the_prior_and_refuses_another(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study({"x": Real(0, 1, prior=Normal(0.2, 0.1))}, journal=path)
    study.tell(study.ask_one(), 1.0)
    study.close()
    header = json.loads(path.read_text().splitlines()[0])
    assert header["space"]["x"]["prior"] == {"centre": 0.2, "spread": 0.1}
    for other in (Real(0, 1), Real(0, 1, prior=Normal(0.3, 0.1))):
        with pytest.raises(JournalError, match="'x' in the space is"):
            Study({"x": other}, journal=path, if_exists="load")


@pytest.mark.parametrize(
    ("before", "now"), [({}, {"default": 0.9}), ({"default": 0.1}, {}), ({"default": 0.1}, {"default": 0.9})]
)
def test_another_default_does_not_change_what_a_resumed_run_proposes(tmp_path, before, now):
    whole = go_on(Study({**SPACE, "y": Real(0, 1, **before)}, seed=3), 16)
    study = Study({**SPACE, "y": Real(0, 1, **before)}, seed=3, journal=tmp_path / "run.jsonl")
    go_on(study, 5)
    study.close()
    space = {**SPACE, "y": Real(0, 1, **now)}
    assert go_on(Study(space, seed=3, journal=tmp_path / "run.jsonl", if_exists="load"), 16) == whole


def test_a_journal_without_priors_says_nothing_of_them(tmp_path):
    space = {"x": Real(0, 1), "c": Categorical(["a", "b"]), "k": Integer(1, 9), "o": Ordinal([1, 2])}
    study = Study(space, journal=tmp_path / "run.jsonl")
    study.ask()
    study.close()
    assert "prior" not in json.dumps(json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])["space"])


def test_the_design_begins_with_the_likeliest_point_and_three_of_four_are_drawn_from_the_prior():
    space = SearchSpace({"x": Real(0, 1, prior=Normal(0.2, 0.05)), "c": Categorical(["a", "b"], prior=[0, 1])})
    found = [trial.params for trial in Study(space, seed=0, n_initial=64).ask(64)]
    assert found[0] == {"x": 0.2, "c": "b"}
    believed = [params for row, params in enumerate(found) if row % 4 < 3]
    assert {params["c"] for params in believed} == {"b"}
    places = sorted((1 + math.erf((params["x"] - 0.2) / 0.05 / math.sqrt(2))) / 2 for params in believed[1:])
    assert max(b - a for a, b in itertools.pairwise(places)) < 0.1  # they stay stratified
    assert found[3::4] == space.decode(space.points.sobol(64, seed=0)[3::4])


def test_without_priors_the_design_is_the_sobol_sequence():
    space = SearchSpace({"x": Real(0, 1), "k": Integer(1, 9)})
    asked = [trial.params for trial in Study(space, seed=5).ask(8)]
    assert asked == space.decode(space.points.sobol(8, seed=5))


def test_all_turns_respect_it():
    study = Study({**SPACE, "model": Categorical(["svc", "forest", "net"], prior=[1, 1, 1])}, seed=0)
    go_on(study, 12)
    strategy = study.state.strategy
    assert isinstance(strategy, Turns)
    seen = []

    def kept(search, q):
        seen.append(search.prior_weight)
        return type(strategy.first.candidates).propose(strategy.first.candidates, search, q)

    strategy.first.candidates.propose = kept
    for _ in range(6):
        trial = study.ask_one()
        study.tell(trial, loss(trial.params))
    assert len(seen) >= 6
    assert all(weight > 0 for weight in seen)
    assert seen == sorted(seen, reverse=True)


def bowl(params):
    return sum((params[name] - 0.3) ** 2 for name in "abcd")


def space_around(centre):
    return {name: Real(0, 1, prior=None if centre is None else Normal(centre, 0.1)) for name in "abcd"}


def test_a_right_prior_saves_evaluations_and_a_wrong_one_is_overcome():
    values = {
        centre: sorted(minimize(bowl, space_around(centre), n_trials=n, seed=seed).best_value for seed in range(3))[1]
        for centre, n in [(None, 12), (0.33, 12), (1.0, 30)]
    }
    assert values[0.33] < values[None] / 4
    assert values[1.0] < 1e-2


def test_a_prior_that_leaves_no_new_point_does_not_end_the_run():
    space = SearchSpace({"c": Categorical(["a", "b", "c"], prior=[1, 0, 0]), "k": Integer(1, 2, prior=Normal(1, 0.01))})
    study = Study(space, seed=0)
    assert len({tuple(trial.params.values()) for trial in study.ask(6)}) == 6
    assert torch.isfinite(space.points.log_prior(space.points.enumerate(), 0.1)).all()
