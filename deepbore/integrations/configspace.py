"""Spaces of ConfigSpace, as SMAC, DEHB and many benchmarks have them: read and written."""

import ast
import re
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from deepbore.errors import MissingPackage, SpaceError
from deepbore.space import Categorical, Condition, Integer, Ordinal, Parameter, Real, SearchSpace
from deepbore.space.conditions import COMPARISON, spans_of
from deepbore.space.constraints import Constraint
from deepbore.space.parameters.base import UNSET

try:
    import ConfigSpace as cs
except ImportError:
    cs = None

if TYPE_CHECKING:
    from ConfigSpace.conditions import ConditionLike
    from ConfigSpace.forbidden import ForbiddenLike
    from ConfigSpace.hyperparameters import Hyperparameter

Leaf = tuple[str, str, Any]  # name, operator of Python, a value or another `Name`
MOST_LEVELS = 1000  # of a parameter whose values are listed
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in"}
FLIPPED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.In: "in",
         ast.NotIn: "not in"}  # fmt: skip
CLAUSES = {
    "==": "ForbiddenEqualsClause", "<": "ForbiddenLessThanClause", "<=": "ForbiddenLessThanEqualsClause",
    ">": "ForbiddenGreaterThanClause", ">=": "ForbiddenGreaterThanEqualsClause", "in": "ForbiddenInClause",
}  # fmt: skip
RELATIONS = {
    "==": "ForbiddenEqualsRelation", "<": "ForbiddenLessThanRelation", "<=": "ForbiddenLessThanEqualsRelation",
    ">": "ForbiddenGreaterThanRelation", ">=": "ForbiddenGreaterThanEqualsRelation",
}  # fmt: skip


class Name(str):
    """The name of another parameter, on the right of a comparison."""

    __slots__ = ()


def _require() -> None:
    """Raises MissingPackage without ConfigSpace."""
    if cs is None:
        raise MissingPackage("spaces of ConfigSpace need it: pip install 'deepbore[configspace]'.")


# --- read ------------------------------------------------------------------------------------------------------------


def from_configspace(space: "cs.ConfigurationSpace") -> SearchSpace:
    """The same space for deepbore: ranges, logs, choices, conditions, forbidden clauses, and the default configuration.

    Configurations are equal in both: `dict(configuration)` of ConfigSpace can be enqueued, and `trial.params` is
    accepted by `ConfigSpace.Configuration(space, values=...)`.

    Args:
        space: a `ConfigurationSpace` of ConfigSpace 1.0 or later.

    Raises:
        SpaceError: naming it, for what has no counterpart: constants, normal and beta distributions, weights of
            choices, alternatives ("or") of conditions on several parents.

    Example::

        space = from_configspace(ConfigSpace.ConfigurationSpace({"lr": ConfigSpace.Float("lr", (1e-5, 1), log=True)}))
    """
    _require()
    conditions: dict[str, list[Condition]] = {}
    for condition in space.conditions:
        children = {each.child.name for each in _parts(condition)}
        conditions.setdefault(children.pop(), []).extend(_conditions(condition))
    parameters = {each.name: _parameter(each, conditions.get(each.name)) for each in space.values()}
    constraints = [text for clause in space.forbidden_clauses for text in _expressions(clause)]
    return SearchSpace(parameters, constraints=constraints)


def _parameter(theirs: "Hyperparameter", when: list[Condition] | None) -> Parameter:
    about: dict[str, Any] = {"when": when or None, "default": theirs.default_value}
    try:
        if isinstance(theirs, cs.UniformFloatHyperparameter):
            return Real(theirs.lower, theirs.upper, log=theirs.log, **about)
        if isinstance(theirs, cs.UniformIntegerHyperparameter):
            return Integer(theirs.lower, theirs.upper, log=theirs.log, **about)
        if isinstance(theirs, cs.OrdinalHyperparameter):
            return Ordinal(list(theirs.sequence), **about)
        if isinstance(theirs, cs.CategoricalHyperparameter):
            if theirs.weights is not None and len(set(theirs.weights)) > 1:
                raise SpaceError("its choices have weights, which deepbore has not: leave them out")
            return Categorical(list(theirs.choices), **about)
    except SpaceError as error:
        raise SpaceError(f"{theirs.name!r} has no counterpart in deepbore: {error}") from None
    hint = "leave it out, and let the objective set it" if isinstance(theirs, cs.Constant) else "give a uniform one"
    raise SpaceError(f"{theirs.name!r}, a {type(theirs).__name__}, has no counterpart in deepbore: {hint}.")


def _parts(condition: "ConditionLike") -> list[Any]:
    """The conditions in a conjunction, in those within it, too."""
    if isinstance(condition, (cs.AndConjunction, cs.OrConjunction)):
        return [one for each in condition.components for one in _parts(each)]
    return [condition]


def _conditions(condition: "ConditionLike") -> list[Condition]:
    """The conditions that must all hold."""
    if isinstance(condition, cs.AndConjunction):
        return [one for each in condition.components for one in _conditions(each)]
    if isinstance(condition, cs.OrConjunction):
        parts = _parts(condition)
        within = [_conditions(each) for each in condition.components]
        if len({each.parent.name for each in parts}) > 1 or any(len(each) > 1 for each in within):
            raise SpaceError(
                f"the condition of {parts[0].child.name!r}, {condition}, has no counterpart in deepbore: alternatives "
                "must be values of one parent."
            )
        return [Condition(parts[0].parent.name, [value for each in within for value in each[0].values])]
    parent = condition.parent
    if isinstance(condition, cs.InCondition):
        return [Condition(parent.name, list(condition.values))]
    if isinstance(condition, cs.EqualsCondition):
        return [Condition(parent.name, [condition.value])]
    choices = getattr(parent, "choices", getattr(parent, "sequence", ()))
    if isinstance(condition, cs.NotEqualsCondition) and choices:
        return [Condition(parent.name, [each for each in choices if each != condition.value])]
    sign = {cs.NotEqualsCondition: "!=", cs.GreaterThanCondition: ">", cs.LessThanCondition: "<"}[type(condition)]
    return [Condition(parent.name, f"{sign} {condition.value}")]


def _expressions(clause: "ForbiddenLike") -> list[str]:
    """The expressions that forbid what a clause does: each holds where one of its parameters is inactive."""
    return [f"not ({' and '.join(conjunction)})" for conjunction in _conjunctions(clause)]


def _conjunctions(clause: "ForbiddenLike") -> list[list[str]]:
    """Alternatives, each a list of comparisons that all hold where a clause forbids."""
    if isinstance(clause, cs.ForbiddenOrConjunction):
        return [one for each in clause.components for one in _conjunctions(each)]
    if isinstance(clause, cs.ForbiddenAndConjunction):
        several = product(*(_conjunctions(each) for each in clause.components))
        return [[leaf for part in one for leaf in part] for one in several]
    if type(clause).__name__ in RELATIONS.values():
        sign = next(sign for sign, each in RELATIONS.items() if type(clause).__name__ == each)
        return [[f"{_word(clause.left)} {sign} {_word(clause.right)}"]]
    sign = next(sign for sign, each in CLAUSES.items() if type(clause).__name__ == each)
    value = [_plain(each) for each in clause.values] if sign == "in" else _plain(clause.value)
    return [[f"{_word(clause.hyperparameter)} {sign} {value!r}"]]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _word(parameter: "Hyperparameter") -> str:
    """The name of a parameter in an expression."""
    if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", parameter.name) is None:
        raise SpaceError(f"a forbidden clause names {parameter.name!r}, which is no word: rename it.")
    return str(parameter.name)


# --- written ---------------------------------------------------------------------------------------------------------


def to_configspace(space: SearchSpace) -> "cs.ConfigurationSpace":
    """The same space for ConfigSpace; choices that are objects have their names in it.

    Numbers with a step become ordinals of their values, as ConfigSpace has no steps.

    Raises:
        SpaceError: naming it, for what has no counterpart: fixed parameters, functions as constraints, expressions that
            compute with parameters, and steps with more than a thousand values.
    """
    _require()
    if space.is_fixed:
        raise SpaceError(f"fixed parameters ({list(space.fixed)}) have no counterpart in ConfigSpace. Release them.")
    theirs = {name: _hyperparameter(name, parameter) for name, parameter in space.parameters.items()}
    made = cs.ConfigurationSpace()
    made.add(*theirs.values())
    for name, parameter in space.parameters.items():
        parts = [_condition(name, each, space, theirs) for each in parameter.conditions]
        if parts:
            made.add(parts[0] if len(parts) == 1 else cs.AndConjunction(*parts))
    for constraint in space.constraints:
        made.add(*_forbidden(constraint, space, theirs))
    return made


def _hyperparameter(name: str, parameter: Parameter) -> "Hyperparameter":
    default = None if parameter.default is UNSET else parameter.plain(parameter.default)
    scale, levels = parameter.scale, parameter.levels
    if scale is None:
        names = _values(name, parameter)
        kind = cs.OrdinalHyperparameter if parameter.is_ordered else cs.CategoricalHyperparameter
        return kind(name, names) if parameter.default is UNSET else kind(name, names, default_value=default)
    if getattr(parameter, "step", None) is not None:
        values = _values(name, parameter)
        return cs.OrdinalHyperparameter(name, values, default_value=values[0] if default is None else default)
    kind = cs.UniformFloatHyperparameter if levels is None else cs.UniformIntegerHyperparameter
    return kind(name, scale.low, scale.high, default_value=default, log=scale.log)


def _values(name: str, parameter: Parameter) -> list[Any]:
    """The values of a parameter with levels."""
    if parameter.levels is None or parameter.levels > MOST_LEVELS:
        raise SpaceError(f"{name!r} has too many values ({parameter.levels}) to list them for ConfigSpace.")
    return parameter.decode_plain(parameter.from_level(torch.arange(parameter.levels, dtype=torch.float64)))


def _condition(child: str, condition: Condition, space: SearchSpace, theirs: dict[str, Any]) -> Any:
    parent, one, other = space.parameters[condition.parent], theirs[child], theirs[condition.parent]
    if parent.levels is not None and parent.levels <= MOST_LEVELS:
        spans, values = spans_of(condition, parent), _values(condition.parent, parent)
        held = [value for level, value in enumerate(values) if any(low <= level <= high for low, high in spans)]
        return cs.EqualsCondition(one, other, held[0]) if len(held) == 1 else cs.InCondition(one, other, held)
    parts = [kind(one, other, bound) for kind, bound in _comparisons(condition, parent)]
    return parts[0] if len(parts) == 1 else cs.OrConjunction(*parts)


def _comparisons(condition: Condition, parent: Parameter) -> list[tuple[Any, Any]]:
    """Alternatives of a condition on a number: the class of ConfigSpace, and the bound."""
    less, equal, greater, other = (
        cs.LessThanCondition,
        cs.EqualsCondition,
        cs.GreaterThanCondition,
        cs.NotEqualsCondition,
    )
    kinds = {"<": [less], "<=": [less, equal], "==": [equal], "!=": [other], ">=": [greater, equal], ">": [greater]}
    found = []
    for value in condition.values:
        written = COMPARISON.fullmatch(value) if isinstance(value, str) else None
        bound = float(written[2]) if written else value
        bound = bound if parent.levels is None else int(bound)
        found += [(kind, bound) for kind in kinds[written[1] if written else "=="]]
    return found


def _forbidden(constraint: Constraint, space: SearchSpace, theirs: dict[str, Any]) -> list[Any]:
    """The clauses that forbid what a constraint does."""

    def refused(why: str) -> SpaceError:
        return SpaceError(f"the constraint {str(constraint)!r} has no counterpart in ConfigSpace: {why}.")

    if not isinstance(plain := constraint.plain(), str):
        raise refused("it is a function")
    try:
        alternatives = _alternatives(ast.parse(plain.strip(), mode="eval").body, True, space)
    except NotImplementedError as error:
        raise refused(f"it has {error}, where a parameter is compared with a value or another one") from None
    clauses = []
    for leaves in alternatives:
        named = {name for one, _, other in leaves for name in (one, *([other] if isinstance(other, Name) else []))}
        if missing := [name for name in constraint.names if name not in named and space.parameters[name].conditions]:
            raise refused(f"it says nothing where {missing[0]!r} is inactive")
        parts = [_clause(leaf, space, theirs, refused) for leaf in leaves]
        clauses.append(parts[0] if len(parts) == 1 else cs.ForbiddenAndConjunction(*parts))
    return clauses


def _clause(leaf: Leaf, space: SearchSpace, theirs: dict[str, Any], refused: Callable[[str], SpaceError]) -> Any:
    name, sign, value = leaf
    if isinstance(value, Name):
        if sign not in RELATIONS:
            raise refused(f"ConfigSpace can't forbid that {name} {sign} {value}")
        return getattr(cs, RELATIONS[sign])(theirs[name], theirs[value])
    if sign in ("!=", "not in") or (sign in ("<", "<=", ">", ">=") and space.parameters[name].scale is None):
        excluded = value if sign == "not in" else [value]
        if sign not in ("!=", "not in"):
            raise refused(f"{name} is a choice, without a {sign}")
        others = [each for each in _values(name, space.parameters[name]) if each not in excluded]
        return cs.ForbiddenInClause(theirs[name], others)
    return getattr(cs, CLAUSES[sign])(theirs[name], value)


def _alternatives(node: ast.expr, negated: bool, space: SearchSpace) -> list[list[Leaf]]:
    """A condition, or its negation, as alternatives of comparisons that all hold.

    Raises:
        NotImplementedError: with the text of what is neither `and`, `or`, `not` nor a comparison with a value.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _alternatives(node.operand, not negated, space)
    if isinstance(node, ast.BoolOp):
        parts = [_alternatives(each, negated, space) for each in node.values]
        if isinstance(node.op, ast.Or) is not negated:
            return [one for part in parts for one in part]
        return [[leaf for part in one for leaf in part] for one in product(*parts)]
    if not isinstance(node, ast.Compare):
        raise NotImplementedError(ast.unparse(node))
    sides = [node.left, *node.comparators]
    leaves = [_leaf(*each, space) for each in zip(sides[:-1], node.ops, sides[1:], strict=True)]
    if negated:
        return [[(name, NEGATED[sign], value)] for name, sign, value in leaves]
    return [leaves]


def _leaf(left: ast.expr, sign: ast.cmpop, right: ast.expr, space: SearchSpace) -> Leaf:
    one, other, op = _side(left, space), _side(right, space), SIGNS[type(sign)]
    if isinstance(one, Name):
        return str(one), op, other
    if isinstance(other, Name) and op in FLIPPED:
        return str(other), FLIPPED[op], one
    raise NotImplementedError(f"{ast.unparse(left)} beside {ast.unparse(right)}")


def _side(node: ast.expr, space: SearchSpace) -> Any:
    """A name, or a value."""
    if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in space.parameters:
        return Name(ast.unparse(node))
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise NotImplementedError(ast.unparse(node)) from None
