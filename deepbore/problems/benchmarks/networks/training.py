"""Optimizers, schedules, losses, and the loop that trains a network."""

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, huber_loss, l1_loss, mse_loss

from deepbore.problems.benchmarks.networks.data import Split
from deepbore.space import Params

Loss = Callable[[Tensor, Tensor], Tensor]


def optimizer(weights: Iterator[nn.Parameter], params: Params) -> torch.optim.Optimizer:
    """The optimizer of a configuration, AdamW if it has none; parameters that it lacks have torch's defaults."""
    kind = params.get("optimizer", "adamw")
    given: dict[str, Any] = {"lr": params["lr"], "weight_decay": params.get("weight_decay", 0.0)}
    if kind in ("adam", "adamw", "nadam", "radam"):
        betas = (params.get("beta1", 0.9), params.get("beta2", 0.999))
        kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
            "adam": torch.optim.Adam,
            "adamw": torch.optim.AdamW,
            "nadam": torch.optim.NAdam,
            "radam": torch.optim.RAdam,
        }
        return kinds[kind](weights, betas=betas, eps=params.get("epsilon", 1e-8), **given)
    if kind == "sgd":
        momentum = params.get("momentum", 0.0)
        return torch.optim.SGD(
            weights, momentum=momentum, nesterov=params.get("nesterov", False) and momentum > 0, **given
        )
    if kind == "rmsprop":
        alpha, momentum = params.get("alpha", 0.99), params.get("momentum", 0.0)
        return torch.optim.RMSprop(weights, alpha=alpha, momentum=momentum, **given)
    if kind == "adagrad":
        return torch.optim.Adagrad(weights, initial_accumulator_value=params.get("accumulated", 0.0), **given)
    if kind == "adadelta":
        return torch.optim.Adadelta(weights, rho=params.get("rho", 0.9), **given)
    assert kind == "rprop"
    return torch.optim.Rprop(weights, lr=params["lr"], etas=(0.5, params.get("eta", 1.2)))


def factor(params: Params, done: float) -> float:
    """What the schedule multiplies the learning rate by, when a share `done` of the training is over."""
    kind = params.get("schedule", "constant")
    warmup = float(params.get("warmup", 0.0))
    if done < warmup:
        return max(done, 0.01) / warmup
    if kind == "cosine":
        floor = float(params.get("floor", 0.0))
        return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2
    if kind == "steps":
        return float(params["gamma"] ** math.floor(done * params["drops"]))
    if kind == "exponential":
        return float(params["end"] ** done)
    return 1.0


def loss_of(params: Params, data: Split) -> Loss:
    """The loss that a configuration is trained with: cross-entropy or the squared error unless it has another one."""
    if not data.y.is_floating_point():
        smoothing, kind = params.get("label_smoothing", 0.0), params.get("loss", "plain")
        if kind == "weighted":
            shares = torch.bincount(data.y, minlength=data.outputs).float() / len(data.y)
            weight = shares.clamp(min=1e-3) ** -params["power"]
            return lambda outputs, y: cross_entropy(outputs, y, weight, label_smoothing=smoothing)
        if kind == "focal":

            def focal(outputs: Tensor, y: Tensor) -> Tensor:
                each = cross_entropy(outputs, y, reduction="none", label_smoothing=smoothing)
                share: Tensor = (1 - (-each).exp()) ** params["focus"]
                return (share * each).mean()

            return focal
        return lambda outputs, y: cross_entropy(outputs, y, label_smoothing=smoothing)
    kind = params.get("loss", "squared")
    if kind == "huber":
        return lambda outputs, y: huber_loss(outputs, y, delta=params["delta"])
    return l1_loss if kind == "absolute" else mse_loss


def train(network: nn.Module, data: Split, params: Params, epochs: int, measure: Callable[[], float]) -> float:
    """Trains a network, with random numbers from torch's global generator; returns the last measure.

    With `patience` in the configuration training ends after so many epochs without a better measure, and the best one
    is returned: early stopping.

    Args:
        network: to be trained.
        data: whose first part is trained on.
        params: a configuration.
        epochs: the maximum.
        measure: of the network as it is, to minimise.
    """
    chosen, loss = optimizer(iter(network.parameters()), params), loss_of(params, data)
    size = params.get("batch_size", 64)
    steps = count()
    total = epochs * math.ceil(len(data.x) / size)
    best, since, last = math.inf, 0, math.nan
    for epoch in range(epochs):
        network.train()
        for rows in torch.randperm(len(data.x)).split(size):
            if len(rows) == 1 and len(data.x) > 1:
                continue  # batch normalisation needs two
            for group in chosen.param_groups:
                group["lr"] = params["lr"] * factor(params, next(steps) / total)
            x = data.x[rows]
            if "noise" in params:
                x = x + params["noise"] * torch.randn_like(x)
            chosen.zero_grad()
            loss(network(x), data.y[rows]).backward()
            if "clip" in params:
                nn.utils.clip_grad_norm_(network.parameters(), params["clip"])
            chosen.step()
        if "patience" in params or epoch == epochs - 1:
            network.eval()
            last = measure()
            best, since = (last, 0) if last < best else (best, since + 1)
            if since >= params.get("patience", epochs):
                break
    return best if "patience" in params and math.isfinite(best) else last
