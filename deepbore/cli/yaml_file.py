"""YAML in which `choices: [on, off]` are two words, and so is `16:9`, as in YAML 1.2; no key stands twice."""

import re
from collections.abc import Mapping
from typing import Any

import yaml
from jsonargparse import set_loader

MODE = "deepbore"  # the name of this way to read, for a parser's `parser_mode`
BOOLEAN, INTEGER, FLOAT, DATE, TEXT, MERGED = (
    f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "timestamp", "str", "merge")
)
LINE_ENDS = "\x85\u2028\u2029\ufeff"
WHOLE = re.compile(r"^[-+]?(?:0x[\da-fA-F_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*)$")
NUMBER = re.compile(
    r"^[-+]?(?:(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d+)?|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)

FASTEST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(FASTEST):
    """PyYAML's own, without YAML 1.1's on, off, yes and no, dates, and numbers to the bases 60 and 8 (010)."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # as PyYAML has it
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in (BOOLEAN, INTEGER, FLOAT, DATE)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: str):
        super().__init__(stream)
        self._flat: set[yaml.MappingNode] = set()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merges what `<<` names; each key stands once before that: the second would silently replace the first."""
        keys = [key.value for key, _ in node.value if key.tag != MERGED and node not in self._flat]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} stands more than once", node.start_mark)
        self._flat.add(node)  # whoever merges this one asks again, and then it has keys of others, too
        super().flatten_mapping(node)

    def construct_whole(self, node: yaml.ScalarNode) -> int:
        """An integer; a 0 in front changes nothing."""
        text = self.construct_scalar(node).replace("_", "").lower()
        return int(text, 0) if set(text) & set("xob") else int(text)


Loader.add_constructor(INTEGER, Loader.construct_whole)
Loader.add_implicit_resolver(INTEGER, WHOLE, list("-+0123456789"))
Loader.add_implicit_resolver(BOOLEAN, re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver(FLOAT, NUMBER, list("-+0123456789."))


class Dumper(yaml.SafeDumper):
    """Puts quotes around each text that this way to read, or PyYAML's own, would take for something else."""


def _written(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """A text, between double quotes if PyYAML would take a sign in it for the end of a line."""
    return dumper.represent_scalar(TEXT, text, style='"' if set(text) & set(LINE_ENDS) else None)


Dumper.add_implicit_resolver(INTEGER, WHOLE, list("-+0123456789"))
Dumper.add_implicit_resolver(FLOAT, NUMBER, list("-+0123456789."))
Dumper.add_representer(str, _written)


def load_yaml(text: str) -> Any:
    """What a text says.

    Raises:
        yaml.YAMLError: for a text that is no YAML.
    """
    return yaml.load(text, Loader=Loader)  # it is a safe one: plain data only


def dump_yaml(data: Any) -> str:
    """The text that says this."""
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True))


def with_texts(dumped: Any, given: Any) -> Any:
    """Plain data as jsonargparse dumps a configuration, and the texts of the configuration as they are.

    What stands where anything may, as in the declaration of a space, it reads again as it dumps: '16' would be 16.
    """
    if isinstance(given, str):
        return given
    if isinstance(dumped, dict) and isinstance(given, Mapping):
        return {name: with_texts(each, given.get(name)) for name, each in dumped.items()}
    if isinstance(dumped, list) and isinstance(given, (list, tuple)) and len(dumped) == len(given):
        return [with_texts(*pair) for pair in zip(dumped, given, strict=True)]
    return dumped


set_loader(MODE, load_yaml, (yaml.YAMLError,))
