#!/usr/bin/env python
"""What descriptors of ligands, bases and solvents are worth: two tables of reactions, of which every yield is known.

    python scripts/reactions.py docs/results/reactions.jsonl                     # resumable
    python scripts/reactions.py docs/results/reactions.jsonl --show              # the table only
    python scripts/reactions.py FILE --data FOLDER --methods random dft          # other data, or some methods only

The data are not in this repository: FOLDER has `direct_arylation` (1728 reactions) and `suzuki` (3696, of Perera et
al., Science 2018) as in experiments/data of github.com/b-shields/edbo (MIT licence; Shields et al.,
Nature 2021): experiment_index.csv with the yields, and *_dft.csv and *_mordred.csv with descriptors of each component.

random              reactions drawn without replacement
optuna-tpe          Optuna's TPESampler, multivariate, constant_liar; what it repeats is drawn at random
baybe               BayBE, its default recommender, with the DFT descriptors; in its own environment (peers/venvs.py)
one-hot             deepbore's default, its first batch a design; nothing is said of the levels
dft, mordred        the same with these descriptors: `Categorical(names, features=...)`
shuffled            the same with the DFT descriptors of other levels, drawn for each seed
decorrelated        dft with no column that correlates with an earlier one by more than .7, as BayBE has them
alone               dft without turns for levels that have had few trials
far                 dft, and the first batch are farthest points: each is as far as can be from those before it

Fifty reactions in batches of five. Only the first batch is without a model, for Optuna the first two. A row has the
best yield after each batch. BayBE, which takes most of the time, has ten seeds, the others thirteen.
"""

import json
import os
import subprocess
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import optuna
import pandas as pd
import torch

import deepbore
from deepbore import Categorical, KernelPLS, Ordinal, SearchSpace, Study
from deepbore.space.features import Coordinates
from deepbore.strategies import ModelStrategy
from harness.measuring import Row, complete, grid, of_one_file, rows
from peers import venvs

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"
TABLES = ("direct_arylation", "suzuki")
OURS = {
    "one-hot": None,
    "dft": "dft",
    "mordred": "mordred",
    "shuffled": "dft",
    "decorrelated": "dft",
    "alone": "dft",
    "far": "dft",
}
METHODS = ("random", "optuna-tpe", "baybe", *OURS)
SEEDS, BAYBE_SEEDS, BATCH, BUDGET, AT = range(13), range(10), 5, 50, (10, 25, 50)
CORRELATED = 0.7


class Table:
    """Reactions with their yields, and descriptors of their components.

    Args:
        folder: of one table.
    """

    def __init__(self, folder: Path):
        frame = pd.read_csv(folder / "experiment_index.csv").drop(columns=["entry", "new_index"], errors="ignore")
        self.folder = folder
        self.components = [name for name in frame.columns if name.endswith("_SMILES")]
        self.names = [name for name in frame.columns if name != "yield"]
        self.levels = {name: sorted(frame[name].unique().tolist()) for name in self.names}
        self.yields = dict(zip(map(tuple, frame[self.names].values.tolist()), frame["yield"].tolist(), strict=True))

    def __call__(self, params: dict[str, Any]) -> float:
        return self.yields[tuple(params[name] for name in self.names)]

    def descriptors(self, name: str, kind: str) -> pd.DataFrame:
        """All columns of numbers without gaps, by SMILES."""
        component = name.removesuffix("_SMILES").lower()
        (path,) = self.folder.glob(f"{component}*_{kind}.csv")
        frame = pd.read_csv(path).drop_duplicates(f"{component}_SMILES").set_index(f"{component}_SMILES")
        return frame.loc[self.levels[name]].select_dtypes("number").dropna(axis=1)

    def space(self, kind: str | None, change: Callable[[np.ndarray], np.ndarray] | None = None) -> SearchSpace:
        """The space: components with descriptors of a kind, if any, perhaps changed; numbers are ordinals."""
        parameters = {}
        for name, levels in self.levels.items():
            if name not in self.components:
                parameters[name] = Ordinal(levels)
                continue
            features = None if kind is None else self.descriptors(name, kind).to_numpy()
            if features is not None and change is not None:
                features = change(features)
            parameters[name] = Categorical(levels, features=features)
        return SearchSpace(parameters)


@cache
def table_of(folder: Path) -> Table:
    return Table(folder)


def by_chance(table: Table, seed: int) -> list[float]:
    return np.random.default_rng(seed).permutation(list(table.yields.values()))[:BUDGET].tolist()


def by_tpe(table: Table, seed: int) -> list[float]:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(multivariate=True, constant_liar=True, seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    rng, found = np.random.default_rng(seed), {}
    while len(found) < BUDGET:
        batch = []
        for _ in range(BATCH):
            trial = study.ask()
            chosen = {
                name: trial.suggest_categorical(name, levels)
                if name in table.components
                else trial.suggest_float(name, min(levels), max(levels))
                for name, levels in table.levels.items()
            }
            nearest = {
                name: value if name in table.components else min(table.levels[name], key=lambda one: abs(one - value))
                for name, value in chosen.items()
            }
            key = tuple(nearest[name] for name in table.names)
            if key in found:
                left = [each for each in table.yields if each not in found]
                key = left[rng.integers(len(left))]
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                trial = None
            found[key] = table.yields[key]
            batch.append((trial, key))
        for trial, key in batch:
            if trial is not None:
                study.tell(trial, found[key])
    return list(found.values())


def by_baybe(table: Table, seed: int) -> list[float]:
    described = {name: table.descriptors(name, "dft").to_dict("split") for name in table.components}
    asked = {
        "levels": table.levels,
        "descriptors": described,
        "rows": [list(key) for key in table.yields],
        "yields": list(table.yields.values()),
        "seed": seed,
        "batch": BATCH,
        "budget": BUDGET,
    }
    command = [venvs.python("baybe"), "-W", "ignore", HERE / "peers" / "baybe_campaign.py"]
    answer = subprocess.run(command, check=False, input=json.dumps(asked), capture_output=True, text=True)
    if answer.returncode:
        raise RuntimeError(answer.stderr[-2000:])
    return json.loads(answer.stdout.splitlines()[-1])


def decorrelated(features: np.ndarray) -> np.ndarray:
    """The columns that correlate with none kept before by more than `CORRELATED`."""
    varies = features[:, features.std(0) > 0]
    alike, kept = abs(np.corrcoef(varies, rowvar=False)), [0]
    for column in range(1, len(alike)):
        if (alike[column, kept] <= CORRELATED).all():
            kept.append(column)
    return varies[:, kept]


def farthest(space: SearchSpace, seed: int) -> list[dict[str, Any]]:
    """A first batch: a reaction at random, then each the farthest from those before it, in the kernel's coordinates."""
    points = space.points.enumerate()
    points = points[torch.randperm(len(points), generator=torch.Generator().manual_seed(seed))]
    places, chosen = Coordinates(space.points)(points), [0]
    while len(chosen) < BATCH:
        chosen.append(int(torch.cdist(places, places[chosen]).amin(-1).argmax()))
    return space.decode(points[chosen])


def by_deepbore(table: Table, seed: int, method: str) -> list[float]:
    change = {"shuffled": np.random.default_rng(seed).permutation, "decorrelated": decorrelated}.get(method)
    space = table.space(OURS[method], change)
    settings = {"strategy": ModelStrategy(KernelPLS())} if method == "alone" else {}
    study = Study(space, direction="maximize", seed=seed, n_initial=BATCH, **settings)
    for reaction in farthest(space, seed) if method == "far" else []:
        study.enqueue(reaction)
    found = []
    while len(found) < BUDGET:
        trials = study.ask(BATCH)
        values = [table(trial.params) for trial in trials]
        for trial, value in zip(trials, values, strict=True):
            study.tell(trial, value)
        found += values
    return found


def run(table: str, method: str, seed: int, data: Path = DATA) -> Row:
    """What a row says of one run."""
    reactions, started = table_of(data / table), time.process_time()
    if method in OURS:
        found = by_deepbore(reactions, seed, method)
    else:
        found = {"random": by_chance, "optuna-tpe": by_tpe, "baybe": by_baybe}[method](reactions, seed)
    best = np.maximum.accumulate(found)[BATCH - 1 :: BATCH].round(2).tolist()
    return {"best": best, "seconds": round(time.process_time() - started, 1), "version": deepbore.__version__}


def show(kept: list[Row]) -> None:
    """The mean of the best yield, its standard error, and the share of seeds within 1 of the table's best yield."""
    print("| | " + " | ".join(f"{table}, {n}" for table in TABLES for n in AT) + " |")
    print("|---|" + "---|" * (len(TABLES) * len(AT)))
    for method in METHODS:
        cells = []
        for table in TABLES:
            mine = [row["best"] for row in kept if (row["table"], row["method"]) == (table, method)]
            most = max((row["best"][-1] for row in kept if row["table"] == table), default=0.0)
            for n in AT:
                found = np.array([best[n // BATCH - 1] for best in mine])
                share = f"{(found >= most - 1).mean():.0%}" if len(found) else ""
                error = found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
                cells.append(f"{found.mean():.1f} ± {error:.1f} ({share} of {len(found)})" if len(found) else "")
        print(f"| {method} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = of_one_file(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the tables")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    every = grid(seed=SEEDS, table=TABLES, method=given.methods)
    wanted = [row for row in every if row["method"] != "baybe" or row["seed"] in BAYBE_SEEDS]
    show(rows(given.file) if given.show else complete(given.file, wanted, lambda **row: run(data=given.data, **row)))


if __name__ == "__main__":
    main()
