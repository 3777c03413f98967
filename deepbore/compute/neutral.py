"""The modes that torch may be in when deepbore is called, and those that it computes in."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


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
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":  # such a mode slows every call, so only where it is needed
            stack.enter_context(torch.device("cpu"))
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
