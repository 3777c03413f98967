"""Names of parameters and choices as pictures have room for them: short, and still different. Light to import."""

from collections import Counter
from collections.abc import Sequence
from typing import Any


def shortened(text: Any, most: int) -> str:
    """Text as one line of at most so many characters: its beginning, or the end of what is dotted, where names differ.

    Example:
        >>> shortened("model.init_args.lr", 12), shortened("a choice of many words", 12)
        ('…nit_args.lr', 'a choice of…')
    """
    line = " ".join(str(text).split())
    if len(line) <= most:
        return line
    return f"…{line[1 - most :]}" if "." in line and " " not in line else f"{line[: most - 1].rstrip()}…"


def short_names(texts: Sequence[Any], most: int) -> list[str]:
    """Texts, each `shortened`; those that are then the same have a number.

    Example:
        >>> short_names(["a choice of this", "a choice of that", "none"], 12)
        ['a choice of… (0)', 'a choice of… (1)', 'none']
    """
    names = [shortened(text, most) for text in texts]
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} ({k})" for k, name in enumerate(names)]
