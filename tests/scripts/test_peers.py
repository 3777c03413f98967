"""scripts/peers: the papers' recipes, and the methods that they compare with."""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch
import yaml

from deepbore import Categorical, Condition, Integer, Ordinal, Outcome, Real, SearchSpace, Study
from deepbore.errors import SettingError
from deepbore.problems import Problem
from harness.job import Job
from harness.ledger import Ledger
from harness.running import optimise
from peers import methods, papers, venvs
from processes import ROOT


class Ramp(Problem):
    """x, at least 0.4."""

    space = SearchSpace({"x": Real(0, 1)})
    constraints = 1
    optimum = 0.4

    def __call__(self, params):
        return Outcome(params["x"], constraints=[0.4 - params["x"]])


@pytest.mark.parametrize("name", ["deepbore", "optuna-tpe", "optuna-gp", "botorch"])
def test_a_peer_that_knows_constraints_comes_near_the_border(name):
    pytest.importorskip({"optuna-tpe": "optuna", "optuna-gp": "optuna", "botorch": "botorch"}.get(name, "torch"))
    problem = Ramp()
    ledger = Ledger(problem)
    peer = methods.make(name, problem.space, 0, n_initial=5, constrained=True)
    optimise(peer, ledger, Job("ramp", name, 0, 30 if name == "optuna-tpe" else 10))
    assert all(value >= 0.4 for _, value in ledger.best)
    assert ledger.best[-1][1] < (0.5 if name == "optuna-tpe" else 0.42)
    assert ledger.failed == 0


def test_to_a_peer_that_knows_none_what_is_infeasible_has_failed():
    peer = methods.make("random", Ramp.space, 0)
    ledger = Ledger(Ramp())
    optimise(peer, ledger, Job("ramp", "random", 0, 20))
    assert [value is None for value in peer.values] == [params["x"] < 0.4 for params in peer.params]
    assert ledger.failed == 0


LINE = SearchSpace({"x": Real(0, 2)})

SQUARE = SearchSpace({"a": Real(-5, 5), "b": Real(-5, 5)})

LEVELS = SearchSpace({"kind": Categorical(["x", "y", "z"]), "width": Integer(2, 200, log=True), "rate": Real(0, 1)})

CONDITIONAL = SearchSpace(
    {
        "kind": Categorical(["x", "y"]),
        "depth": Ordinal([1, 2, 4], when=Condition("kind", "x")),
        "share": Real(0, 1, when=Condition("depth", [2, 4])),
    }
)


def bowl(params):
    return params["a"] ** 2 + (params["b"] - 1) ** 2


def told(peer, cost, n):
    for _ in range(n):
        (params,) = peer.ask(1)
        peer.tell(params, cost(params))
    return peer


# --- recipes of the papers --------------------------------------------------------------------------------------------

FILES = sorted((ROOT / "configs" / "papers").glob("*.yaml"))

QUICK = {"bore_rf", "batch_bore", "boggn"}


def test_each_file_is_a_method():
    listed = papers.methods()
    assert [name.removeprefix("paper:").replace("-", "_") for name in listed] == [path.stem for path in FILES]
    assert {"paper:bore-rf", "paper:boggn", "paper:batch-bore"} <= set(listed) <= set(methods.names())


def named(part):
    """The class and settings of a part, of those settings that are plain."""
    given = part.get("init_args", {})
    return part["class_path"].rpartition(".")[2], {k: v for k, v in given.items() if isinstance(v, int | float | str)}


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.slow, id=path.stem) for path in FILES],
)
def test_a_method_is_what_its_file_says(path):
    said = yaml.safe_load(path.read_text())
    study = Study(SQUARE, **papers.settings(path))
    described = study._state.recipe.described
    loop = said["loop"]
    parts = {"classifier": said["model"], "labels": said.get("data", {}).get("labels")}
    parts |= {"acquisition": loop.get("acquisition"), "candidates": loop.get("candidates")}
    for name, part in parts.items():
        if part is None:
            assert name not in described["given"]
            continue
        kind, settings = named(part)
        made = described[name]
        assert made["class_path"].rpartition(".")[2] == kind
        assert {key: made["init_args"].get(key) for key in settings} == pytest.approx(settings)
    assert described["n_initial"] == loop.get("n_initial", 10)


CONFIG = """
problem:
  class_path: deepbore.problems.Rosenbrock
  init_args: {dim: 3}
model: {class_path: deepbore.classifiers.RandomForest}
loop: {n_trials: 7, seed: 5, batch_size: 3}
"""


@pytest.mark.parametrize(("line", "designed"), [("", 4), ("n_initial: 6", 6)])
def test_problem_seed_and_length_are_the_benchmarks(tmp_path, monkeypatch, line, designed):
    pytest.importorskip("sklearn")
    (tmp_path / "of_mine.yaml").write_text(CONFIG.replace("seed: 5", f"seed: 5, {line}" if line else "seed: 5"))
    of_mine = papers.methods(tmp_path)
    assert list(of_mine) == ["paper:of-mine"]
    monkeypatch.setattr("peers.deepbore_methods.METHODS", of_mine)
    peer = methods.make("paper:of-mine", SQUARE, 2, n_initial=4)
    assert (peer.study.state.seed, len(peer.study.space)) == (2, 2)
    design = Study(SQUARE, seed=2, n_initial=designed)
    assert peer.ask(designed) == [trial.params for trial in design.ask(designed)]
    assert type(peer.study._state.classifier).__name__ == "RandomForest"


def test_a_recipe_that_does_not_fit_the_space_is_refused():
    with pytest.raises(SettingError, match="MultiStartLBFGS needs real parameters"):
        methods.make("paper:boggn-continuous", CONDITIONAL, 0)


# --- Gaussian processes -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def knowing():
    """A method by its name that knows some values on a line, and its model."""

    def made(name, **settings):
        peer = methods.make(name, LINE, 0, n_initial=6, **settings)
        told(peer, lambda params: math.sin(4 * params["x"]) + params["x"], 6)
        return peer, peer.model()

    made.ei, made.penalised = made("gp-ei"), made("local-penalisation")
    return made


def posterior(model, x):
    with torch.no_grad():
        found = model.posterior(torch.as_tensor(x, dtype=torch.float64).reshape(-1, 1))
    return found.mean[:, 0], found.variance[:, 0].sqrt()


GRID = np.linspace(0, 1, 2001)


def test_who_believes_the_mean_keeps_it_and_is_surer(knowing):
    peer, model = knowing.ei
    waiting = torch.tensor([[0.37], [0.71]], dtype=torch.float64)
    mean, deviation = posterior(model, GRID)
    believed, surer = posterior(peer.believing(model, waiting), GRID)
    assert believed == pytest.approx(mean.numpy(), abs=1e-6)
    assert (surer <= deviation + 1e-9).all()
    assert posterior(peer.believing(model, waiting), waiting)[1].max() < 0.5 * posterior(model, waiting)[1].min()


def test_improvement_and_bound_are_those_of_the_books(knowing):
    norm = pytest.importorskip("scipy.stats").norm
    peer, model = knowing.ei
    mean, deviation = (each.numpy() for each in posterior(model, GRID))
    best = (max(-np.array(peer.values)) + np.mean(peer.values)) / np.std(peer.values)
    z = (mean - best) / deviation
    points = torch.tensor(GRID)[:, None, None]
    nothing = peer.points[:0]
    found = peer.rule(model)(nothing)(points).detach().numpy()
    assert found == pytest.approx(deviation * (z * norm.cdf(z) + norm.pdf(z)), abs=1e-6)
    bound = methods.make("gp-ucb", LINE, 0)
    assert bound.rule(model)(nothing)(points).detach().numpy() == pytest.approx(mean + 3 * deviation)


def test_the_slope_is_the_largest_of_the_mean(knowing):
    from peers.gaussian_process import FLAT, SLOPE_IF_FLAT, steepest

    peer, model = knowing.penalised
    mean = posterior(model, GRID)[0].numpy()
    largest = np.abs(np.gradient(mean, GRID)).max()
    assert steepest(model, peer.random(50)) == pytest.approx(largest, rel=1e-3)
    flat = peer.knowing(peer.points, torch.zeros(6, 1).double(), covar_module=model.covar_module).eval()
    assert FLAT < steepest(flat, peer.random(5)) == SLOPE_IF_FLAT


def test_what_is_near_a_pending_point_is_penalised_by_the_chance_that_it_holds_no_optimum(knowing):
    erfc = pytest.importorskip("scipy.special").erfc
    from peers.gaussian_process import Penalised, steepest

    peer, model = knowing.penalised
    waiting, best = [0.3, 0.8], peer.best(model)
    improvement = peer.rule(model)(peer.points[:0])
    slope = steepest(model, peer.random(50))
    penalised = Penalised(improvement, LINE, torch.tensor(waiting, dtype=torch.float64)[:, None], slope, best)
    points = torch.tensor(GRID)[:, None, None]
    with torch.no_grad():
        found = (penalised(points) - improvement(points)).numpy()
    mean, deviation = (each.numpy() for each in posterior(model, waiting))
    z = (slope * np.abs(GRID[:, None] - waiting) - best + mean) / np.sqrt(2 * deviation**2)
    assert found == pytest.approx(np.log(0.5 * erfc(-z)).sum(1), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gp-ei", "gp-ucb", "q-ei", "local-penalisation"])
def test_a_batch_spreads_and_waits_until_it_is_told(name):
    peer = methods.make(name, LINE, 0, n_initial=5, workers=3)
    told(peer, lambda params: (params["x"] - 0.6) ** 2, 5)
    batch = sorted(params["x"] for params in peer.ask(3))
    assert min(np.diff(batch)) > 1e-3
    assert sorted(2 * peer.pending[:, 0]) == pytest.approx(batch)
    (again,) = peer.ask(1)  # a worker is free before the others are done
    assert min(abs(again["x"] - x) for x in batch) > 1e-3
    peer.tell({"x": batch[1]}, None)
    assert sorted(2 * peer.pending[:, 0]) == pytest.approx(sorted([batch[0], batch[2], again["x"]]))


def test_q_ei_is_as_batch_bore_had_it(knowing):
    peer, model = knowing("q-ei")
    peer.pending = torch.tensor([[0.5]], dtype=torch.float64)
    acquisition = peer.acquisition(model, 3)
    assert acquisition.sampler.sample_shape == (256,)
    assert acquisition.X_pending.tolist() == [[0.5]]
    assert float(acquisition.best_f) == pytest.approx(float(model.train_targets.max()))


def test_features_are_one_hot():
    from peers.base import one_hot

    points = LEVELS.encode([{"kind": "y", "width": 20, "rate": 0.25}]) / LEVELS.points.bounds[1]
    features = one_hot(LEVELS, points.expand(4, 2, 1, 3))
    assert features.shape == (4, 2, 1, 5)
    assert features[0, 0, 0].tolist() == [0, 1, 0, pytest.approx(0.5), 0.25]


# --- evolution --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "least"), [("differential-evolution", 1e-4), ("regularised-evolution", 0.2)])
def test_evolution_comes_nearer(name, least):
    peer = told(methods.make(name, SQUARE, 0), bowl, 600)
    first, last = min(peer.values[:20]), min(peer.values)
    assert last < least < first


def test_a_child_mixes_its_target_with_a_mutant_inside_the_cube():
    peer = methods.make("differential-evolution", SearchSpace({f"x{i}": Real(0, 1) for i in range(6)}), 0)
    seen = set()
    for member in peer.members:
        member.place = torch.full((6,), 0.25, dtype=torch.float64)
    peer.members[3].place = torch.full((6,), 0.75, dtype=torch.float64)
    for _ in range(50):
        child = peer.child(3)  # a + .5 (b - c) is .25 wherever a = b = c
        assert set(child.tolist()) <= {0.25, 0.75}
        seen.add(int((child == 0.25).sum()))
    assert min(seen) >= 1  # at least one column is the mutant's
    assert max(seen) == 6
    assert len(seen) > 1
    for row, member in enumerate(peer.members):
        member.place = torch.full((6,), float(row % 2), dtype=torch.float64)
    children = torch.stack([peer.child(0) for _ in range(50)])
    assert ((children >= 0) & (children <= 1)).all()
    assert ((children > 0) & (children < 1)).any()  # drawn anew, or half way


def test_a_child_takes_the_place_of_its_target_only_if_it_costs_no_more():
    peer = told(methods.make("differential-evolution", SQUARE, 0), bowl, 20)
    before = [member.cost for member in peer.members]
    assert before == peer.values
    asked = peer.ask(20)
    for n, params in enumerate(asked):
        peer.tell(params, [before[n] - 1, before[n] + 1, None][n % 3])
    after = [member.cost for member in peer.members]
    assert after == [cost - 1 if n % 3 == 0 else cost for n, cost in enumerate(before)]
    assert peer.configuration(peer.members[0].place) == asked[0]


def test_a_mutation_changes_one_parameter():
    peer = methods.make("regularised-evolution", LEVELS, 0)
    parent = LEVELS.encode([{"kind": "y", "width": 20, "rate": 0.25}])[0]
    changed = []
    for _ in range(60):
        (child,) = LEVELS.decode(peer.mutated(parent)[None])
        changed += [name for name, value in {"kind": "y", "width": 20, "rate": 0.25}.items() if child[name] != value]
    assert len(changed) == 60
    assert set(changed) == {"kind", "width", "rate"}


def test_a_mutation_may_switch_parameters_on():
    peer = methods.make("regularised-evolution", CONDITIONAL, 0)
    parent = CONDITIONAL.encode([{"kind": "y"}])[0]
    children = [CONDITIONAL.decode(peer.mutated(parent)[None])[0] for _ in range(30)]
    assert {child["kind"] for child in children} == {"x"}
    assert {child["depth"] for child in children} == {1, 2, 4}
    assert len({child["share"] for child in children if "share" in child}) > 5


def test_the_oldest_dies_however_good_it_is():
    peer = told(methods.make("regularised-evolution", SQUARE, 0), bowl, 20)
    members = list(peer.population)
    assert [member.cost for member in members] == peer.values
    parents = [peer.parent().cost for _ in range(200)]
    expected = np.mean([min(np.random.default_rng(k).choice(peer.values, 5)) for k in range(2000)])
    assert np.mean(parents) == pytest.approx(expected, rel=0.3)
    told(peer, lambda _: 1e6, 5)
    assert list(peer.population)[:15] == members[5:]


# --- HyperOpt ---------------------------------------------------------------------------------------------------------


def test_tpe_is_what_hyperopt_itself_does():
    hyperopt = pytest.importorskip("hyperopt")
    from peers.hyperopt_tpe import dimension, native

    def cost(params):
        return params["rate"] + len(params["kind"]) * params["width"] ** 0.5

    said = []

    def objective(drawn):
        parameters = LEVELS.parameters.items()
        kinds = {"kind": "xyz"[drawn["kind"]]}  # the choice is made already
        params = {name: native(p, drawn[name]) for name, p in parameters if name != "kind"} | kinds
        said.append(params)
        return cost(params)

    here = told(methods.make("hyperopt-tpe", LEVELS, 4, n_initial=8), cost, 25)
    space = {name: dimension(name, p) for name, p in LEVELS.parameters.items()}
    suggest = partial(hyperopt.tpe.suggest, n_startup_jobs=8, verbose=False)
    options = {"rstate": np.random.default_rng(4), "show_progressbar": False, "verbose": False}
    hyperopt.fmin(objective, space, algo=suggest, max_evals=25, **options)
    assert len(said) == 25
    for mine, other in zip(here.params, said, strict=True):
        assert mine["kind"] == other["kind"]
        assert (mine["width"], mine["rate"]) == pytest.approx((other["width"], other["rate"]))


def test_hyperopt_sees_a_parameter_only_where_it_is_active():
    pytest.importorskip("hyperopt")
    peer = told(methods.make("hyperopt-tpe", CONDITIONAL, 0, n_initial=5), len, 20)
    for document, params in zip(peer.trials.trials, peer.params, strict=True):
        assert {name for name, drawn in document["misc"]["vals"].items() if drawn} == set(params)
    assert peer.trials.losses() == peer.values


def test_values_of_hyperopt_stay_inside():
    pytest.importorskip("hyperopt")
    from peers.hyperopt_tpe import native

    cases = [(Real(1e-3, 1, log=True), 1.0000001, 1.0), (Integer(2, 200, log=True), 201.0, 200)]
    cases += [(Integer(1, 9, step=2), 4.0, 9), (Ordinal([1, 2, 8]), 3.0, 8), (Integer(3, 5), -1.0, 3)]
    for p, drawn, value in cases:
        assert native(p, drawn) == value


# --- environments of their own ----------------------------------------------------------------------------------------


def test_an_environment_is_made_once_however_many_ask_for_it(tmp_path, monkeypatch):
    made = []

    def make(folder, requirements, lent):
        assert not made, "a second one"
        made.append(folder)
        time.sleep(0.2)  # the others ask meanwhile
        folder.mkdir()

    monkeypatch.setattr(venvs, "HERE", tmp_path)
    monkeypatch.setattr(venvs, "make", make)
    (tmp_path / "requirements-toy.txt").write_text("toy==1\n")
    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(venvs.python, ["toy"] * 4))
    assert found == {tmp_path / ".venvs" / "toy" / "bin" / "python"}
    assert made == [tmp_path / ".venvs" / "toy"]
    (tmp_path / "requirements-toy.txt").write_text("toy==2\n")  # out of date
    with pytest.raises(AssertionError, match="a second one"):
        venvs.python("toy")
