"""One thread for small work."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Lets torch compute on one thread within, and restores the number after.

    Layers and kernels this small gain nothing from more threads, and lose a hundredfold where the threads wait for
    busy cores. It also makes a run the same, bit for bit, on any number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
