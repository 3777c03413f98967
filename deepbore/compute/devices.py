"""The device that a run computes on, and random numbers there."""

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
    if generator.device.type == device.type:
        return generator
    return torch.Generator(device).manual_seed(int(torch.randint(2**62, (), generator=generator)))
