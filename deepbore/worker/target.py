"""Functions by their names, as on the command line: train.py:train, package.module:train, package.module.train."""

import importlib
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from deepbore.names import did_you_mean

FORMS = "train.py:train, my_module:train or my_module.train"


def function_at(target: str) -> Any:
    """What a text names in a module or a file; modules in the current working directory are found, too.

    Args:
        target: file.py:function, module:function or module.function.

    Raises:
        ImportError: if the text has no such form, or there is no such file, module or name.
    """
    place, _, name = target.rpartition(":") if ":" in target else target.rpartition(".")
    if not place or not name.isidentifier() or place.endswith((".", ":")):
        hint = f" Did you mean {target.removesuffix('.py')}.py:FUNCTION?" if target.endswith(".py") else ""
        raise ImportError(f"a function is named as {FORMS}.{hint}")
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())
    module = _from_file(Path(os.path.expanduser(place))) if place.endswith(".py") else importlib.import_module(place)
    if not hasattr(module, name):
        there = [each for each, value in vars(module).items() if callable(value)]
        raise ImportError(f"{place} has no {name!r}.{did_you_mean(name, there)}")
    return getattr(module, name)


def _from_file(path: Path) -> ModuleType:
    """The module in a file, which can be pickled: it is known by its name, and stands where it can be imported."""
    if not path.is_file():
        raise ImportError(f"{path} is no file of Python")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    known = sys.modules.get(path.stem)
    if known is not None and Path(getattr(known, "__file__", None) or "").resolve() == path.resolve():
        return known
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no file of Python")
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
