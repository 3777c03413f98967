"""Has docstrings and signatures shown in full, where griffe by itself would not.

- The sections "Example:" and "Example::" of docstrings are shown as code: griffe knows "Examples:" only.
- `**options: Unpack[...]` is shown as the options that it stands for, which `deepbore.study.options.explicit` has put
  into signature and docstring.
"""

import inspect
import re
from importlib import import_module
from typing import Any

import griffe

LITERAL = re.compile(r"^Example::\n\n((?:    .*\n?|\n)+)", re.MULTILINE)
DOCTEST = re.compile(r"^Example:$", re.MULTILINE)


class Examples(griffe.Extension):
    """Rewrites the docstrings of everything that is shown."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = _with_code(obj.docstring.value)


class Options(griffe.Extension):
    """Rewrites the functions, and classes, with `**options`; it must come before griffe's `unpack_typeddict`."""

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        """Called for each function when the package has been read."""
        if not any(
            each.name == "options" and each.kind is griffe.ParameterKind.var_keyword for each in func.parameters
        ):
            return
        records = [func.modules_collection[f"deepbore.study.options.{name}"] for name in ("StudyOptions", "RunOptions")]
        fields = {name: field for record in records for name, field in record.attributes.items()}
        shown = func.parent if func.name == "__init__" else func
        found: Any = import_module(func.module.path)
        for name in shown.path.removeprefix(f"{func.module.path}.").split("."):
            found = getattr(found, name)
        if "options" in inspect.signature(found).parameters:  # others than those of a study
            return
        del func.parameters["options"]
        for name in [each for each in inspect.signature(found).parameters if each in fields]:
            func.parameters.add(_parameter(name, fields[name]))
        shown.docstring.value = _with_code(inspect.getdoc(found) or "")


def _parameter(name: str, field: griffe.Attribute) -> griffe.Parameter:
    kind = griffe.ParameterKind.keyword_only
    return griffe.Parameter(name, annotation=field.annotation, kind=kind, default=field.value)


def _with_code(text: str) -> str:
    return DOCTEST.sub("Examples:", LITERAL.sub(lambda found: _fenced(found[1]), text))


def _fenced(code: str) -> str:
    return f"Examples:\n    ```python\n{code.rstrip()}\n    ```\n"
