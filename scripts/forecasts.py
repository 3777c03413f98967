#!/usr/bin/env python
"""How good the probabilities of deep heads are on points that were not learned, as they are and calibrated.

    python scripts/forecasts.py docs/results/forecasts.jsonl            # what is not there yet
    python scripts/forecasts.py docs/results/forecasts.jsonl --show     # the table only

A run of a head as it is shipped on a shifted function of development. After n trials it predicts the labels of the next
fifteen, which nobody has evaluated, and of 512 points all over the space. A row has the Brier score and the log score
(mean cross-entropy) of both, for

    as scored       the sigmoids of the logits
    supported       as they are reported: no more than n rows support, (n p + 1) / (n + 2)
    temperature     the logits divided by what suits the forecasts of the last 64 trials, each made before it was told
    calibrated      `Calibrated` around a head that learns the same rows anew

`said` and `true` are the shares of the 512 points with a probability, or a label, between .01 and .99.
"""

import copy
import os
from collections import defaultdict
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import Tensor

import deepbore as db
import heads
from deepbore.classifiers import Calibrated
from deepbore.classifiers.posterior import Posterior, supported
from deepbore.labels import LabelledBatch, LabelledObservations
from deepbore.labels.grade import graded_by_value
from deepbore.testing import fit
from harness.measuring import Row, grid, measure_or_show

heads.Shifted.STREAM = 7  # functions of development
NUMBERS, AHEAD, LAST = (30, 45, 60), 15, 64
NAMES = ("MLPClassifier", "DeepEnsemble", "MCDropout", "HyperDeepEnsemble")
FUNCTIONS = ("branin-2", "rosenbrock-4", "ackley-5")
TEMPERATURES = torch.logspace(0, 3, 61, dtype=torch.float64)
VARIANTS = ("as scored", "supported", "temperature", "calibrated")
WANTED = grid(seed=range(2), function=FUNCTIONS, head=NAMES)


def forecasting(name: str, forecasts: dict[int, Tensor]) -> Any:
    """A head that keeps what its members say of each trial before they learn it (m numbers, by row)."""
    cls: Any = getattr(db, name)

    class Forecasting(cls):  # type: ignore[misc]
        known = 0

        def before_training(self, batch: LabelledBatch) -> LabelledBatch:
            with torch.no_grad():
                said = self.member_outputs(self.encode(batch.points[self.known :])).mean(-1).double()
            forecasts.update(enumerate(said.T if self.known else [], self.known))
            self.known = len(batch)
            learned: LabelledBatch = super().before_training(batch)
            return learned

    return Forecasting()


def mean_probability(scores: Tensor, temperature: float = 1.0) -> Tensor:
    """Logits of members (m x n) -> n."""
    return (scores / temperature).sigmoid().mean(0)


def cross_entropy(p: Tensor, z: Tensor) -> float:
    """The mean over n points, of probabilities that are 1e-9 at least."""
    p = p.double().clamp(1e-9, 1 - 1e-9)
    return float(-(z * p.log() + (1 - z) * (1 - p).log()).mean())


def best_temperature(scores: Tensor, z: Tensor) -> float:
    """The one that suits logits of members (m x n) and labels (n) best."""
    losses = [cross_entropy(mean_probability(scores, float(each)), z) for each in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def labels(study: db.Study, n: int) -> Callable[[Tensor], Tensor]:
    """The function from values to labels after n trials."""
    values = torch.tensor([trial.value for trial in study.trials[:n]], dtype=torch.float64)
    best, tau = values.min(), values.sort().values[(n + 1) // 2 - 1]
    return lambda of: graded_by_value(of.clone(), best, tau, db.ValueGradedLabels().tail)


def of_members(posterior: Posterior) -> Tensor:
    """Logits, m x n."""
    return (posterior.mean[None] if posterior.members is None else posterior.members).double()


def scored(p: Tensor, z: Tensor) -> Row:
    """What a row says of predictions (n) of labels (n)."""
    return {"brier": float((p.double() - z).square().mean()), "log": cross_entropy(p, z)}


@torch.no_grad()
def compared(study: db.Study, head: Any, name: str, n: int, told: dict[int, Tensor], solved: Any) -> Row:
    """The scores after n trials, of a copy of the head that has learned them."""
    points, values = study.observations.points, study.observations.values[:, 0]
    space = study.space.points.sobol(512, seed=5)
    of_space = torch.tensor([solved(params) for params in study.space.decode(space)], dtype=torch.float64)
    rows = [row for row in sorted(told) if row < n][-LAST:]
    temperature = best_temperature(torch.stack([told[row] for row in rows], 1), labels(study, n)(values[rows]))
    with torch.enable_grad():
        data = LabelledObservations(study.observations.part(torch.arange(n)), db.ValueGradedLabels())
        again = fit(Calibrated(getattr(db, name)()), data, epochs=10)
    found: Row = {"n": n, "temperature": round(temperature, 1)}
    ahead = slice(n, n + AHEAD)
    for what, x, z in (
        ("proposals", points[ahead], labels(study, n + AHEAD)(values[ahead])),
        ("space", space, labels(study, n)(of_space)),
    ):
        scores = of_members(head.posterior(x))
        said = {
            "as scored": mean_probability(scores),
            "supported": supported(mean_probability(scores), torch.tensor(n)),
            "temperature": mean_probability(scores, temperature),
            "calibrated": again.probability(x),
        }
        found[what] = {variant: scored(p, z) for variant, p in said.items()}
        if what == "space":
            p = said["as scored"]
            found["said"] = float(((p > 0.01) & (p < 0.99)).double().mean())
            found["true"] = float(((z > 0.01) & (z < 0.99)).double().mean())
    return found


def measured(function: str, seed: int, head: str) -> Row:
    """One run, looked at after each of the numbers of trials."""
    torch.set_num_threads(1)
    solved, told = heads.Shifted(function, seed), dict[int, Tensor]()
    study = db.Study(solved.space, seed=seed, classifier=forecasting(head, told))
    copies = {}
    for number in range(max(NUMBERS) + AHEAD):
        (trial,) = study.ask()
        if number in NUMBERS:
            copies[number] = copy.deepcopy(study.classifier)
        study.tell(trial, solved(trial.params))
    return {"at": [compared(study, copies[n], head, n, told, solved) for n in NUMBERS]}


def show(kept: list[Row]) -> None:
    """Means over all rows and numbers of trials."""
    looked = [each for row in kept for each in row["at"]]
    print("| | next 15: Brier | next 15: log score | space: Brier | space: log score |\n|---|---|---|---|---|")
    for variant in VARIANTS:
        cells = [
            np.mean([at[where][variant][by] for at in looked])
            for where in ("proposals", "space")
            for by in ("brier", "log")
        ]
        print(f"| {variant} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    shares = defaultdict(list)
    for at in looked:
        shares[at["n"]].append((at["true"], at["said"], at["temperature"]))
    for n, found in shares.items():
        true, said, temperature = np.median(found, axis=0)
        print(
            f"after {n}: labels between .01 and .99 {true:.0%} of the space, probabilities {said:.0%}; "
            f"median temperature {temperature:.3g}"
        )


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, measured, show)
