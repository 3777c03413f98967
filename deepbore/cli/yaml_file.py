"""YAML in which only `true` and `false` are booleans: `choices: [on, off]` are two words, as in YAML 1.2."""

import re
from typing import Any

import yaml
from jsonargparse import set_loader

MODE = "deepbore"  # the name of this way to read, for a parser's `parser_mode`
BOOLEAN, FLOAT, DATE = (f"tag:yaml.org,2002:{name}" for name in ("bool", "float", "timestamp"))


FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(FASTEST):
    """PyYAML's own, without YAML 1.1's on, off, yes and no, and without dates; 1e-3 is a number."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # as PyYAML has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (BOOLEAN, FLOAT, DATE)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


Loader.add_implicit_resolver(BOOLEAN, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver(
    FLOAT,
    re.compile(r"^[-+]?(?:(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"),
    list("-+0123456789."),
)


def load_yaml(text: str) -> Any:
    """What a text says.

    Raises:
        yaml.YAMLError: for a text that is no YAML.
    """
    return yaml.load(text, Loader=Loader)  # it is a safe one: plain data only


set_loader(MODE, load_yaml, (yaml.YAMLError,))
