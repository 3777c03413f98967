"""Arrays of NumPy for tensors on the CPU, so that small computations in loops do not wait for calls of torch."""

from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import scipy.special
import torch
from torch import Tensor

Array: TypeAlias = Any  # np.ndarray, or a tensor on an accelerator: formulas are written once for both


def native(tensor: Tensor) -> Array:
    """A tensor without its gradient, as an array of NumPy if it is on the CPU."""
    tensor = tensor.detach()
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def module_of(array: Array) -> ModuleType:
    """The functions of an array: `numpy` or `torch`."""
    return torch if isinstance(array, Tensor) else np


def special_of(array: Array) -> ModuleType:
    """The special functions of an array: those of SciPy or of torch."""
    return torch.special if isinstance(array, Tensor) else scipy.special


def like(array: np.ndarray, other: Array) -> Array:
    """A NumPy array as an array of the same kind as another one, on its device."""
    return array if isinstance(other, np.ndarray) else torch.from_numpy(np.ascontiguousarray(array)).to(other.device)


def on_cpu(array: Array) -> np.ndarray:
    """An array of NumPy."""
    return array.cpu().numpy() if isinstance(array, Tensor) else np.asarray(array)
