"""Digests of seeded runs of all kinds: a change that must change no number is made between two calls.

    python scripts/seeded_runs.py before.json              # before the change
    python scripts/seeded_runs.py after.json --same-as before.json

A digest is of all trials (parameters, values, constraints, budgets, reports, statuses), of the stream of random
numbers, and of what the Trainer has logged. Digests differ between machines and versions of torch; so they are compared
on one, and not kept.
"""

import argparse
import contextlib
import hashlib
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import deepbore as db

Run = Callable[[Path], list[Any]]  # of a new folder -> studies, or other things to digest
RUNS: dict[str, Run] = {}
QUIET = ("enable_checkpointing", "enable_progress_bar", "enable_model_summary")


def run(function: Run) -> Run:
    """Decorator of a run, named by its function."""
    RUNS[function.__name__] = function
    return function


# --- what is evaluated -----------------------------------------------------------------------------------------------


def bowl(params: dict[str, Any]) -> float:
    """A smooth function of all numbers, and of how choices are spelled."""
    total = 0.0
    for place, (_, value) in enumerate(sorted(params.items())):
        total += len(value) / 7 if isinstance(value, str) else (float(value) - 0.3 - 0.1 * place) ** 2
    return total


def two(params: dict[str, Any]) -> list[float]:
    """Two objectives that disagree."""
    return [bowl(params), (params["x"] - 0.9) ** 2 + 0.1 * params.get("y", 0.0)]


def failing(params: dict[str, Any]) -> float:
    """Fails in a part of the space."""
    if params["x"] > 0.7:
        raise ValueError("diverged")
    return bowl(params)


def noisy(params: dict[str, Any]) -> float:
    """Noise that depends on the point alone, so that runs are the same."""
    return bowl(params) + 0.05 * np.sin(1e4 * params["x"])


def spending(params: dict[str, Any], trial: db.Trial) -> float:
    """Better the more is spent."""
    return bowl(params) + 1 / float(trial.budget or 1)


def reporting(params: dict[str, Any], trial: db.Trial) -> float:
    """Reports a curve, and ends where it is told to."""
    for step in range(1, 6):
        trial.report(bowl(params) + 1 / step, step=step)
        if trial.should_prune():
            raise db.TrialPruned
    return bowl(params)


LINE = {"x": db.Real(0, 1), "y": db.Real(0, 1)}
MIXED = {
    "x": db.Real(1e-4, 1, log=True),
    "n": db.Integer(1, 9),
    "c": db.Categorical(["a", "bb", "ccc"]),
    "y": db.Real(0, 1),
}
BRANCHES = {
    "kind": db.Categorical(["net", "tree", "line"]),
    "lr": db.Real(1e-4, 1, log=True, when={"kind": "net"}),
    "layers": db.Integer(1, 5, when={"kind": "net"}),
    "depth": db.Integer(1, 9, when={"kind": "tree"}),
    "x": db.Real(0, 1),
}


def told(study: db.Study, n: int, objective: Callable[..., Any] = bowl, q: int = 1) -> db.Study:
    """A study after n batches of ask and tell."""
    for _ in range(n):
        for trial in study.ask(q):
            study.tell(trial, objective(trial.params))
    return study


def minimized(objective: Any, space: Any, n: int, **options: Any) -> db.Study:
    """The study of a run by `minimize`."""
    return db.minimize(objective, space, n, progress=False, **{"seed": 3, **options}).study


# --- the runs --------------------------------------------------------------------------------------------------------


@run
def continuous_asked(_: Path) -> list[Any]:
    return [told(db.Study(LINE, seed=1), 22)]


@run
def continuous(_: Path) -> list[Any]:
    return [minimized(bowl, LINE, 24)]


@run
def mixed_asked(_: Path) -> list[Any]:
    return [told(db.Study(MIXED, seed=1), 20)]


@run
def mixed(_: Path) -> list[Any]:
    return [minimized(bowl, MIXED, 22)]


@run
def conditional_asked(_: Path) -> list[Any]:
    return [told(db.Study(BRANCHES, seed=1), 22)]


@run
def conditional(_: Path) -> list[Any]:
    return [minimized(bowl, BRANCHES, 24)]


@run
def high_dimensional(_: Path) -> list[Any]:
    return [minimized(bowl, {f"x{j}": db.Real(0, 1) for j in range(12)}, 16)]


@run
def batches_asked(_: Path) -> list[Any]:
    return [told(db.Study(MIXED, seed=1), 6, q=4)]


@run
def batches(_: Path) -> list[Any]:
    return [minimized(bowl, MIXED, 25, batch_size=4)]


@run
def objectives_asked(_: Path) -> list[Any]:
    return [told(db.Study(LINE, seed=1, directions=["minimize", "maximize"]), 16, two)]


@run
def objectives(_: Path) -> list[Any]:
    return [minimized(two, LINE, 16, directions={"a": "minimize", "b": "minimize"})]


@run
def constraints(_: Path) -> list[Any]:
    def constrained(params: dict[str, Any]) -> db.Outcome:
        return db.Outcome(bowl(params), constraints=[0.5 - params["x"], params["y"] - 0.8])

    return [minimized(constrained, LINE, 18), told(db.Study(LINE, seed=2), 16, constrained)]


@run
def budgets(_: Path) -> list[Any]:
    return [minimized(spending, LINE, 40, budget=db.Budget("epochs", 1, 9))]


@run
def budgets_asked(_: Path) -> list[Any]:
    study = db.Study(LINE, seed=1, budget=db.Budget("epochs", 1, 9))
    for _ in range(30):
        trial = study.ask_one()
        study.tell(trial, spending(trial.params, trial))
    return [study]


@run
def failures(_: Path) -> list[Any]:
    return [minimized(failing, LINE, 20)]


@run
def pruned(_: Path) -> list[Any]:
    return [minimized(reporting, LINE, 20, pruner=db.MedianPruner(startup_trials=3))]


@run
def noise(_: Path) -> list[Any]:
    return [minimized(noisy, LINE, 18, noisy=True)]


@run
def suspicious(_: Path) -> list[Any]:
    def wrong(params: dict[str, Any]) -> float:
        return -1e6 if 0.55 < params["x"] < 0.7 and params["y"] < 0.4 else bowl(params)

    return [minimized(wrong, LINE, 24)]


@run
def earlier_tasks(_: Path) -> list[Any]:
    study = db.Study(LINE, seed=1)
    grid = np.linspace(0, 1, 12)
    study.add({"x": grid, "y": grid[::-1]}, [(x - 0.4) ** 2 for x in grid], task="last year")
    study.optimize(bowl, 16, progress=False)
    return [study]


@run
def added_and_queued(_: Path) -> list[Any]:
    study = db.Study(MIXED, seed=1)
    study.add({"x": [0.1, 0.01], "n": [3, 4], "c": ["a", "bb"], "y": [0.5, 0.25]}, [1.0, 2.0])
    study.enqueue({"n": 5})
    told(study, 12)
    study.enqueue({"c": "ccc"})
    study.fix({"n": 4})
    study.optimize(bowl, 4, progress=False)
    study.withdraw(3)
    study.correct(5, 0.01)
    return [told(study, 3)]


@run
def preferred(_: Path) -> list[Any]:
    study = db.Study(LINE, seed=0, preferences=True)
    for _ in range(8):
        one, other = study.ask(2)
        study.prefer(*((one, other) if bowl(one.params) < bowl(other.params) else (other, one)))
    return [study]


@run
def networks(_: Path) -> list[Any]:
    return [minimized(bowl, LINE, 13, classifier=db.DeepEnsemble(members=2))]


@run
def networks_asked(_: Path) -> list[Any]:
    return [told(db.Study(MIXED, seed=1, classifier=db.MLPClassifier()), 13)]


@run
def deep_least_squares(_: Path) -> list[Any]:
    return [minimized(bowl, LINE, 13, classifier=db.DeepPLS())]


@run
def own_trainer(_: Path) -> list[Any]:
    from lightning.pytorch import Trainer

    trainer = Trainer(max_epochs=-1, accelerator="cpu", logger=False, **dict.fromkeys(QUIET, False))
    study = db.Study(LINE, seed=1)
    study.optimize(bowl, 16, trainer=trainer, progress=False)
    return [study, {name: float(value) for name, value in trainer.callback_metrics.items() if "seconds" not in name}]


@run
def threshold_labels(_: Path) -> list[Any]:
    labels = db.EmphasiseChanges(db.ThresholdLabels())
    return [minimized(bowl, LINE, 16, classifier=db.RandomForest(), labels=labels)]


@run
def resumed_asked(folder: Path) -> list[Any]:
    told(db.Study(MIXED, seed=1, journal=folder / "run.jsonl"), 15).close()
    study = told(db.Study.load(folder / "run.jsonl"), 3)
    study.close()
    again = db.Study.load(folder / "run.jsonl")
    again.optimize(bowl, 3, progress=False)
    return [again]


@run
def resumed(folder: Path) -> list[Any]:
    for n in (5, 13, 17):
        study = minimized(bowl, MIXED, n, journal=folder / "run.jsonl", if_exists="load")
    return [study]


@run
def resumed_networks(folder: Path) -> list[Any]:
    for n in (8, 12):
        study = minimized(bowl, LINE, n, journal=folder / "r.jsonl", if_exists="load", classifier=db.MLPClassifier())
    return [study]


@run
def interrupted(folder: Path) -> list[Any]:
    """A callback that ends the run with an error; then it continues."""

    def broken(study: db.Study, _: db.Trial) -> None:
        if len(study.trials) in (6, 14):
            raise OSError("no such printer")

    study = db.Study(MIXED, seed=4, journal=folder / "run.jsonl")
    for _ in range(2):
        with contextlib.suppress(OSError):
            study.optimize(bowl, 10, callbacks=[broken], progress=False)
    study.optimize(bowl, 3, progress=False)
    return [study]


@run
def stopped(_: Path) -> list[Any]:
    rules = [db.NoImprovement(40), db.ExpectedImprovementBelow(0.05, 2)]
    study = minimized(bowl, LINE, 40, stop_when=rules)
    return [study, minimized(bowl, LINE, 40, stop_when=db.TargetReached(0.05))]


@run
def processes(_: Path) -> list[Any]:
    return [minimized(bowl, MIXED, 16, workers=2, batch_size=2)]


@run
def exhausted(_: Path) -> list[Any]:
    return [minimized(bowl, {"n": db.Integer(1, 5), "c": db.Categorical(["a", "bb", "ccc"])}, 40, batch_size=2)]


@run
def without_models(_: Path) -> list[Any]:
    return [minimized(bowl, MIXED, 12, strategy=name) for name in ("random", "sobol", "grid")]


@run
def several_strategies(_: Path) -> list[Any]:
    from deepbore.strategies import ModelStrategy, NearBest, Turns

    turns = Turns([ModelStrategy(db.KernelPLS()), NearBest()])
    return [minimized(bowl, LINE, 18, strategy=turns), minimized(bowl, LINE, 16, candidates=db.RandomSearch())]


# --- digests ---------------------------------------------------------------------------------------------------------


def plain(trial: db.Trial) -> list[Any]:
    """What a trial is, without times; floats as hexadecimal digits."""
    noted = {name: each for name, each in trial.attributes.items() if name != "traceback"}
    about = [trial.id, trial.params, trial.values, trial.constraints, trial.budget, dict(trial.reports), noted]
    return [*about, str(trial.status), trial.reason, trial.resume_from]


def exact(value: Any) -> Any:
    """Plain data with floats as hexadecimal digits."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {str(name): exact(each) for name, each in value.items()}
    return [exact(each) for each in value] if isinstance(value, (list, tuple)) else value


def digest(found: list[Any]) -> str:
    """The digest of studies, or other plain data."""
    told: list[Any] = []
    for each in found:
        if isinstance(each, db.Study):
            stream = hashlib.sha256(each.state.generator.get_state().numpy().tobytes()).hexdigest()
            told.append([stream, [plain(trial) for trial in each.trials]])
        else:
            told.append(each)
    return hashlib.sha256(json.dumps(exact(told), default=str).encode()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="file of digests that is written, and completed where it exists")
    parser.add_argument("--same-as", type=Path, help="file of digests that must be the same")
    parser.add_argument("--only", nargs="*", default=list(RUNS), help="names of runs")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    known = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    wanted = json.loads(arguments.same_as.read_text()) if arguments.same_as else {}
    different = []
    for name in arguments.only:
        if name not in known:
            with tempfile.TemporaryDirectory() as folder:
                known[name] = digest(RUNS[name](Path(folder)))
            arguments.out.write_text(json.dumps(known, indent=1))
        if wanted and known[name] != wanted.get(name):
            different.append(name)
        print(f"{name:22} {known[name]}{'   DIFFERENT' if name in different else ''}", flush=True)
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
