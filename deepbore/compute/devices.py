"""The device that a run computes on, its random numbers, and the number of threads."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property

import torch
from threadpoolctl import ThreadpoolController

from deepbore.errors import SettingError

Device = torch.device | str


def as_device(device: Device) -> torch.device:
    """The device of this name; "auto" is the first accelerator that computes in float64, or the CPU.

    Raises:
        SettingError: for a name that torch does not know, a device that is not there, or one without float64.
    """
    if device == "auto":
        there = _accelerator()
        return torch.device("cpu") if there is None or _lacks_float64(there) else there
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except Exception as error:
        raise SettingError(
            f'device must be "auto", "cpu", "cuda", "cuda:1", ... and be there, but got {device!r}: {error}'
        ) from None
    check_float64(found)
    return found


def check_float64(device: torch.device) -> None:
    """Raises SettingError for a device without float64, such as Apple's GPU ("mps"): points and models need it."""
    if (reason := _lacks_float64(device)) is not None:
        raise SettingError(
            f'device must compute in float64, which points and models are of, but got "{device}": {reason}. Give '
            '"cpu" to the study; the objective may train on any device.'
        )


def _accelerator() -> torch.device | None:
    """The accelerator of this process, if there is one; before torch 2.6 only CUDA's are found."""
    if hasattr(torch, "accelerator"):
        return torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return torch.device("cuda") if torch.cuda.is_available() else None


def _lacks_float64(device: torch.device) -> str | None:
    """What torch says of a number of 64 bits on a device that has none; None if it has."""
    try:
        torch.empty(1, dtype=torch.float64, device=device)
    except Exception as error:
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return None


def generator_on(device: torch.device, generator: torch.Generator) -> torch.Generator:
    """A generator on a device: the given one if it is there, else a new one seeded from it.

    Args:
        device: the device of the generator.
        generator: the run's stream; a new generator costs it one draw.
    """
    if generator.device.type == device.type and device.index in (None, generator.device.index):
        return generator
    seed = torch.randint(2**62, (), generator=generator, device=generator.device)
    return torch.Generator(device).manual_seed(int(seed))


def stream_seed(seed: int) -> int:
    """A seed for torch's generators and Sobol sequences, of which these use 32 bits: all bits of the given one count.

    Seeds from 0 to 2**32 - 1 stay as they are; others are mixed by BLAKE2b (RFC 7693).

    Args:
        seed: any whole number.

    Example:
        >>> stream_seed(5), stream_seed(5 + 2**32) == stream_seed(5)
        (5, False)
    """
    if 0 <= seed < 2**32:
        return seed
    return int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=4).digest(), "big")


@contextmanager
def global_streams_seeded(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """A context in which torch's global streams are seeded from a generator; they are restored at the end.

    Args:
        generator: the run's stream, from which one number is drawn.
        device: the device whose stream is seeded, beside that of the CPU.
    """
    seed = int(torch.randint(2**31, (1,), generator=generator, device=generator.device))
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would seed every GPU
        for each in cuda:
            with torch.cuda.device(each):
                torch.cuda.manual_seed(seed)
        yield


class BlasThreads:
    """The threads of the BLAS libraries of NumPy and SciPy, which the whole process shares."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._limit = ExitStack()

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        import scipy.linalg.lapack  # noqa: F401  # loads the library whose threads are limited, in .1 s

        return ThreadpoolController()

    def limit(self) -> None:
        """Limits each library to one thread, until all that have called this have called `release`."""
        with self._lock:
            if not self._users:
                self._limit.enter_context(self._libraries.limit(limits=1, user_api="blas"))
            self._users += 1

    def release(self) -> None:
        """Ends one call of `limit`."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._limit.close()


_blas = BlasThreads()


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which torch computes on one thread, and so do NumPy and SciPy in the whole process.

    Layers and kernels this small gain nothing from more threads, and become a hundred times slower where the threads
    wait for busy cores. One thread also makes a run the same, bit for bit, on any number of cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _blas.limit()
    try:
        yield
    finally:
        _blas.release()
        torch.set_num_threads(threads)
