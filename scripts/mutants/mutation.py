"""Mutants of a file: copies with one change, by mutmut's operators and a few more."""

import difflib
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst import matchers as m
from mutmut.mutation import mutators

# Texts are for people, and what only ruff, mypy or a reader sees changes nothing.
NOT_MUTATED = (
    m.Annotation()
    | m.Raise()
    | m.Arg(keyword=m.Name("strict"))
    | m.Import()
    | m.ImportFrom()
    | m.Decorator()
    | m.If(test=m.Name("TYPE_CHECKING"))
    | m.Assign(targets=[m.AssignTarget(m.Name("__all__"))])
    | m.Call(func=m.Name(m.MatchIfTrue({"cast", "isinstance", "len", "NewType", "TypeVar", "warn"}.__contains__)))
    | m.Call(func=m.Attribute(attr=m.Name("warn")))
)


PAIRS = [("min", "max"), ("amin", "amax"), ("argmin", "argmax"), ("minimum", "maximum"), ("any", "all")]
PAIRS += [("floor", "ceil"), ("zeros", "ones"), ("zeros_like", "ones_like"), ('"left"', '"right"')]
OPPOSITES = dict(PAIRS) | {second: first for first, second in PAIRS}


def opposite(node: cst.Name | cst.SimpleString) -> Iterator[cst.CSTNode]:
    """`max` for `min`, and so on."""
    if node.value in OPPOSITES:
        yield node.with_changes(value=OPPOSITES[node.value])


def negated(node: cst.If | cst.While) -> Iterator[cst.CSTNode]:
    """The statement with the opposite condition."""
    test = node.test.with_changes(lpar=[cst.LeftParen(), *node.test.lpar], rpar=[cst.RightParen(), *node.test.rpar])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


def with_a_default(node: cst.Call) -> Iterator[cst.CSTNode]:
    """The call without one of its keyword arguments; `strict` is for ruff, and the device is always the same here."""
    for i, arg in enumerate(node.args):
        if arg.keyword and arg.keyword.value not in ("device", "strict"):
            yield node.with_changes(args=[*node.args[:i], *node.args[i + 1 :]])


def left_out(node: cst.Expr) -> Iterator[cst.CSTNode]:
    """Nothing in the place of a call whose result is not used."""
    if isinstance(node.value, cst.Call):
        yield cst.Pass()


def unset(node: cst.Assign | cst.AnnAssign) -> Iterator[cst.CSTNode]:
    """None for another value; but not for False, which few tell apart."""
    if node.value is not None and not m.matches(node.value, m.Name("None") | m.Name("False")):
        yield node.with_changes(value=cst.Name("None"))


# Dropping positional arguments is an error at once, and "" for None one for mypy: both say little about the tests.
DROPPED = (mutators.operator_string, mutators.operator_arg_removal, mutators.operator_dict_arguments)
DROPPED += (mutators.operator_assignment,)
OPERATORS = [
    *((kind, operator) for kind, operator in mutators.mutation_operators if operator not in DROPPED),
    (cst.Name, opposite),
    (cst.SimpleString, opposite),
    (cst.If, negated),
    (cst.While, negated),
    (cst.Assign, unset),
    (cst.AnnAssign, unset),
    (cst.Call, with_a_default),
    (cst.Expr, left_out),
]


@dataclass(frozen=True)
class Mutant:
    """A file with one change."""

    path: Path
    line: int
    before: str
    after: str
    source: str

    @property
    def change(self) -> tuple[str, str, str]:
        """Path and lines, without line numbers: the same after edits elsewhere in the file."""
        return self.path.as_posix(), self.before, self.after


class _Mutations(cst.CSTVisitor):
    """Pairs of a node and what it is changed to."""

    def __init__(self) -> None:
        self.found: list[tuple[cst.CSTNode, cst.CSTNode]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if m.matches(node, NOT_MUTATED):
            return False
        for kind, operator in OPERATORS:
            if isinstance(node, kind):
                self.found += [(node, mutated) for mutated in operator(node)]
        return True


def _mutant(path: Path, source: str, mutated: str) -> Mutant:
    old, new = source.splitlines(), mutated.splitlines()
    blocks = [block for block in difflib.SequenceMatcher(None, old, new, False).get_opcodes() if block[0] != "equal"]
    first, last = blocks[0], blocks[-1]
    before, after = (
        " ".join(line.strip() for line in lines) for lines in (old[first[1] : last[2]], new[first[3] : last[4]])
    )
    return Mutant(path, first[1] + 1, before, after, mutated)


def sampled_mutants(paths: Iterable[Path], count: int | None, seed: int) -> list[Mutant]:
    """Mutants of these files in random order, each different from the file and from the others."""
    modules = {path: cst.parse_module(path.read_text()) for path in paths}
    mutations = []
    for path, module in modules.items():
        visitor = _Mutations()
        module.visit(visitor)
        mutations += [(path, *pair) for pair in visitor.found]
    random.Random(seed).shuffle(mutations)
    mutants: dict[str, Mutant] = {}
    for path, node, mutated in mutations:
        source, changed = modules[path].code, modules[path].deep_replace(node, mutated).code
        if changed != source:
            mutants.setdefault(changed, _mutant(path, source, changed))
        if len(mutants) == count:
            break
    return list(mutants.values())
