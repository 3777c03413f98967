"""Arrays of NumPy for tensors on the CPU, so that small computations in loops do not wait for calls of torch."""

from types import ModuleType
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

Array: TypeAlias = Any  # np.ndarray, or a tensor on an accelerator: formulas are written once for both
NATIVE = "cpu"  # the type of device whose tensors NumPy computes with; tests that emulate an accelerator change it


def is_native(tensor: Tensor) -> bool:
    """Whether NumPy computes with a tensor, which is on the CPU."""
    return tensor.device.type == NATIVE


def native(tensor: Tensor) -> Array:
    """A tensor without its gradient, as an array of NumPy if it is on the CPU."""
    tensor = tensor.detach()
    return tensor.numpy() if is_native(tensor) else tensor


def as_tensor(array: Array) -> Tensor:
    """An array as a tensor where it is, without a copy, whatever the default device is."""
    return array if isinstance(array, Tensor) else torch.as_tensor(array, device="cpu")


def scalar(tensor: Tensor) -> Array:
    """A tensor of one number as a float if it is on the CPU; on an accelerator as it is, without waiting for it."""
    return float(tensor) if is_native(tensor) else tensor.detach()


def module_of(array: Array) -> ModuleType:
    """The functions of an array: `numpy` or `torch`."""
    return torch if isinstance(array, Tensor) else np


def special_of(array: Array) -> ModuleType:
    """The special functions of an array: those of SciPy or of torch."""
    if isinstance(array, Tensor):
        return torch.special
    import scipy.special  # the first trials of a run need none, and this takes .1 s

    return cast(ModuleType, scipy.special)


def like(array: np.ndarray, other: Array) -> Array:
    """A NumPy array as an array of the same kind as another one, on its device."""
    return array if isinstance(other, np.ndarray) else torch.from_numpy(np.ascontiguousarray(array)).to(other.device)


def on_cpu(array: Array) -> np.ndarray:
    """An array of NumPy."""
    return array.cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)
