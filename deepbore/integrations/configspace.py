"""Spaces of ConfigSpace, as SMAC, DEHB and many benchmarks have them: read and written."""

import ast
import re
import warnings
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import torch

from deepbore.errors import MissingPackage, SpaceError
from deepbore.space import Categorical, Condition, Integer, Normal, Ordinal, Parameter, Real, SearchSpace
from deepbore.space.conditions import COMPARISON, spans_of
from deepbore.space.constraints import Constraint
from deepbore.space.parameters.base import UNSET
from deepbore.space.parameters.priors import UNIFORM

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

    Normal distributions and weights of choices are priors here. A default is one, too, unless it is the one that
    ConfigSpace gives where none is given.

    Configurations are equal in both: `dict(configuration)` of ConfigSpace can be enqueued, and `trial.params` is
    accepted by `ConfigSpace.Configuration(space, values=...)`.

    Args:
        space: a `ConfigurationSpace` of ConfigSpace 1.0 or later.

    Raises:
        SpaceError: naming it, for what has no counterpart: constants, beta distributions, normal ones whose mean is
            outside their bounds, alternatives ("or") of conditions on several parents.

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
    about: dict[str, Any] = {"when": when or None, "default": theirs.default_value, "prior": _prior(theirs)}
    try:
        if isinstance(theirs, (cs.UniformFloatHyperparameter, cs.NormalFloatHyperparameter)):
            return Real(theirs.lower, theirs.upper, log=theirs.log, **about)
        if isinstance(theirs, (cs.UniformIntegerHyperparameter, cs.NormalIntegerHyperparameter)):
            return Integer(theirs.lower, theirs.upper, log=theirs.log, **about)
        if isinstance(theirs, cs.OrdinalHyperparameter):
            return Ordinal(list(theirs.sequence), **about)
        if isinstance(theirs, cs.CategoricalHyperparameter):
            return Categorical(list(theirs.choices), **about)
    except SpaceError as error:
        raise SpaceError(f"{theirs.name!r} has no counterpart in deepbore: {error}") from None
    way_out = "give a uniform or a normal one"
    hint = "leave it out, and let the objective set it" if isinstance(theirs, cs.Constant) else way_out
    raise SpaceError(f"{theirs.name!r}, a {type(theirs).__name__}, has no counterpart in deepbore: {hint}.")


def _prior(theirs: "Hyperparameter") -> Normal | list[float] | str | None:
    """What a distribution says of the best value; None for no more than a default that was given."""
    if isinstance(theirs, (cs.NormalFloatHyperparameter, cs.NormalIntegerHyperparameter)):
        shift = (
            theirs.lower if theirs.log else 0.0
        )  # in ConfigSpace the deviation of the logarithm is log(lower + sigma)
        spread = theirs.sigma + shift
        return Normal(theirs.mu, max(spread, 1 / spread) if theirs.log else spread)
    weights = getattr(theirs, "weights", None)
    if weights is not None and len(set(weights)) > 1:
        return [float(each) for each in weights]
    return UNIFORM if _has_own_default(theirs) else None


def _has_own_default(theirs: "Hyperparameter") -> bool:
    """Whether the default is the one that ConfigSpace gives where none is given."""
    if isinstance(theirs, (cs.UniformFloatHyperparameter, cs.UniformIntegerHyperparameter)):
        given = type(theirs)("_", theirs.lower, theirs.upper, log=theirs.log)
    elif isinstance(theirs, (cs.OrdinalHyperparameter, cs.CategoricalHyperparameter)):
        given = type(theirs)("_", getattr(theirs, "sequence", getattr(theirs, "choices", ())))
    else:
        return False
    return bool(given.default_value == theirs.default_value)


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

    Numbers with a step become ordinals of their values, as ConfigSpace has no steps. Priors of numbers and of
    categories are kept; those of ordinals are left out with a warning.

    Raises:
        SpaceError: naming it, for what has no counterpart: fixed parameters, functions as constraints, expressions that
            compute with parameters, and steps with more than a thousand values.
    """
    _require()
    if space.points.is_fixed:
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
    scale, prior = parameter.scale, None if parameter.prior == UNIFORM else parameter.prior
    is_stepped = getattr(parameter, "step", None) is not None
    if prior is not None and parameter.is_ordered and (scale is None or is_stepped):
        warnings.warn(f"ordinals of ConfigSpace have no weights: the prior of {name!r} is left out.", stacklevel=4)
    if scale is None:
        names = _values(name, parameter)
        kind = cs.OrdinalHyperparameter if parameter.is_ordered else cs.CategoricalHyperparameter
        about = {} if parameter.default is UNSET else {"default_value": default}
        about |= {} if prior is None or parameter.is_ordered else {"weights": list(prior)}
        return kind(name, names, **about)
    if is_stepped:
        values = _values(name, parameter)
        return cs.OrdinalHyperparameter(name, values, default_value=values[0] if default is None else default)
    return _number(name, parameter, default, prior)


def _number(name: str, parameter: Parameter, default: Any, prior: Normal | None) -> "Hyperparameter":
    scale, is_real = parameter.scale, parameter.levels is None
    assert scale is not None
    about: dict[str, Any] = {"lower": scale.low, "upper": scale.high, "default_value": default, "log": scale.log}
    if prior is None:
        return (cs.UniformFloatHyperparameter if is_real else cs.UniformIntegerHyperparameter)(name, **about)
    sigma = prior.spread - (scale.low if scale.log else 0.0)
    if sigma <= 0:  # the deviation of the logarithm is log(lower + sigma) there
        raise SpaceError(
            f"the prior of {name!r} has no counterpart in ConfigSpace, for a range far above 1. Leave it out."
        )
    kind = cs.NormalFloatHyperparameter if is_real else cs.NormalIntegerHyperparameter
    return kind(name, mu=prior.centre, sigma=sigma, **about)


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
