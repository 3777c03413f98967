"""The modes that torch may be in when deepbore is called, and those that it computes in."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def as_usual() -> Iterator[None]:
    """Gradients on, float32 as the default, no autocast and no inference mode, whatever the caller has set.

    So a proposal is the same inside `torch.inference_mode()`, `torch.autocast(...)` or another default dtype.
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            stack.enter_context(torch.autocast(device, enabled=False))
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
