"""The device that a run computes on, and random numbers there."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from deepbore.errors import SettingError

Device = torch.device | str


def as_device(device: Device) -> torch.device:
    """The device of this name; "auto" is the first accelerator, or else the CPU.

    Raises:
        SettingError: for a name that torch does not know, or a device that is not there.
    """
    if device == "auto":
        there = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return there or torch.device("cpu")
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except Exception as error:
        raise SettingError(
            f'device must be "auto", "cpu", "cuda", "cuda:1", ... and be there, but got {device!r}: {error}'
        ) from None
    return found


def generator_on(device: torch.device, generator: torch.Generator) -> torch.Generator:
    """A stream of random numbers on a device: the same one if it lives there, else one that is seeded from it.

    Args:
        device: where the numbers are wanted.
        generator: the run's stream, which moves on by one draw if the device is another.
    """
    if generator.device.type == device.type and device.index in (None, generator.device.index):
        return generator
    seed = torch.randint(2**62, (), generator=generator, device=generator.device)
    return torch.Generator(device).manual_seed(int(seed))


@contextmanager
def global_streams_seeded(generator: torch.Generator, device: torch.device) -> Iterator[None]:
    """Within it torch's own streams follow a generator, which moves on by one draw; then they are as they were.

    Args:
        generator: the run's stream.
        device: whose stream it is about, beside that of the CPU.
    """
    seed = int(torch.randint(2**31, (1,), generator=generator, device=generator.device))
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # `torch.manual_seed` would seed every GPU as well
        for each in cuda:
            with torch.cuda.device(each):
                torch.cuda.manual_seed(seed)
        yield
