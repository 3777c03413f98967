"""The modes that torch may be in when deepbore is called, and those that it computes in."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch

AUTOCAST = ("cpu", "cuda")
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Modes:
    """The modes of a thread; that the default dtype belongs to the whole process is `DefaultDtype`'s to know.

    Attributes:
        inference: whether it is in inference mode.
        gradients: whether gradients are on.
        autocast: for each of `AUTOCAST` whether it is on, and its dtype.
        device: where tensors are made if nobody says otherwise.
    """

    inference: bool = False
    gradients: bool = True
    autocast: tuple[tuple[bool, torch.dtype | None], ...] = ((False, None),) * len(AUTOCAST)
    device: torch.device = CPU

    @classmethod
    def now(cls) -> "Modes":
        """Those of this thread."""
        autocast = tuple((torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in AUTOCAST)
        return cls(torch.is_inference_mode_enabled(), torch.is_grad_enabled(), autocast, torch.get_default_device())

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Within, this thread has these."""
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.gradients and not self.inference))
            for kind, (enabled, dtype) in zip(AUTOCAST, self.autocast, strict=True):
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled))
            if torch.get_default_device() != self.device:  # such a mode slows every call, so only where it is needed
                stack.enter_context(torch.device(self.device))
            yield


class DefaultDtype:
    """Float32 while anybody needs it, and what the program has set otherwise: all threads share the default dtype."""

    def __init__(self) -> None:
        self._lock, self._users, self._found = threading.Lock(), 0, torch.float32

    def take(self, users: int = 1) -> None:
        """So many more need float32."""
        with self._lock:
            if not self._users:
                self._found = torch.get_default_dtype()
                torch.set_default_dtype(torch.float32)
            self._users += users

    def leave(self, users: int = 1) -> None:
        """So many need it no longer; after the last one it is as it was."""
        with self._lock:
            self._users -= users
            if not self._users:
                torch.set_default_dtype(self._found)


class Found(threading.local):
    """What each `as_usual` that this thread is in has found, the outermost first."""

    def __init__(self) -> None:
        self.modes: list[Modes] = []


USUAL, DTYPE, FOUND = Modes(), DefaultDtype(), Found()


@contextmanager
def as_usual() -> Iterator[None]:
    """Gradients on, float32 and the CPU as defaults, no autocast and no inference mode, whatever the caller has set.

    So a proposal is the same inside `torch.inference_mode()`, `torch.autocast(...)` or `torch.device(...)`, and with
    another default dtype. What the caller has set is restored at the end. It also decorates functions.

    Example:
        >>> with torch.no_grad(), as_usual():
        ...     torch.is_grad_enabled()
        True
    """
    FOUND.modes.append(Modes.now())
    DTYPE.take()
    try:
        with USUAL.entered():
            yield
    finally:
        DTYPE.leave()
        FOUND.modes.pop()


@contextmanager
def as_found() -> Iterator[None]:
    """Within `as_usual`, the caller's own modes: for an objective, and for callbacks.

    What these set for good, a default device or dtype, is taken back.

    Example:
        >>> with torch.no_grad(), as_usual(), as_found():
        ...     torch.is_grad_enabled()
        False
    """
    if not FOUND.modes:
        yield
        return
    levels, FOUND.modes = FOUND.modes, []
    device = torch.get_default_device()
    DTYPE.leave(len(levels))
    try:
        with levels[0].entered():
            yield
    finally:
        if torch.get_default_device() != device:
            torch.set_default_device(None if device == CPU else device)
        DTYPE.take(len(levels))
        FOUND.modes = levels
