"""scripts/peers: what every method of the benchmark asks and takes, and what is told of some."""

import sys

import pytest

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from peers import methods, process, venvs
from processes import ROOT

SCRIPTS = ROOT / "scripts"
REAL = SearchSpace({"a": Real(-1, 2), "b": Real(1e-3, 1, log=True)})
MIXED = SearchSpace(
    {
        "kind": Categorical(["x", "y", None]),
        "width": Integer(2, 200, log=True),
        "depth": Ordinal([1, 2, 4, 8]),
        "rate": Real(1e-4, 1, log=True),
        "share": Real(0, 1, when=Condition("kind", ["y", None])),
        "power": Integer(1, 3, when=Condition("kind", "x")),
        "flag": Categorical([True, False], when=Condition("power", [2, 3])),
    }
)
FINITE = SearchSpace({"u": Ordinal([1, 2, 3]), "v": Categorical(["a", "b"])})
EVOLUTION = ["differential-evolution", "regularised-evolution"]
QUICK = ["random", "sobol", "optuna-tpe", "cma-es", "lfbo-xgb", "bore-xgb", "bore-mlp", "deepbore", *EVOLUTION]
CLASSIC = ["gp-ei", "gp-ucb", "q-ei", "local-penalisation", "hyperopt-tpe"]
SLOW = ["optuna-gp", "botorch", "turbo", "lfbo-rf", "bore-rf", "paper:bore-rf", *CLASSIC]
APART = [name for name, method in methods.PEERS.items() if method.venv]
EVERY = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in [*SLOW, *APART])]
NEEDS = {"cma-es": ("cma", "cmaes"), "lfbo-xgb": ("xgboost",), "bore-xgb": ("xgboost",), "hyperopt-tpe": ("hyperopt",)}


def made(name, space, **settings):
    for package in NEEDS.get(name, ()):
        pytest.importorskip(package)
    if name in APART and not (SCRIPTS / "peers" / ".venvs" / methods.PEERS[name].venv / "installed-from").exists():
        pytest.skip("its virtual environment is not installed")
    return methods.make(name, space, seed=3, **settings)


def cost(params):
    numbers = [value for value in params.values() if isinstance(value, float | int)]
    return float(sum(numbers) + len(params))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("space", [REAL, MIXED], ids=["real", "mixed"])
def test_a_peer_stays_in_the_space_and_lives_with_failures(name, space):
    peer = made(name, space, n_initial=5)
    try:
        seen = []
        for n in range(12):
            (params,) = peer.ask(1)
            space.encode([params])  # raises for anything that is not a configuration of the space
            seen.append((None if n in (1, 6) else cost(params), params))
            peer.tell(params, seen[-1][0])
        best = min((value, n) for n, (value, _) in enumerate(seen) if value is not None)
        assert peer.recommend() == seen[best[1]][1]
        assert " " in peer.version
        assert peer.clock() > 0
    finally:
        peer.close()


@pytest.mark.parametrize("name", EVERY)
def test_batches_are_told_in_any_size(name):
    peer = made(name, REAL, n_initial=5, workers=4, noisy=True)
    try:
        for _ in range(3):
            batch = peer.ask(4)
            assert len(batch) == 4
            for params in batch:
                peer.tell(params, cost(params))
        REAL.encode([peer.recommend()])
    finally:
        peer.close()


@pytest.mark.parametrize("name", ["lfbo-xgb", "bore-mlp", pytest.param("botorch", marks=pytest.mark.slow)])
def test_models_try_no_configuration_twice_while_others_are_left(name):
    peer = made(name, FINITE, n_initial=2)
    for _ in range(5):
        (params,) = peer.ask(1)
        peer.tell(params, cost(params))
    assert len({str(params) for params in peer.params[2:]}) == 3


def test_deepbore_ends_with_a_finite_space():
    peer = made("deepbore", FINITE)
    for n in range(6):
        (params,) = peer.ask(1)
        peer.tell(params, float(n))
    assert peer.ask(1) == []


def test_cma_restarts_with_twice_the_population():
    peer = made("cma-es", REAL)
    for _ in range(600):
        (params,) = peer.ask(1)
        peer.tell(params, (params["a"] - 1) ** 2)
        if peer.restarts:
            break
    assert peer.restarts == 1
    assert peer.strategy.popsize == 2 * peer.population


def test_turbo_halves_its_region_doubles_it_and_begins_anew():
    turbo = made("turbo", REAL, n_initial=2)

    def tell(value):
        turbo.tell({"a": 0.5, "b": 0.5}, value)
        turbo.count()

    for value in (5.0, 4.0):
        tell(value)
    assert (turbo.wins, turbo.losses) == (0, 0)  # that was the design
    for value in range(3, -7, -1):
        tell(float(value))
    assert turbo.length == 1.6
    for _ in range(4 * 8):
        tell(100.0)
    assert turbo.length == 1.6 / 2**8
    turbo.ask(1)
    assert (turbo.length, turbo.begun) == (0.8, 44)
    assert turbo.n_initial == 0 + 2


def test_lfbo_weighs_good_rows_by_their_improvement(monkeypatch):
    seen = {}

    class Model:
        def fit(self, x, labels, sample_weight):
            seen.update(x=x, labels=labels, weights=sample_weight)

        def predict_proba(self, x):
            return x[:, :1] * [[1, -1]]

    peer = made("lfbo-xgb", REAL, n_initial=4)
    monkeypatch.setattr(peer, "model", Model)
    for value in (0.0, 1.0, 4.0, 4.0, 4.0, 4.0):
        (params,) = peer.ask(1) if len(peer.values) < 4 else REAL.decode(REAL.points.sample(1, peer.generator))[:1]
        peer.tell(params, value)
    peer.ask(1)
    good, bad = seen["weights"][:2], seen["weights"][2:]
    assert seen["labels"].tolist() == [1, 1, *[0] * 6]
    assert good.sum() == pytest.approx(bad.sum())
    tau = 1.0 + 0.65 * 3.0  # the quantile .33 of six values
    assert good[0] / good[1] == pytest.approx(tau / (tau - 1))


@pytest.mark.slow
def test_a_peer_in_another_process_does_the_same(monkeypatch):
    monkeypatch.setattr(venvs, "python", lambda name: sys.executable)
    there = process.ProcessPeer("lfbo-xgb", "any", MIXED, 3, n_initial=3)
    here = made("lfbo-xgb", MIXED, n_initial=3)
    try:
        for _ in range(5):
            (params,) = here.ask(1)
            assert there.ask(1) == [params]
            for peer in (there, here):
                peer.tell(params, cost(params))
        assert there.recommend() == here.recommend()
        assert there.version == here.version
        assert there.clock() > here.clock()
        with pytest.raises(RuntimeError, match="TypeError"):
            there.ask(None)
        there.process.kill()
        with pytest.raises(RuntimeError, match="process has ended"):
            there.ask(1)
    finally:
        there.close()


def test_every_method_that_the_table_names_is_there():
    for name, method in methods.PEERS.items():
        module, kind = method.place.split(":")
        source = (SCRIPTS / "peers" / f"{module}.py").read_text()
        assert f" {kind}(" in source, name
    assert len(set(methods.names())) == len(methods.names())
    assert {method.venv for method in methods.PEERS.values() if method.venv} | {"baybe"} == {  # of reactions.py
        path.stem.removeprefix("requirements-") for path in (SCRIPTS / "peers").glob("requirements-*.txt")
    }
