"""Assertions of checks: an AssertionError with the rule and the values, also under `python -O`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from deepbore.errors import DeepBoreError


def require(holds: object, message: str) -> None:
    """Raises AssertionError with the message unless a condition holds (a bool, or a tensor of one)."""
    if not holds:
        raise AssertionError(message)


def require_shape(tensor: Tensor, shape: tuple[int, ...], what: str) -> None:
    """Raises AssertionError unless a tensor has this shape and finite numbers."""
    require(isinstance(tensor, Tensor), f"{what} must be a tensor, but is a {type(tensor).__name__}")
    require(tuple(tensor.shape) == shape, f"{what} must have the shape {shape}, but has {tuple(tensor.shape)}")
    bad = int((~tensor.isfinite()).sum())
    require(bad == 0, f"{what} must be finite, but {bad} of {tensor.numel()} numbers are not")


def require_equal(one: Tensor, other: Tensor, message: str, tolerance: float = 0.0) -> None:
    """Raises AssertionError unless two tensors have equal shapes and differ by no more than a tolerance."""
    require(one.shape == other.shape, f"{message}: shapes {tuple(one.shape)} and {tuple(other.shape)}")
    apart = float((one - other).abs().max()) if one.numel() else 0.0
    require(apart <= tolerance, f"{message}, but they are up to {apart:.3g} apart (allowed: {tolerance:.3g})")


def require_raises(error: type[DeepBoreError], call: Callable[[], Any], what: str) -> None:
    """Raises AssertionError unless a call raises this error of deepbore."""
    try:
        given = call()
    except error:
        return
    except Exception as other:
        raise AssertionError(
            f"{what} must raise {error.__name__}, but raised {type(other).__name__}: {other}"
        ) from other
    raise AssertionError(f"{what} must raise {error.__name__}, but gave a {type(given).__name__}")


@contextmanager
def untouched_randomness() -> Iterator[None]:
    """A context that raises AssertionError if the global stream of random numbers is used in it."""
    before = torch.random.get_rng_state()
    yield
    same = torch.equal(before, torch.random.get_rng_state())
    require(same, "the global random numbers must stay untouched: draw with the generator that is lent")
