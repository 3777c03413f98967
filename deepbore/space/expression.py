"""`Expression`: a text such as "batch * width <= 4096", parsed by a whitelist and evaluated without `eval`."""

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unicodedata import normalize

import numpy as np
import torch

from deepbore.errors import SpaceError
from deepbore.space.parameters import Parameter

Natives = Mapping[str, np.ndarray]  # name -> native values (n); arbitrary where the parameter is inactive

LONGEST = 2000  # characters of an expression
MOST_BITS = 4096  # of a power of integers
SHOWN = 200  # characters of an expression in a message
EXACT = 2**53  # float64 represents all integers below
LISTED = 20  # choices shown in a message


def power(base: Any, exponent: Any) -> Any:
    """base ** exponent. Raises OverflowError if it is too large, and ArithmeticError if it is complex."""
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MOST_BITS:
        raise OverflowError("a power of more than a thousand digits")
    result = base**exponent
    if isinstance(result, complex):
        raise ArithmeticError("a fractional power of a negative number")
    return result


ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: np.frompyfunc(power, 2, 1),
}  # fmt: skip
SIGNS: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
ORDER: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
EQUALITY: dict[type, Callable[[Any, Any], Any]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
NUMBER, TEXT, TRUTH, MIXED = "a number", "a text", "True or False", "a value of several kinds"


class Expression:
    """A condition on several parameters, as a text in Python syntax.

    It may contain names of parameters (also with dots: `model.lr`), numbers, texts and lists; + - * / // % **;
    comparisons, also in chains; `in` and `not in`; and, or, not. Anything else is refused, so that an expression from
    an untrusted file is harmless.

    Args:
        text: the expression.
        parameters: name -> parameter.

    Attributes:
        text: the text as given.
        names: names of its parameters, in the order of the space.
        is_plain: whether arrays of int64 and float64 give the same as Python numbers: it compares only sums and
            products of numbers, none of them too large.

    Raises:
        SpaceError: for anything else, and for comparisons that never hold, such as with a value that is no choice.
    """

    def __init__(self, text: str, parameters: Mapping[str, Parameter]):
        self.text, self._parameters = text, parameters
        # Python's parser normalises names: it reads the micro sign as the Greek letter mu
        own = {name: name for name in parameters}
        self._as_read = {normalize("NFKC", name): name for name in own} | own
        self._body = _parsed(text)
        try:
            self._check_truth(self._body)
            found = {self._name(node) for node in _names(self._body)}
        except RecursionError:
            raise self._error("is nested too deeply") from None
        self.names = tuple(name for name in parameters if name in found)
        if not self.names:
            raise self._error(f"names no parameter of {list(parameters)}")
        compared = [node for node in ast.walk(self._body) if isinstance(node, ast.Compare)]
        self.is_plain = all(self._largest(node) < EXACT for node in (*compared, *_names(self._body)))

    def holds(self, natives: Natives) -> np.ndarray:
        """Whether it holds (n booleans), for native values of all its parameters (name -> n).

        Raises:
            ArithmeticError: for a division by zero or an overflow.
        """
        n = len(natives[self.names[0]])
        return self._truth(self._body, natives, n)

    def _error(self, what: str) -> SpaceError:
        return SpaceError(f"the constraint {self.text[:SHOWN]!r} {what}.")

    # --- evaluation --------------------------------------------------------------------------------------------------

    def _truth(self, node: ast.expr, natives: Natives, n: int) -> np.ndarray:
        """Truth value of each row (n booleans).

        As in Python, the right of `and` and `or` is evaluated only where the left does not decide:
        `b != 0 and a / b < 1`.
        """
        if isinstance(node, ast.BoolOp):
            decided = isinstance(node.op, ast.Or)
            result = np.full(n, not decided)
            for part in node.values:
                rows = np.flatnonzero(result != decided)
                result[rows] = self._truth(part, {name: each[rows] for name, each in natives.items()}, len(rows))
            return result
        if isinstance(node, ast.UnaryOp):
            return ~self._truth(node.operand, natives, n)
        found = self._compared(node, natives) if isinstance(node, ast.Compare) else self._value(node, natives)
        return np.broadcast_to(np.asarray(found).astype(bool), n).copy()

    def _compared(self, node: ast.Compare, natives: Natives) -> Any:
        holds: Any = True
        left = self._value(node.left, natives)
        for sign, right_node in zip(node.ops, node.comparators, strict=True):
            if isinstance(sign, (ast.In, ast.NotIn)):
                members = [self._value(each, natives) for each in _elements(right_node)]
                each = np.logical_or.reduce([_as_truth(left == member) for member in members])
                each = ~each if isinstance(sign, ast.NotIn) else each
            else:
                right = self._value(right_node, natives)
                each = _as_truth((ORDER | EQUALITY)[type(sign)](left, right))
                left = right
            holds = np.logical_and(holds, each)
        return holds

    def _value(self, node: ast.expr, natives: Natives) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BinOp):
            return ARITHMETIC[type(node.op)](self._value(node.left, natives), self._value(node.right, natives))
        if isinstance(node, ast.UnaryOp):
            return SIGNS[type(node.op)](self._value(node.operand, natives))
        return natives[self._name(node)]

    # --- checks ------------------------------------------------------------------------------------------------------

    def _check_truth(self, node: ast.expr) -> None:
        """Raises SpaceError unless a node is true or false."""
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                self._check_truth(part)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._check_truth(node.operand)
        elif isinstance(node, ast.Compare):
            self._check_comparison(node)
        elif self._kind(node) != TRUTH:
            raise self._error(f"must be true or false, but {ast.unparse(node)!r} is {self._kind(node)}")

    def _check_comparison(self, node: ast.Compare) -> None:
        left = node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(sign, (ast.In, ast.NotIn)):
                members = _elements(right)
                if not members or len(node.ops) > 1:
                    raise self._error("needs a list after `in`, as in: depth in [2, 4]")
                for member in members:
                    self._check_equal(left, member)
            elif type(sign) in EQUALITY:
                self._check_equal(left, right)
            elif type(sign) not in ORDER:
                raise self._error(f"has {ast.unparse(node)!r}; parameters are compared by < <= > >= == != in")
            elif {self._kind(left), self._kind(right)} not in ({NUMBER}, {TEXT}):
                kinds = f"{self._kind(left)} with {self._kind(right)}"
                raise self._error(f"compares {kinds} in {ast.unparse(node)!r}, which has no order")
            left = right

    def _check_equal(self, left: ast.expr, right: ast.expr) -> None:
        """Raises SpaceError for a literal that is not among the choices of the parameter that it is compared with."""
        self._kind(left), self._kind(right)
        for name, literal in ((left, right), (right, left)):
            if isinstance(literal, ast.Constant) and isinstance(name, (ast.Name, ast.Attribute)):
                choices = _choices(self._parameters[self._name(name)])
                if choices and literal.value not in choices:
                    shown = f"{choices[:LISTED]}"
                    raise self._error(
                        f"names {literal.value!r}, which is not among the choices of {self._name(name)!r}: {shown}"
                    )

    def _kind(self, node: ast.expr) -> str:
        """Kind of the values of a node. Raises SpaceError for a node that is not on the whitelist."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return _kind_of(node.value)
        if isinstance(node, ast.Constant) and node.value is None:
            return MIXED
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._kind_of_parameter(self._name(node))
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return self._number(node, node.left, node.right)
        if isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
            return self._number(node, node.operand)
        if isinstance(node, (ast.BoolOp, ast.Compare)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            raise self._error(f"has the condition {ast.unparse(node)!r} where a value must stand")
        raise self._error(
            f"has {ast.unparse(node)!r}; it may have names of parameters, numbers, texts, + - * / // % **, "
            "comparisons, in, and, or, not. For more give a function of the configuration"
        )

    def _number(self, node: ast.expr, *parts: ast.expr) -> str:
        for part in parts:
            if (kind := self._kind(part)) != NUMBER:
                raise self._error(f"computes with {ast.unparse(part)!r} in {ast.unparse(node)!r}, which is {kind}")
        return NUMBER

    def _kind_of_parameter(self, name: str) -> str:
        parameter = self._parameters[name]
        if parameter.is_numeric:
            return NUMBER
        kinds = {_kind_of(choice) for choice in _choices(parameter)} or {MIXED}
        return kinds.pop() if len(kinds) == 1 else MIXED

    def _largest(self, node: ast.expr) -> float:
        """Largest magnitude in a node; infinite if it contains more than sums, products and comparisons of numbers."""
        try:
            return self._magnitude(node)
        except OverflowError:  # integers too large for a float
            return math.inf

    def _magnitude(self, node: ast.expr) -> float:
        if isinstance(node, ast.Compare):
            lists = [_elements(each) or [each] for each in (node.left, *node.comparators)]
            return max(self._largest(each) for several in lists for each in several)
        if self._kind(node) != NUMBER:
            return math.inf
        if isinstance(node, ast.Constant):
            return abs(node.value)  # type: ignore[arg-type]  # its kind is NUMBER
        if isinstance(node, ast.UnaryOp):
            return self._largest(node.operand)
        if isinstance(node, ast.BinOp):
            left, right = self._largest(node.left), self._largest(node.right)
            grown = left * right if isinstance(node.op, ast.Mult) else left + right
            return max(left, right, grown) if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)) else math.inf
        parameter = self._parameters[self._name(node)]
        scale = parameter.scale
        return float(max(map(abs, (scale.low, scale.high) if scale else _choices(parameter))))

    def _name(self, node: ast.expr) -> str:
        name = ast.unparse(node)
        name = self._as_read.get(name, name)
        if name not in self._parameters:
            raise self._error(
                f"names {name!r}, which is not among {list(self._parameters)}. Texts need quotes; of a parameter whose "
                "name is no word, give a function of the configuration"
            )
        return name


def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise SpaceError(f"a constraint has at most {LONGEST} characters, but got {len(text)}. Give a function.")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SpaceError(
            f'a constraint must read like Python, as in "batch * width <= 4096", but got {text!r} ({error}).'
        ) from None


def _names(node: ast.expr) -> Iterator[ast.expr]:
    """Nodes of names in an expression; a name with dots is one node."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _names(child)


def _elements(node: ast.expr) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []


def _choices(parameter: Parameter) -> list[Any]:
    """Choices of a parameter; empty for a numeric one."""
    if parameter.is_numeric or parameter.levels is None:
        return []
    return parameter.decode_plain(parameter.from_level(torch.arange(parameter.levels, dtype=torch.float64)))


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return TRUTH
    return NUMBER if isinstance(value, (int, float)) else TEXT if isinstance(value, str) else MIXED


def _as_truth(found: Any) -> np.ndarray:
    """Results of a comparison of objects as booleans."""
    return np.asarray(found).astype(bool)
