"""Hooks that Lightning calls, and a StopIteration that leaves one."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def hook(function: Callable[P, T]) -> Callable[P, T]:
    """A hook of Lightning's that somebody else's code runs in, such as a callback, a search or a classifier.

    Lightning takes a StopIteration for the end of the data, and ends its fit as if all were well. Here it is an error,
    a RuntimeError with the StopIteration as its cause, as it is where one leaves a generator (PEP 479).
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except StopIteration as error:
            raise RuntimeError(f"{function.__name__} raised StopIteration, which would end the run unseen") from error

    return called
