"""Runs to be watched by the dashboard, and what its tests ask it by."""

from deepbore import Categorical, Integer, Real, SearchSpace, Study

TOKEN = "0123456789abcdef-of-a-test"
SPACE = {"x": Real(0, 1), "lr": Real(1e-5, 0.1, log=True), "layers": Integer(1, 9), "opt": Categorical(["sgd", "adam"])}


def value_of(params):
    return (params["x"] - 0.3) ** 2 + abs(params["layers"] - 5) + (params["opt"] == "sgd")


def begun(path, n=8, **options):
    """A study with n told trials, which still has its journal."""
    study = Study(SearchSpace(SPACE), seed=0, journal=path, **options)
    for _ in range(n):
        trial = study.ask_one()
        study.tell(trial, value_of(trial.params))
    return study


def key_of(client, name):
    """The key of a run by its name."""
    return next(row["key"] for row in client.live.rows.values() if row["name"] == name)
