"""The old name of `deepbore.validation`: each import from here gives a DeprecationWarning."""

import warnings
from typing import Any

from deepbore import validation


def __getattr__(name: str) -> Any:
    value = getattr(validation, name)
    warnings.warn(f"{__name__}.{name} is now deepbore.validation.{name}", DeprecationWarning, stacklevel=2)
    return value
