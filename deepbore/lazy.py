"""Names of a package that are imported when they are first used."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        with torchvision_named():
            try:
                return imported(name)
            except AttributeError as error:
                raise ImportError(f"{package}.{name} cannot be imported: {error}") from error

    return get, listed, names


@contextmanager
def torchvision_named() -> Iterator[None]:
    """Says the way out where torchvision, which Lightning's metrics import, was built for another torch.

    Its operators are missing then: "operator torchvision::nms does not exist".

    Raises:
        MissingPackage: in place of that error.
    """
    try:
        yield
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        raise MissingPackage(
            f"the torchvision that is installed was built for another torch ({error}). Install the one that matches, "
            "`pip install --upgrade torch torchvision`, or uninstall it: deepbore does without."
        ) from error
