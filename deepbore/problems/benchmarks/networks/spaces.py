"""The parameters that several tasks share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from deepbore.problems.benchmarks.networks.layers import ACTIVATIONS
from deepbore.space import Categorical, Condition, Integer, Ordinal, Real
from deepbore.space.parameters import Parameter

Space = Mapping[str, Parameter]

RATE = Real(1e-5, 1.0, log=True)
DECAY = Real(1e-6, 1.0, log=True)
BATCH = Ordinal([16, 32, 64, 128])
WIDTH, DEPTH = Integer(4, 128, log=True), Integer(1, 3)
DROPOUT = Real(0.0, 0.8)
LEVELS = Categorical(list(ACTIVATIONS))
FEW = Categorical(["relu", "tanh", "gelu", "silu"])


def optimizers(kinds: Sequence[str]) -> dict[str, Parameter]:
    """A choice of optimizers by name, with the parameters that only some of them have."""
    found: dict[str, Parameter] = {"optimizer": Categorical(list(kinds)), "lr": RATE}
    own: dict[str, tuple[list[str], Real | Categorical]] = {
        "beta1": (["adam", "nadam"], Real(0.5, 0.99)),
        "beta2": (["adam", "adamw", "radam"], Real(0.8, 0.9999)),
        "momentum": (["sgd", "rmsprop"], Real(0.0, 0.99)),
        "nesterov": (["sgd"], Categorical([False, True])),
        "alpha": (["rmsprop"], Real(0.8, 0.999)),
        "accumulated": (["adagrad"], Real(1e-4, 1.0, log=True)),
        "rho": (["adadelta"], Real(0.5, 0.99)),
        "eta": (["rprop"], Real(1.05, 1.5)),
    }
    for name, (having, parameter) in own.items():
        if active := [kind for kind in kinds if kind in having]:
            found[name] = replace(parameter, when=Condition("optimizer", active))
    return found


def schedules() -> dict[str, Parameter]:
    """A choice of schedules of the learning rate, with parameters of their own, after a warm-up."""
    return {
        "schedule": Categorical(["constant", "cosine", "steps", "exponential"]),
        "floor": Real(0.0, 0.5, when=Condition("schedule", "cosine")),
        "gamma": Real(0.05, 0.9, when=Condition("schedule", "steps")),
        "drops": Integer(2, 6, when=Condition("schedule", "steps")),
        "end": Real(1e-3, 0.5, log=True, when=Condition("schedule", "exponential")),
        "warmup": Real(0.0, 0.4),
    }
