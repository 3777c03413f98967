"""The state of torch and NumPy around deepbore: the caller's, a clean one for its own work, hooks, quiet imports."""

import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch

P = ParamSpec("P")
T = TypeVar("T")
AUTOCAST = ("cpu", "cuda")
CPU = torch.device("cpu")
ERRORS = (("divide", "warn"), ("over", "warn"), ("under", "ignore"), ("invalid", "warn"))  # NumPy's own

# --- modes -----------------------------------------------------------------------------------------------------------


@contextmanager
def clean_torch_state() -> Iterator[None]:
    """Gradients on, float32 and the CPU as defaults, no autocast and no inference mode, whatever the caller has set.

    NumPy has its default reactions to floating-point errors. So a proposal is the same inside `torch.inference_mode()`,
    `torch.autocast(...)`, `torch.device(...)` or `np.errstate(all="raise")`, and with another default dtype. The
    caller's state is restored at the end. It also decorates functions.

    Example:
        >>> with torch.no_grad(), clean_torch_state():
        ...     torch.is_grad_enabled()
        True
    """
    _callers.modes.append(Modes.now())
    _dtype.acquire()
    try:
        with _CLEAN.entered():
            yield
    finally:
        _dtype.release()
        _callers.modes.pop()


@contextmanager
def caller_torch_state() -> Iterator[None]:
    """The caller's own modes, within `clean_torch_state`: for an objective and for callbacks.

    A default device or dtype that is set within is reset at the end.

    Example:
        >>> with torch.no_grad(), clean_torch_state(), caller_torch_state():
        ...     torch.is_grad_enabled()
        False
    """
    if not _callers.modes:
        yield
        return
    levels, _callers.modes = _callers.modes, []
    device = default_device()
    _dtype.release(len(levels))
    try:
        with levels[0].entered():
            yield
    finally:
        if default_device() != device:
            torch.set_default_device(None if device == CPU else device)
        _dtype.acquire(len(levels))
        _callers.modes = levels


def default_device() -> torch.device:
    """The device of new tensors. `torch.get_default_device` of torch 2.5 ignores contexts, and fails after a reset."""
    return torch.empty(0).device


@dataclass(frozen=True)
class Modes:
    """The modes of a thread. The default dtype is not among them: it belongs to the whole process.

    Attributes:
        inference: whether inference mode is on.
        gradients: whether gradients are on.
        autocast: for each of `AUTOCAST` whether it is on, and its dtype.
        device: the default device of new tensors.
        errors: what NumPy does about each kind of floating-point error; the default is NumPy's own.
    """

    inference: bool = False
    gradients: bool = True
    autocast: tuple[tuple[bool, torch.dtype | None], ...] = ((False, None),) * len(AUTOCAST)
    device: torch.device = CPU
    errors: tuple[tuple[str, Any], ...] = ERRORS

    @classmethod
    def now(cls) -> "Modes":
        """The modes of this thread."""
        autocast = tuple((torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in AUTOCAST)
        errors = tuple(np.geterr().items())
        return cls(torch.is_inference_mode_enabled(), torch.is_grad_enabled(), autocast, default_device(), errors)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A context in which this thread has these modes."""
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.gradients and not self.inference))
            for kind, (enabled, dtype) in zip(AUTOCAST, self.autocast, strict=True):
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled))
            stack.enter_context(np.errstate(**dict(self.errors)))
            if default_device() != self.device:  # a device mode slows every call: only where it is needed
                stack.enter_context(torch.device(self.device))
            yield


class DefaultDtype:
    """The default dtype, which all threads share: float32 while any context needs it, then the program's own again.

    A signal handler may enter between any two lines of this thread, so each method leaves the right dtype behind
    whatever came in between.
    """

    def __init__(self) -> None:
        self._lock, self._users = threading.RLock(), 0
        self._programs_own: torch.dtype | None = None  # None while nobody needs another

    def acquire(self, users: int = 1) -> None:
        """Counts further contexts that need float32."""
        with self._lock:
            self._users += users  # first: what comes in between does not put the program's own back
            found = torch.get_default_dtype()
            if self._programs_own is None:
                self._programs_own = found
            torch.set_default_dtype(torch.float32)

    def release(self, users: int = 1) -> None:
        """Counts contexts that have ended; the last one restores the program's dtype."""
        with self._lock:
            self._users -= users
            own = self._programs_own
            if not self._users and own is not None:
                self._programs_own = None
                torch.set_default_dtype(own)


class CallerModes(threading.local):
    """The caller's modes at each `clean_torch_state` that this thread is in, the outermost first."""

    def __init__(self) -> None:
        self.modes: list[Modes] = []


_CLEAN, _dtype, _callers = Modes(), DefaultDtype(), CallerModes()

# --- foreign code ----------------------------------------------------------------------------------------------------


def hook(function: Callable[P, T]) -> Callable[P, T]:
    """A hook of Lightning that runs foreign code, such as a callback, a search or a classifier.

    Lightning takes a StopIteration for the end of the data, and ends its fit without an error. Here it becomes a
    RuntimeError with the StopIteration as its cause, as it does in a generator (PEP 479).
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except StopIteration as error:
            raise RuntimeError(f"{function.__name__} raised StopIteration, which would end the run unseen") from error

    return called


def import_quietly(name: str) -> None:
    """Imports a third-party package for the first time, without its warnings of torch's deprecations."""
    if name in sys.modules:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import_module(name)
