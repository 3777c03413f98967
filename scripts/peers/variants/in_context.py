"""A variant that forecasts labels from the rows at hand, by a transformer trained once on random functions.

That is done when it is first needed, and takes half an hour; its weights are kept beside this file. docs/ablation.md
has what came of it ("The last leads").
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import deepbore as db
from deepbore.classifiers import Classifier, Link
from deepbore.classifiers.kernel.kernels import LENGTH_SCALE, ScaledKernel, matern52
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch
from deepbore.labels.grade import graded_by_value
from deepbore.space.features import Coordinates
from peers.variants.heads import Marginals

WEIGHTS = Path(__file__).parent / ".in_context.pt"
COORDINATES, ROWS, QUERIES = 10, 100, 50  # at most; those of smaller spaces are filled up with zeros
FUNCTIONS, STEPS, RATE = 16, 5_000, 5e-4  # functions a step, and the highest learning rate
TAIL = 0.5  # of `ValueGradedLabels`
MOST = 2.0  # the highest label of a query: how much better than the best row it may be
LOG_STD = (-5.0, 1.0)  # least and greatest


class Forecaster(nn.Module):
    """A transformer from labelled rows and unlabelled queries to a Gaussian for the label of each query.

    Rows see each other, queries see the rows alone: what is said of a query depends on no other one, and the order of
    the rows says nothing.

    Args:
        width: of a token.
        layers: of attention, each with a perceptron behind it.
        heads: of each attention.

    References:
        Mueller, Hollmann, Pineda Arango, Grabocka & Hutter, Transformers can do Bayesian inference, ICLR 2022.
    """

    def __init__(self, width: int = 128, layers: int = 5, heads: int = 4):
        super().__init__()
        self.heads = heads
        self.place, self.label = nn.Linear(COORDINATES + 1, width), nn.Linear(1, width)
        self.attention = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.merging = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.perceptron = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(layers)
        )
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers + 1))
        self.answer = nn.Linear(width, 2)

    def forward(self, x: Tensor, z: Tensor, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (b x n x c), their labels (b x n) and queries (b x q x c) -> means and deviations (b x q each)."""
        n = x.shape[1]
        tokens = self.place(padded(torch.cat([x, queries], dim=1)))
        tokens = torch.cat([tokens[:, :n] + self.label(z[..., None]), tokens[:, n:]], dim=1)
        for norm, attention, merging, perceptron in zip(
            self.norm, self.attention, self.merging, self.perceptron, strict=False
        ):
            asked, key, value = attention(norm(tokens)).unflatten(-1, (3 * self.heads, -1)).transpose(1, 2).chunk(3, 1)
            seen = scaled_dot_product_attention(asked, key[:, :, :n], value[:, :, :n])
            tokens = tokens + merging(seen.transpose(1, 2).flatten(-2))
            tokens = tokens + perceptron(tokens)
        mean, log_std = self.answer(self.norm[-1](tokens[:, n:])).unbind(-1)
        return mean, log_std.clamp(*LOG_STD).exp()


def padded(x: Tensor) -> Tensor:
    """Coordinates (... x c) around 0, filled up to the network's number, and how many there are (... x (10 + 1))."""
    c = x.shape[-1]
    centred = nn.functional.pad(2 * x - 1, (0, COORDINATES - c))
    return torch.cat([centred, torch.full_like(x[..., :1], c / COORDINATES)], dim=-1)


@dataclass(frozen=True)
class Functions:
    """Random functions at random places: what the transformer learns from.

    Attributes:
        x: places of the rows, b x n x c.
        z: their labels, b x n.
        queries: b x q x c.
        answers: the labels there, without noise, b x q.
    """

    x: Tensor
    z: Tensor
    queries: Tensor
    answers: Tensor


def drawn(count: int, generator: torch.Generator) -> Functions:
    """Functions in the unit cube of 1 to 10 dimensions, at 4 to 100 rows as a search leaves them behind.

    Each is a Gaussian process with the length scales of `KernelPLS`'s prior, and mostly a bowl, around whose bottom
    half of the rows lie. Some are stretched by an exponential, and some rows are noisy.
    """

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, dtype=torch.float64, generator=generator)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=torch.float64, generator=generator)

    c = int(torch.randint(1, COORDINATES + 1, (), generator=generator))
    n = int(4 * (ROWS / 4) ** float(uniform()))
    bottom, reach = uniform(count, 1, c), 0.3 * uniform(count, 1, 1).square() + 0.01
    around = bottom + reach * normal(count, n + QUERIES, c)
    near = (uniform(count, n + QUERIES, 1) < 0.5) & (torch.arange(n + QUERIES)[:, None] > min(n // 2, 10))
    x = torch.where(near, around.clamp(0, 1), uniform(count, n + QUERIES, c))
    mean, spread = LENGTH_SCALE[0] + 0.5 * math.log(c), LENGTH_SCALE[1]
    scale = (-mean - spread * normal(count, 1, c)).exp()
    one = torch.ones((), dtype=torch.float64)
    covariance = torch.stack([ScaledKernel(matern52, s[0], one)(p, p) for p, s in zip(x, scale, strict=True)])
    root = torch.linalg.cholesky(covariance + 1e-6 * torch.eye(n + QUERIES, dtype=torch.float64))
    y = (root @ normal(count, n + QUERIES, 1)).squeeze(-1)
    steep = 10 * uniform(count, 1).square() * (uniform(count, 1) < 0.7)
    y = y + steep * ((x - bottom).square() * (2 * scale.log()).clamp(-3, 3).exp() / c).sum(-1)
    y = (y - y.mean(-1, keepdim=True)) / y.std(-1, keepdim=True)
    y = torch.where(uniform(count, 1) < 0.3, y.exp(), y)
    noise = y.std(-1, keepdim=True) * 10 ** (-3 * uniform(count, 1)) * (uniform(count, 1) < 0.3)
    seen = y[:, :n] + noise * normal(count, n)
    best, tau = seen.min(-1, keepdim=True).values, seen.median(-1, keepdim=True).values
    z = graded_by_value(seen, best, tau, TAIL)
    span = (tau - best).clamp(min=1e-12)  # half of the rows may be alike, to the last digit
    further = (best - y[:, n:]).clamp(min=0) / span / (1 + TAIL)  # labels beyond 1, on the same line
    answers = (graded_by_value(y[:, n:], best, tau, TAIL) + further).clamp(max=MOST)
    return Functions(x[:, :n].float(), z.float(), x[:, n:].float(), answers.float())


def trained(steps: int = STEPS, seed: int = 0, report: Callable[[str], object] = print) -> Forecaster:
    """A transformer after so many steps of Adam on the log score of its forecasts, the rate falling as a cosine."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    network = Forecaster()
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps + 1, pct_start=0.05)
    mean = 0.0
    for step in range(steps):
        functions = drawn(FUNCTIONS, generator)
        forecast, std = network(functions.x, functions.z, functions.queries)
        loss = nn.functional.gaussian_nll_loss(forecast, functions.answers, std.square())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        mean += (float(loss.detach()) - mean) / (step % 200 + 1)
        if step % 200 == 199:
            report(f"{step + 1} of {steps} steps: negative log score {mean:.3f}")
            mean = 0.0
    return network.eval().requires_grad_(False)


def at_hand() -> Forecaster:
    """The transformer, trained if that has not been done yet."""
    if not WEIGHTS.exists():
        torch.save(trained().state_dict(), WEIGHTS)
    network = Forecaster()
    network.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return network.eval().requires_grad_(False)


class InContext(Classifier):
    """Says what the transformer says of the rows at hand: there is nothing to fit.

    Args:
        network: trained; None for the one at hand.
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std"})
    distance_aware = True

    def __init__(self, network: Forecaster | None = None):
        super().__init__()
        self.network = network or at_hand()

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        self.coordinates = Coordinates(space.points)
        if self.coordinates.size > COORDINATES:
            raise SettingError(f"the transformer knows {COORDINATES} coordinates, not {self.coordinates.size}.")

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(ROWS, self.generator)
        self.x, self.z = self.coordinates(batch.points).float()[None], batch.z.float().mean(-1)[None]
        self.lightning_optimizer().step()  # Lightning counts it, and so writes checkpoints
        return {"rows": float(len(batch))}

    def posterior(self, points: Tensor) -> Marginals:
        mean, std = self.network(self.x, self.z, self.coordinates(points).float()[None])
        return Marginals(mean[0].to(points), std[0].to(points), self.link)


def in_context() -> dict[str, object]:
    searched = {"acquisition": db.LogExpectedImprovement(), "candidates": db.LocalSearch()}
    return {"classifier": InContext(), **searched}


VARIANTS: dict[str, Callable[[], dict[str, object]]] = {"deepbore:in-context": in_context}
