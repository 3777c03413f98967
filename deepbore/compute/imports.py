"""Imports that would say what nobody here can mend."""

import sys
import warnings
from importlib import import_module


def import_quietly(name: str) -> None:
    """Imports a package for the first time without its warnings of torch's deprecations, such as `torch.jit.script`."""
    if name in sys.modules:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import_module(name)
