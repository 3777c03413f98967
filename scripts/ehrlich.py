#!/usr/bin/env python
"""Sequences that must have motifs: Ehrlich functions, with a convolution as a network of one's own.

    python scripts/ehrlich.py docs/results/ehrlich.jsonl             # resumable
    python scripts/ehrlich.py docs/results/ehrlich.jsonl --show      # the table only

Ehrlich functions (Stanton et al., Closed-form test functions for biophysical sequence design, 2024) are those of
pytorch-holo, which is installed beside deepbore into an environment of its own: `pip install --no-deps pytorch-holo
beignet pooch platformdirs`. A sequence that has a forbidden pair of neighbours fails. The value is the product over
motifs of the largest share of a motif that some place has, at most 1.

All methods begin with the same 50 sequences, which do not fail; then come batches of 50. A row has the best value after
each batch.

genetic      a genetic algorithm: two of the best 50 are crossed uniformly, and one letter changes on average
optuna-tpe   Optuna's TPESampler, multivariate, constant_liar; sequences that fail have the value 0
deepbore     the default, one choice for each position
convolution  `DeepEnsemble(network=...)` of a convolution over positions, as in examples/sequence_encoder.py
"""

import os
import time
from functools import cache
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor, nn

import deepbore
from harness.measuring import Row, grid, measure_or_show

FUNCTIONS = {"20-32-4": (20, 32, 4), "8-24-3": (8, 24, 3)}  # states, positions, motifs of four
METHODS = ("genetic", "optuna-tpe", "deepbore", "convolution")
SEEDS, BATCH, AT = range(3), 50, (250, 500, 1000)


@cache
def function_of(name: str, seed: int) -> Any:
    from holo.test_functions.closed_form import Ehrlich

    states, positions, motifs = FUNCTIONS[name]
    return Ehrlich(states, positions, motifs, motif_length=4, random_seed=seed)


def values_of(name: str, seed: int, sequences: np.ndarray) -> np.ndarray:
    """The values of sequences (n x positions), NaN for those that fail."""
    found = function_of(name, seed)(torch.from_numpy(sequences)).double().numpy()
    return np.where(np.isfinite(found), found, np.nan)


def first(name: str, seed: int) -> np.ndarray:
    sequences: np.ndarray = function_of(name, seed).initial_solution(BATCH).numpy()
    return sequences


# --- methods ---------------------------------------------------------------------------------------------------------


class Genetic:
    """A genetic algorithm."""

    def __init__(self, name: str, seed: int):
        self.states, self.rng = FUNCTIONS[name][0], np.random.default_rng(seed)
        self.known: list[tuple[float, tuple[int, ...]]] = []

    def tell(self, sequences: np.ndarray, values: np.ndarray) -> None:
        self.known += zip(np.nan_to_num(values).tolist(), map(tuple, sequences.tolist()), strict=True)

    def ask(self) -> np.ndarray:
        seen = {sequence for _, sequence in self.known}
        parents = np.array([each for _, each in sorted(self.known, reverse=True)[:BATCH]])
        made: list[tuple[int, ...]] = []
        while len(made) < BATCH:
            one, other = parents[self.rng.integers(len(parents), size=2)]
            child = np.where(self.rng.random(len(one)) < 0.5, one, other)
            changed = self.rng.random(len(one)) < 1 / len(one)
            child = np.where(changed, self.rng.integers(self.states, size=len(one)), child)
            if (sequence := tuple(child.tolist())) not in seen:
                seen.add(sequence)
                made.append(sequence)
        return np.array(made)


class Tpe:
    """Optuna's TPE."""

    def __init__(self, name: str, seed: int):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        states, positions, _ = FUNCTIONS[name]
        self.optuna, self.asked = optuna, []
        choice = optuna.distributions.CategoricalDistribution(range(states))
        self.space = {f"position_{place:02}": choice for place in range(positions)}
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self.study = optuna.create_study(sampler=sampler, direction="maximize")

    def tell(self, sequences: np.ndarray, values: np.ndarray) -> None:
        if self.asked:
            for trial, value in zip(self.asked, np.nan_to_num(values).tolist(), strict=True):
                self.study.tell(trial, value)
            return
        for sequence, value in zip(sequences.tolist(), np.nan_to_num(values).tolist(), strict=True):
            params = dict(zip(self.space, sequence, strict=True))
            self.study.add_trial(self.optuna.trial.create_trial(params=params, distributions=self.space, value=value))

    def ask(self) -> np.ndarray:
        self.asked = [self.study.ask(self.space) for _ in range(BATCH)]
        return np.array([[trial.params[each] for each in self.space] for trial in self.asked])


class Convolution(nn.Module):
    """Two convolutions over positions; of what they find, where it is clearest.

    Args:
        states: letters.
        outputs: of the network.
    """

    def __init__(self, states: int, outputs: int):
        super().__init__()
        self.states = states
        layers = [nn.Conv1d(states, 64, 7, padding=3), nn.ReLU(), nn.Conv1d(64, 64, 7, padding=3), nn.ReLU()]
        self.motifs, self.score = nn.Sequential(*layers), nn.Linear(64, outputs)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.motifs(x.unflatten(-1, (-1, self.states)).mT)
        score: Tensor = self.score(found.amax(-1))
        return score


class Deepbore:
    """A study, with the default or a convolution."""

    def __init__(self, name: str, seed: int, with_network: bool):
        states, positions, _ = FUNCTIONS[name]
        space = {f"position_{place:02}": deepbore.Categorical(list(range(states))) for place in range(positions)}
        settings: dict[str, Any] = {}
        if with_network:
            settings["classifier"] = deepbore.DeepEnsemble(
                members=3, network=lambda _, outputs: Convolution(states, outputs)
            )
        self.study = deepbore.Study(space, direction="maximize", seed=seed, n_initial=BATCH, **settings)
        self.names, self.asked = list(space), []

    def tell(self, sequences: np.ndarray, values: np.ndarray) -> None:
        if not self.asked:
            self.study.add(dict(zip(self.names, sequences.T.tolist(), strict=True)), values)
            return
        for trial, value in zip(self.asked, values.tolist(), strict=True):
            if np.isnan(value):
                self.study.tell(trial, failed=True)
            else:
                self.study.tell(trial, value)

    def ask(self) -> np.ndarray:
        self.asked = self.study.ask(BATCH)
        return np.array([[trial.params[each] for each in self.names] for trial in self.asked])


def made(method: str, name: str, seed: int) -> Genetic | Tpe | Deepbore:
    if method == "genetic":
        return Genetic(name, seed)
    return Tpe(name, seed) if method == "optuna-tpe" else Deepbore(name, seed, method == "convolution")


# --- rows ------------------------------------------------------------------------------------------------------------


def run(function: str, seed: int, method: str) -> Row:
    """The best value after each batch."""
    started, search = time.process_time(), made(method, function, seed)
    sequences, best, reached = first(function, seed), 0.0, []
    for _ in range(AT[-1] // BATCH):
        values = values_of(function, seed, sequences)
        best = max(best, float(np.nan_to_num(values).max()))
        reached.append(round(best, 4))
        search.tell(sequences, values)
        sequences = search.ask() if len(reached) < AT[-1] // BATCH else sequences
    return {"best": reached, "seconds": round(time.process_time() - started, 1), "version": deepbore.__version__}


def show(kept: list[Row]) -> None:
    """Means of the best value, and the values of all seeds at the end."""
    for function in FUNCTIONS:
        print(f"\n| {function} | " + " | ".join(f"after {at}" for at in AT) + " | every seed at the end | CPU s |")
        print("|---|" + "---|" * (len(AT) + 2))
        for method in METHODS:
            mine = [row for row in kept if (row["function"], row["method"]) == (function, method)]
            if mine:
                best = np.array([row["best"] for row in mine])
                cells = [f"{best[:, at // BATCH - 1].mean():.2f}" for at in AT]
                last = " ".join(f"{each:.2f}" for each in best[:, -1])
                seconds = np.mean([row["seconds"] for row in mine])
                print(f"| {method} | " + " | ".join(cells) + f" | {last} | {seconds:.0f} |")


if __name__ == "__main__":
    measure_or_show(__doc__, grid(function=FUNCTIONS, seed=SEEDS, method=METHODS), run, show)
