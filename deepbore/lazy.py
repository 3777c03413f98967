"""Names of a package that are imported when they are first used."""

from collections.abc import Callable
from typing import Any

import lazy_loader

from deepbore.errors import MissingPackage


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """What a package's `__init__` needs for names that are imported when they are first used; its .pyi lists them.

    Args:
        package, file: its `__name__` and `__file__`.

    Returns:
        `__getattr__`, `__dir__` and `__all__`. The first raises `MissingPackage` where a package that deepbore imports
        does not work, and ImportError for an AttributeError in what it imports, of which Python would say no more than
        "cannot import name".
    """
    imported, listed, names = lazy_loader.attach_stub(package, file)

    def get(name: str) -> Any:
        if name not in names:
            return imported(name)
        try:
            return imported(name)
        except AttributeError as error:
            raise ImportError(f"{package}.{name} cannot be imported: {error}") from error
        except RuntimeError as error:
            if (said := mismatch(error)) is None:
                raise
            raise said from error

    return get, listed, names


def mismatch(error: RuntimeError) -> MissingPackage | None:
    """What to say where torchvision, which Lightning's metrics import, was built for another torch; else None.

    Its operators are missing then: "operator torchvision::nms does not exist".
    """
    if "torchvision::" not in str(error):
        return None
    return MissingPackage(
        f"the torchvision that is installed was built for another torch ({error}). Install the one that matches, "
        "`pip install --upgrade torch torchvision`, or uninstall it: deepbore does without."
    )
