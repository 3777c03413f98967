#!/usr/bin/env python
"""How many of the best hundred molecules are found where 6 % of a library are tested: Enamine 10k.

    python scripts/library.py docs/results/library.jsonl                     # resumable
    python scripts/library.py docs/results/library.jsonl --show              # the tables only
    python scripts/library.py FILE --data FOLDER --methods random deepbore   # other data, or some methods only
    python scripts/library.py docs/results/library_scale.jsonl --scale 1000000    # time and memory of one round

The data are not in this repository: FOLDER has `enamine10k_scores.csv.gz`, 10 449 molecules of Enamine's diversity set
with their docking scores against thymidylate kinase, from data/ of github.com/coleygroup/molpal (MIT licence, David
Graff; Graff, Shakhnovich & Coley, Chemical Science 2021). RDKit makes the fingerprints, atom pairs in 2048 bits.

One per cent is drawn at random, the same for all methods; then come five rounds of one per cent. A row has after each
round the share of the best hundred that is found: of all molecules with a score at or below the hundredth.

random              without a model
forest              MolPAL's random forest: 100 trees of depth 8; the best means
network             MolPAL's network: 2 layers of 100, ReLU, L2 of .01, Adam with .01, at most 50 epochs of one batch,
                    early stopping by a fifth of the rows; the best means
gp-ei, gp-thompson  GPyTorch's exact GP with the Tanimoto kernel, hyperparameters by Adam: the largest expected
                    improvements; or the best of 104 samples, each of all molecules
gp-ei-counts        gp-ei with how often an atom pair is there in place of whether it is, by the MinMax kernel
deepbore            the default for a `Library`: `LibraryPLS`, the best upper bounds chosen by `BelieverBatch`
deepbore-counts     the same with such counts
deepbore-mean, -ei, -thompson, -penalised     with another acquisition, or another batch
deepbore-ensemble, -dropout, -laplace, -forest    `DeepEnsemble`, `MCDropout`, `LaplaceGGN`, `RandomForest` in place of
                    the kernel, on counts
"""

import csv
import gzip
import json
import os
import resource
import tempfile
import time
import warnings
from collections.abc import Callable
from copy import copy
from functools import cache, cached_property
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import deepbore
from harness.measuring import Row, complete, grid, of_one_file, rows

HERE = Path(__file__).parent
DATA = HERE.parent.parent / "shared" / "data"
SEEDS, BATCH, ROUNDS, BEST = range(10), 104, 5, 100
SHARE = 0.01  # of the best, of which a study estimates how many are found


class Molecules:
    """Scores and fingerprints.

    Args:
        file: a .csv.gz with SMILES and scores.
    """

    def __init__(self, file: Path):
        with gzip.open(file, "rt", newline="") as lines:
            _, *found = csv.reader(lines)
        self.smiles, self.scores = [row[0] for row in found], np.array([float(row[1]) for row in found])
        self.are_best = self.scores <= np.sort(self.scores)[BEST - 1]
        kept = Path(tempfile.gettempdir()) / f"deepbore-{file.stem}.npy"
        if not kept.exists():
            np.save(kept, self._counts())
        self.counts = np.load(kept)
        self.bits = self.counts > 0

    def __len__(self) -> int:
        return len(self.scores)

    def _counts(self) -> np.ndarray:
        from rdkit import Chem
        from rdkit.Chem import rdFingerprintGenerator

        generator = rdFingerprintGenerator.GetAtomPairGenerator(fpSize=2048, countSimulation=False)
        made = [generator.GetCountFingerprintAsNumPy(Chem.MolFromSmiles(each)) for each in self.smiles]
        return np.array(made).clip(max=127).astype(np.int8)

    @cached_property
    def similarity(self) -> np.ndarray:
        """Tanimoto similarities, all with all."""
        bits = self.bits.astype(np.float32)
        both, size = bits @ bits.T, bits.sum(1)
        return both / (size[:, None] + size - both)

    @cached_property
    def counted(self) -> "Molecules":
        """The same molecules, with MinMax similarities of their counts."""
        counts, other = torch.from_numpy(self.counts).float(), copy(self)
        size = counts.sum(1)
        apart = torch.cdist(counts, counts, p=1)
        vars(other)["similarity"] = ((size[:, None] + size - apart) / (size[:, None] + size + apart)).numpy()
        return other

    @cached_property
    def root(self) -> np.ndarray:
        """A Cholesky factor of the similarities."""
        return np.linalg.cholesky(self.similarity + 1e-3 * np.eye(len(self), dtype=np.float32))


@cache
def molecules_in(data: Path) -> Molecules:
    return Molecules(data / "enamine10k_scores.csv.gz")


# --- others ----------------------------------------------------------------------------------------------------------

Merit = Callable[[Molecules, np.ndarray, int], np.ndarray]  # of all molecules, from the tested ones


def forest(molecules: Molecules, tested: np.ndarray, seed: int) -> np.ndarray:
    from sklearn.ensemble import RandomForestRegressor

    model = RandomForestRegressor(100, max_depth=8, random_state=seed)
    return -model.fit(molecules.bits[tested], molecules.scores[tested]).predict(molecules.bits)


def network(molecules: Molecules, tested: np.ndarray, seed: int) -> np.ndarray:
    torch.manual_seed(seed)
    scores = molecules.scores[tested]
    x = torch.from_numpy(molecules.bits).float()
    z = torch.from_numpy((scores.mean() - scores) / scores.std()).float()
    last = int(0.8 * len(tested))
    layers = [torch.nn.Linear(2048, 100), torch.nn.Linear(100, 100), torch.nn.Linear(100, 1)]
    for layer in layers:  # as Keras begins
        torch.nn.init.xavier_uniform_(layer.weight)
        torch.nn.init.zeros_(layer.bias)
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    adam = torch.optim.Adam(net.parameters(), lr=0.01, eps=1e-7)

    def loss(rows: np.ndarray, labels: torch.Tensor) -> torch.Tensor:
        penalty = sum(layer.weight.square().sum() for layer in layers[:2])
        return (net(x[rows])[:, 0] - labels).square().mean() + 0.01 * penalty

    least, kept, waited = np.inf, net.state_dict(), 0
    for epoch in range(50):
        adam.zero_grad()
        loss(tested[:last], z[:last]).backward()
        adam.step()
        if epoch % 2:
            with torch.no_grad():
                reached = float(loss(tested[last:], z[last:]))
            least, waited, is_best = min(least, reached), waited + 1, reached < least
            if is_best:
                kept, waited = {name: each.clone() for name, each in net.state_dict().items()}, 0
            if waited >= 5:
                break
    net.load_state_dict(kept)
    with torch.no_grad():
        return net(x)[:, 0].numpy()


def fitted_gp(molecules: Molecules, tested: np.ndarray) -> tuple[np.ndarray, float, float, float]:
    """Standardised labels, and the mean, amplitude and noise that GPyTorch learns."""
    import gpytorch

    class Tanimoto(gpytorch.kernels.Kernel):
        def forward(self, one, other, diag=False, **_):
            found = torch.from_numpy(molecules.similarity)[one[:, 0].long()][:, other[:, 0].long()]
            return found.diagonal() if diag else found

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x, z, likelihood):
            super().__init__(x, z, likelihood)
            self.mean, self.kernel = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(Tanimoto())

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    scores = molecules.scores[tested]
    z = (scores.mean() - scores) / scores.std()
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    x, labels = torch.from_numpy(tested)[:, None].float(), torch.from_numpy(z).float()
    model = Model(x, labels, likelihood)
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    adam = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(60):
        adam.zero_grad()
        (-evidence(model(x), labels)).backward()
        adam.step()
    return z, float(model.mean.constant), float(model.kernel.outputscale), float(likelihood.noise)


def expected_improvement(molecules: Molecules, tested: np.ndarray, _seed: int) -> np.ndarray:
    from scipy.stats import norm

    z, mean, amplitude, noise = fitted_gp(molecules, tested)
    k = amplitude * molecules.similarity[:, tested].astype(float)
    root = np.linalg.inv(np.linalg.cholesky(k[tested] + noise * np.eye(len(tested))))
    found, std = (
        mean + k @ (root.T @ (root @ (z - mean))),
        np.sqrt(np.maximum(amplitude - ((k @ root.T) ** 2).sum(1), 1e-9)),
    )
    gain = (found - z.max()) / std
    return std * (gain * norm.cdf(gain) + norm.pdf(gain))


def expected_improvement_of_counts(molecules: Molecules, tested: np.ndarray, seed: int) -> np.ndarray:
    return expected_improvement(molecules.counted, tested, seed)


def thompson(molecules: Molecules, tested: np.ndarray, seed: int) -> np.ndarray:
    """Ranks, from samples of the prior that are moved by the data (Wilson et al., pathwise conditioning, 2021)."""
    z, mean, amplitude, noise = fitted_gp(molecules, tested)
    rng = np.random.default_rng(seed)
    prior = np.sqrt(amplitude) * molecules.root @ rng.standard_normal((len(molecules), BATCH)).astype(np.float32)
    k = amplitude * molecules.similarity[:, tested].astype(float)
    gap = (z - mean)[:, None] - prior[tested] - np.sqrt(noise) * rng.standard_normal((len(tested), BATCH))
    samples = prior + k @ np.linalg.solve(k[tested] + noise * np.eye(len(tested)), gap)
    samples[tested] = -np.inf
    merit = np.full(len(molecules), -np.inf)
    for place in range(BATCH):
        best = samples[:, place].argmax()
        merit[best], samples[best] = -place, -np.inf
    return merit


def chance(molecules: Molecules, _tested: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random(len(molecules))


OTHERS: dict[str, Merit] = {
    "random": chance,
    "forest": forest,
    "network": network,
    "gp-ei": expected_improvement,
    "gp-ei-counts": expected_improvement_of_counts,
    "gp-thompson": thompson,
}


def by_others(molecules: Molecules, merit: Merit, tested: np.ndarray, seed: int) -> Row:
    found = []
    for number in range(ROUNDS):
        values = merit(molecules, tested, 100 * seed + number).copy()
        values[tested] = -np.inf
        tested = np.append(tested, np.argsort(-values, kind="stable")[:BATCH])
        found.append(share(molecules, tested))
    return {"found": found}


# --- deepbore --------------------------------------------------------------------------------------------------------


def settings_of(method: str) -> dict[str, object]:
    kind = method.removeprefix("deepbore").removeprefix("-")
    if kind == "ei":
        return {"acquisition": deepbore.LogExpectedImprovement()}
    if kind == "thompson":
        return {"candidates": deepbore.ThompsonBatch(deepbore.LibrarySearch())}
    if kind == "penalised":
        return {"candidates": deepbore.GreedyBatch(deepbore.LibrarySearch())}
    if kind == "mean":
        return {"acquisition": deepbore.ClassProbability()}
    return {"classifier": HEADS[kind]()} if kind in HEADS else {}


HEADS = {
    "ensemble": deepbore.DeepEnsemble,
    "dropout": deepbore.MCDropout,
    "laplace": deepbore.LaplaceGGN,
    "forest": deepbore.RandomForest,
}
VARIANTS = ("counts", "mean", "ei", "thompson", "penalised", *HEADS)
OURS = ("deepbore", *(f"deepbore-{variant}" for variant in VARIANTS))
METHODS = (*OTHERS, *OURS)


def by_deepbore(molecules: Molecules, method: str, tested: np.ndarray, seed: int) -> Row:
    on_counts = method.removeprefix("deepbore-") in ("counts", *HEADS)
    features = molecules.counts if on_counts else molecules.bits
    study = deepbore.Study({"molecule": deepbore.Library(features)}, seed=seed, **settings_of(method))
    study.add({"molecule": tested.tolist()}, molecules.scores[tested])
    found = []
    for _ in range(ROUNDS):
        for trial in study.ask(BATCH):
            study.tell(trial, molecules.scores[trial.params["molecule"]])
        found.append(share(molecules, np.array([trial.params["molecule"] for trial in study.trials])))
    return {"found": found}


# --- rows ------------------------------------------------------------------------------------------------------------


def share(molecules: Molecules, tested: np.ndarray) -> float:
    """The share of the best hundred among the tested ones, which are distinct."""
    assert len(set(tested.tolist())) == len(tested)
    return round(float(molecules.are_best[tested].sum() / molecules.are_best.sum()), 4)


def run(method: str, seed: int, data: Path = DATA) -> Row:
    """What a row says of one run."""
    molecules, started = molecules_in(data), time.process_time()
    tested = np.random.default_rng(seed).permutation(len(molecules))[:BATCH]
    made = (
        by_others(molecules, OTHERS[method], tested, seed)
        if method in OTHERS
        else by_deepbore(molecules, method, tested, seed)
    )
    return {**made, "seconds": round(time.process_time() - started, 1), "version": deepbore.__version__}


def show(kept: list[Row]) -> None:
    """The mean share of the best hundred after each round, with its standard error."""
    print("| | " + " | ".join(f"{2 + number} %" for number in range(ROUNDS)) + " | seeds | CPU s |")
    print("|---|" + "---|" * (ROUNDS + 2))
    for method in METHODS:
        mine = [row for row in kept if row["method"] == method]
        if mine:
            found = np.array([row["found"] for row in mine])
            error = found.std(0, ddof=1) / np.sqrt(len(mine)) if len(mine) > 1 else np.zeros(ROUNDS)
            cells = [f"{mean:.3f} ± {each:.3f}" for mean, each in zip(found.mean(0), error, strict=True)]
            seconds = np.mean([row["seconds"] for row in mine])
            print(f"| {method} | " + " | ".join(cells) + f" | {len(mine)} | {seconds:.0f} |")


# --- scale -----------------------------------------------------------------------------------------------------------


def scale(levels: int, tested: int = 1000, batch: int = 10_000) -> Row:
    """Time and memory of one round in a library of random bits, read from a file."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bits.npy"
        packed = np.lib.format.open_memmap(path, "w+", np.uint8, (levels, 256))
        for start in range(0, levels, 10_000):
            count = min(10_000, levels - start)
            packed[start : start + count] = np.packbits(rng.random((count, 2048), dtype=np.float32) < 0.11, axis=1)
        packed.flush()
        del packed
        study = deepbore.Study({"molecule": deepbore.Library(path)}, seed=0)
        known = rng.permutation(levels)[:tested]
        study.add({"molecule": known.tolist()}, rng.standard_normal(tested))
        before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        asked = len(study.ask(batch))
        seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "levels": levels, "tested": tested, "asked": asked, "seconds": round(seconds, 1),
        "seconds_per_million": round(seconds * 1e6 / levels, 1), "peak_mb": peak // 1024, "before_mb": before // 1024,
        "version": deepbore.__version__,
    }  # fmt: skip


def main() -> None:
    parser = of_one_file(__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the scores")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many")
    parser.add_argument("--scale", type=int, help="one round in so many levels; its row is added to the file")
    parser.add_argument("--tested", type=int, default=1000, help="beside --scale: levels that are known")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.scale:
        row = scale(given.scale, given.tested)
        with given.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row)
        return
    wanted = grid(seed=range(given.seeds), method=given.methods)
    show(rows(given.file) if given.show else complete(given.file, wanted, lambda **row: run(data=given.data, **row)))


if __name__ == "__main__":
    main()
