"""The old name of `deepbore.validation`: each import from here gives a DeprecationWarning."""

import warnings
from typing import Any

from deepbore import validation
from deepbore.errors import DeprecatedUse


def __getattr__(name: str) -> Any:
    value = getattr(validation, name)
    warnings.warn(f"{__name__}.{name} is now deepbore.validation.{name}", DeprecatedUse, stacklevel=2)
    return value
