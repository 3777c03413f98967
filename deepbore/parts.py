"""The old name of `deepbore.component`: each import from here gives a DeprecationWarning."""

import warnings
from typing import Any

from deepbore import component
from deepbore.errors import DeprecatedUse

RENAMED = {"part": "Component"}  # in lower case


def __getattr__(name: str) -> Any:
    new = RENAMED.get(name.lower(), name)
    value = getattr(component, new)
    warnings.warn(f"{__name__}.{name} is now deepbore.component.{new}", DeprecatedUse, stacklevel=2)
    return value
