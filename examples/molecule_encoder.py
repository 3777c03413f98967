"""A network of your own reads molecules: atoms and bonds are tensors, and messages pass along the bonds.

    python examples/molecule_encoder.py --trials 200

The library has a row of whole numbers for each molecule: the kind of each of up to 12 atoms, 0 where there is none, and
a 12 x 12 table of bonds. Whole numbers of which most are 0 reach a network as they are. The molecules here are made up,
trees of carbon, nitrogen and oxygen; with RDKit the rows are `[atom.GetAtomicNum() for atom in molecule.GetAtoms()]`
and `Chem.GetAdjacencyMatrix(molecule)`, filled up with zeros.
"""

import argparse

import numpy as np
import torch
from torch import Tensor, nn

from deepbore import DeepEnsemble, Library, Study, Training

ATOMS, KINDS, BATCH = 12, 4, 40  # kinds: none, C, N, O


def made_up(count: int) -> np.ndarray:
    """Rows of atoms and bonds, count x (12 + 144)."""
    rng, rows = np.random.default_rng(0), np.zeros((count, ATOMS + ATOMS**2), np.int8)
    for row in rows:
        size = int(rng.integers(6, ATOMS + 1))
        row[:size] = rng.choice([1, 1, 1, 2, 3], size)
        bonds = row[ATOMS:].reshape(ATOMS, ATOMS)
        for atom in range(1, size):
            other = int(rng.integers(max(0, atom - 3), atom))
            bonds[atom, other] = bonds[other, atom] = 1
    return rows


class MessagePassing(nn.Module):
    """Each atom hears what its neighbours are, three times; a molecule is the sum of its atoms."""

    def __init__(self, features: int, outputs: int, width: int = 32):
        super().__init__()
        assert features == ATOMS + ATOMS**2
        self.kind = nn.Embedding(KINDS, width, padding_idx=0)
        self.heard = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3))
        self.score = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        atoms, bonds = x[:, :ATOMS].long(), x[:, ATOMS:].unflatten(-1, (ATOMS, ATOMS))
        state, exists = self.kind(atoms), (atoms > 0)[..., None]
        for layer in self.heard:
            state = state + torch.relu(layer(torch.cat([state, bonds @ state], -1))) * exists
        score: Tensor = self.score(state.sum(1) / ATOMS)
        return score


def values_of(rows: np.ndarray) -> np.ndarray:
    """What is looked for: bonds between nitrogen and oxygen, and few atoms else."""
    atoms, bonds = rows[:, :ATOMS], rows[:, ATOMS:].reshape(-1, ATOMS, ATOMS)
    return np.einsum("ni,nij,nj->n", atoms == 2, bonds, atoms == 3) - 0.1 * (atoms > 0).sum(1)


def main() -> None:
    """Tests molecules of the library, and counts hits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    n_trials = parser.parse_args().trials

    rows = made_up(4000)
    values = values_of(rows)
    model = DeepEnsemble(members=3, network=MessagePassing, training=Training(steps=100))
    study = Study({"molecule": Library(rows)}, direction="maximize", classifier=model, n_initial=BATCH, seed=0)
    while len(study.trials) < n_trials:
        for trial in study.ask(min(BATCH, n_trials - len(study.trials))):
            study.tell(trial, float(values[trial.params["molecule"]]))
    best = np.argsort(-values, kind="stable")[:100]
    found = {trial.params["molecule"] for trial in study.trials} & set(best.tolist())
    print(f"{len(found)} of the best 100 among {len(study.trials)} of {len(rows)} molecules")


if __name__ == "__main__":
    main()
