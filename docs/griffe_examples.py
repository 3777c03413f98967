"""Has the sections "Example:" and "Example::" of docstrings shown as code: griffe knows "Examples:" only."""

import re
from typing import Any

import griffe

LITERAL = re.compile(r"^Example::\n\n((?:    .*\n?|\n)+)", re.MULTILINE)
DOCTEST = re.compile(r"^Example:$", re.MULTILINE)


class Examples(griffe.Extension):
    """Rewrites the docstrings of everything that is shown."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute when it has been read."""
        if obj.docstring is not None:
            text = LITERAL.sub(lambda found: _fenced(found[1]), obj.docstring.value)
            obj.docstring.value = DOCTEST.sub("Examples:", text)


def _fenced(code: str) -> str:
    return f"Examples:\n    ```python\n{code.rstrip()}\n    ```\n"
