"""Observations that a journal keeps, and all that they know."""

from dataclasses import fields
from pathlib import Path

from deepbore import Categorical, Condition, Integer, Real, SearchSpace
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations
from deepbore.data.replay import replay

KEPT = Path(__file__).parent / "journals"  # written by version 0.1, with what it said of them
SPACE = SearchSpace(
    {"x": Real(0.1, 1, log=True), "c": Categorical(["a", "b"]), "k": Integer(1, 9, when=Condition("c", "b"))}
)


def header(space=SPACE, directions=("minimize",), by_preference=False):
    about = {"preferences": True} if by_preference else {}
    return {"space": space.to_dict(), "directions": list(directions), "seed": 0, **about}


def begun(path, directions=("minimize",), space=SPACE, by_preference=False):
    """Observations that a new journal keeps; those of no path are in memory alone."""
    journal = path and Journal.begin(path, header(space, directions, by_preference))
    return Observations(space, directions, journal, by_preference=by_preference)


def known(observations):
    """All that observations know, as plain data; NaN as text, so that equal is equal."""
    tensors = ("points", "values", "constraints", "budgets", "tasks", "status", "feasible")
    told = {name: str(getattr(observations.columns, name).tolist()) for name in tensors}
    ledger, statistics = observations.ledger, observations.ledger.statistics
    counted = {
        "n_asked": ledger.n_asked,
        "n_failed": statistics.n_failed,
        "n_complete": statistics.n_complete,
        "n_distinct": observations.n_distinct,
        "n_since_best": ledger.ranking.n_since_best,
    }
    trials = [whole(observations.trial(row)) for row in range(len(observations))]
    best = observations.best if observations.k == 1 else None
    counted |= {"fixed": observations.space.fixed, "preferences": observations.preferences}
    return {
        **told,
        **counted,
        "sorted": observations.replicates.sorted_values.tolist(),
        "trials": trials,
        "best": whole(best),
    }


def whole(trial):
    """All that a trial says, as text."""
    return str(None if trial is None else {each.name: getattr(trial, each.name) for each in fields(trial) if each.repr})


def loaded(path):
    """What the journal at a path says."""
    return known(replay(Journal(path)).observations)
