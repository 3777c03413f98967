"""`SearchSpace`: the domain of an optimisation, and `Points`, its view for models and searches."""

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor

from deepbore.errors import DeprecatedUse, PointError, ShapeError, SpaceError
from deepbore.space.annotations import parameters_of
from deepbore.space.constraints import Constraint, Constraints, Given
from deepbore.space.encoding import OPEN, Encoding, Params
from deepbore.space.enumeration import Enumeration
from deepbore.space.features import Features
from deepbore.space.parameters import Parameter
from deepbore.space.parameters.base import UNSET
from deepbore.space.sampling import Sampler
from deepbore.space.structure import SpaceStructure, free_name, read_declaration
from deepbore.text import as_html

FORMER_NAMES = {"released": "without_fixed", "stand_still": "apply_fixed", "is_wide": "is_high_dimensional"}
VIEWS = ("structure", "encoding", "enumeration", "sampler")


class Points:
    """A search space as models and searches see it: points, which are tensors (n x d), and what kind they are of.

    It is `SearchSpace.points`. A point is a float64 row of d numbers (see `deepbore.space.parameters`). Inactive
    parameters are 0 in it and left out of the configuration, so equal configurations are equal points. Methods that
    take points run on the device of the points, methods that draw points on the device of the generator.

    Attributes:
        space: the search space.
        structure: columns of points, conditions and fixed values.
        encoding: native configurations to points and back.
        enumeration: number and list of all points.
        sampler: designs, random points and neighbours.
    """

    def __init__(self, space: "SearchSpace", structure: SpaceStructure, constraints: Constraints):
        self.space, self.structure, self.constraints = space, structure, constraints
        self.parameters = structure.parameters
        self.encoding = Encoding(structure, constraints)
        self.enumeration = Enumeration(structure, constraints)
        self.sampler = Sampler(structure, constraints, self.enumeration)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("points"), (self.space,)

    # --- kinds and columns -------------------------------------------------------------------------------------------

    @property
    def is_continuous(self) -> bool:
        """Whether every parameter is continuous and unconditional."""
        return self.structure.is_continuous

    @property
    def is_high_dimensional(self) -> bool:
        """Whether there are ten parameters or more, all of them ordered and unconditional."""
        return self.structure.is_high_dimensional

    @property
    def is_conditional(self) -> bool:
        """Whether any parameter has a condition."""
        return self.structure.is_conditional

    @property
    def is_fixed(self) -> bool:
        """Whether any parameter is fixed."""
        return self.structure.is_fixed

    @property
    def is_restricted(self) -> bool:
        """Whether there are constraints or fixed parameters, so that not every point may be proposed."""
        return self.constraints.is_restricted

    @property
    def has_prior(self) -> bool:
        """Whether anything is believed of the best value of a parameter that is not fixed."""
        return bool(self.structure.believed_columns)

    @property
    def continuous_columns(self) -> tuple[int, ...]:
        """Columns of continuous parameters, including conditional ones."""
        return self.structure.continuous_columns

    @property
    def library_columns(self) -> tuple[int, ...]:
        """Columns of libraries (`Library`) that are not fixed."""
        return self.structure.library_columns

    @property
    def moving_columns(self) -> tuple[int, ...]:
        """Columns of parameters that gradients move, continuous ones and the finest grids, and that are not fixed."""
        return self.structure.moving_columns

    @property
    def free_columns(self) -> tuple[int, ...]:
        """Columns of parameters that are not fixed."""
        return self.structure.free_columns

    @property
    def believed_columns(self) -> tuple[int, ...]:
        """Columns of parameters of whose best values something is believed, and that are not fixed."""
        return self.structure.believed_columns

    @property
    def parents_first(self) -> list[str]:
        """The names of the parameters, each after the parents that its conditions name."""
        return [self.space.names[column] for column in self.structure.conditions.order]

    @property
    def bounds(self) -> Tensor:
        """Least and greatest entries of a point, 2 x d: [0, 1] for numeric columns, [0, K - 1] for level indices."""
        return self.structure.bounds

    @cached_property
    def without_fixed(self) -> "SearchSpace":
        """The same space without fixed parameters."""
        return self.space.with_fixed({}) if self.is_fixed else self.space

    # --- native configurations <-> points ----------------------------------------------------------------------------

    def encode_columns(self, columns: Mapping[str, Sequence[Any]]) -> Tensor:
        """Columns of native values (name -> n values; a dict or a DataFrame) -> points (n x d).

        Values in rows where the parameter is inactive are ignored.

        Raises:
            PointError: for an unknown or missing column, columns of different length, a value outside its parameter, or
                a combination that a constraint forbids.
        """
        return self.encoding.encode_columns(columns)

    def decode_columns(self, points: Tensor) -> dict[str, list[Any]]:
        """Points (n x d) -> columns (name -> n values), None where a parameter is inactive; objects by name."""
        self.check_points(points)
        return self.encoding.decode_columns(points.detach().cpu())

    def plain(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration, or a part of one, as journals and tables have it: choices that are objects by name."""
        return {name: self.space.parameters[name].plain(value) for name, value in params.items()}

    def encode_part(self, params: Mapping[str, Any]) -> Tensor:
        """A configuration, or a part of one -> a point (d) that is OPEN, -1, where parameters are missing.

        Parents that a given parameter needs are not missing, if only one of their values makes it active.

        Raises:
            PointError: for an unknown parameter, one that can't be active beside the others, a value outside its
                parameter, or values that constraints forbid.
        """
        if not isinstance(params, Mapping):
            raise PointError(f"a configuration must map names to values, but got {params!r:.100}. Give a dict.")
        self.encoding.check_names(params)
        point = self.encoding.encode_part(params)
        if (point != OPEN).all():
            return self.space.encode([self.structure.with_parents(self.encoding.without_gaps(params))])[0]
        try:
            self.with_part(point)
        except SpaceError as error:
            raise PointError(f"{dict(params)} can't be completed: {error}") from None
        return point

    def changed(self, params: Params, changes: Params) -> Params:
        """A configuration with changes: what these make inactive is left out, what they make active is missing.

        Raises:
            PointError: for an unknown parameter, or a value outside its parameter.
        """
        self.encoding.check_names(changes)
        return self.encoding.changed(params, changes)

    def with_part(self, point: Tensor) -> "SearchSpace":
        """The same space, where the parameters of a point of `encode_part` (d) are fixed, too."""
        known = {name: column for column, name in enumerate(self.space.names) if point[column] != OPEN}
        values = {name: self.space.parameters[name].decode(point[[column]].cpu())[0] for name, column in known.items()}
        return self.space.with_fixed(self.structure.without_unused({**self.space.fixed, **values}))

    def identify(self, points: Tensor) -> list[Hashable]:
        """Keys (n) that are equal for two points exactly if these decode to equal configurations."""
        self.check_points(points)
        return self.encoding.identify(points.detach().cpu())

    def check_points(self, points: Tensor) -> None:
        """Raises ShapeError unless points are a tensor, n x d."""
        if not isinstance(points, Tensor):
            raise ShapeError(f"points must be a tensor of shape n x {len(self.space)}, but got {points!r:.100}.")
        if points.ndim != 2 or points.shape[-1] != len(self.space):
            raise ShapeError(f"points must have shape n x {len(self.space)}, but got {tuple(points.shape)}.")

    @property
    def features(self) -> Features:
        """A new first layer for a network on this space: points (n x d) -> features (n x e)."""
        return Features(self.structure)

    # --- points ------------------------------------------------------------------------------------------------------

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point: n x d booleans."""
        return self.structure.active(points)

    def snap(self, points: Tensor) -> Tensor:
        """The points of the configurations that `points` decode to: levels rounded, inactive parameters 0 (n x d).

        Fixed parameters get their values; points that a constraint forbids stay forbidden (see `permitted`). Keeps
        gradients in the columns of real parameters.
        """
        return self.structure.snap(points)

    def apply_fixed(self, points: Tensor) -> Tensor:
        """The points with fixed parameters at their values, active or not (n x d)."""
        return self.structure.apply_fixed(points)

    def permitted(self, points: Tensor) -> Tensor:
        """Which points may be proposed: constraints hold, and fixed parameters have their values (n booleans).

        Raises:
            SpaceError: if a constraint can't be evaluated.
        """
        return self.constraints.permitted(points)

    def project_to_feasible(self, starts: Tensor, ends: Tensor) -> Tensor:
        """Permitted points on the segments from permitted `starts` to `ends`, as near to the ends as is tried (k x d).

        A forbidden end is replaced by the middle of the segment, then by the middle of the rest, and so on, at last by
        the start. All are snapped.

        Args:
            starts: permitted points, k x d.
            ends: any points, k x d.
        """
        return self.sampler.project_to_feasible(starts, ends)

    def in_the_middle(self, points: Tensor) -> Tensor:
        """The points with each parameter that gradients move in its middle, but for those with a prior (n x d)."""
        return self.sampler.in_the_middle(points)

    def sample(self, n: int, generator: torch.Generator, prior: bool = False) -> Tensor:
        """n independent permitted points, uniform over each parameter's scale (n x d), on the generator's device.

        With `prior` parameters of whose best values something is believed have that distribution.
        """
        return self.sampler.sample(n, generator, prior)

    def sample_any(self, n: int, generator: torch.Generator) -> Tensor:
        """As `sample`, without regard to constraints."""
        return self.sampler.sample_any(n, generator)

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """n independent values of every parameter, active or not (n x d)."""
        return self.sampler.draw(n, generator)

    def sobol(
        self, n: int, seed: int, skip: int = 0, device: torch.device | str = "cpu", prior: bool = False
    ) -> Tensor:
        """Points number `skip` ... `skip` + n - 1 of the scrambled Sobol sequence of this seed (n x d).

        Points that constraints forbid are left out, and not counted. If few are permitted, random points follow.

        With `prior` parameters of whose best values something is believed have that distribution: each number of the
        sequence goes through the inverse of its distribution function, so that values stay stratified. The first point
        of the sequence then has their likeliest values; every fourth is uniform, as beliefs may be wrong.
        """
        return self.sampler.sobol(n, seed, skip, device, prior)

    def log_prior(self, points: Tensor, doubt: Tensor | float = 0.0) -> Tensor:
        """Points (n x d) -> log density of what is believed of the best point (n), with gradients.

        The sum over active parameters that are not fixed of `Parameter.log_prior`. It is relative to the points of
        `sample`, whose mean density is 1 in each branch; so a branch is not likelier for having parameters of its own.

        Args:
            points: n x d.
            doubt: the share of a uniform distribution in each parameter's, in [0, 1): one number, or one for each of
                `believed_columns`. It bounds how unlikely a value is.

        Example:
            >>> from deepbore import Normal, Real
            >>> space = SearchSpace({"x": Real(0, 1, prior=Normal(0.2, 0.1)), "y": Real(0, 1)})
            >>> space.points.log_prior(space.encode([{"x": 0.2, "y": 0.5}, {"x": 0.4, "y": 0.5}])).round(decimals=2)
            tensor([ 1.4100, -0.5900], dtype=torch.float64)
        """
        self.check_points(points)
        each = self.structure.log_priors(points)
        share = torch.as_tensor(doubt, dtype=each.dtype, device=each.device)
        return torch.logaddexp(each + (1 - share).log(), share.log().expand_as(each)).sum(-1)

    def doubts(self, point: Tensor, doubt: float) -> Tensor:
        """How doubtful what is believed of each parameter is beside the best point that is known (b).

        By Bayes' rule, as the point is drawn either from what is believed of a parameter, or from a uniform
        distribution: doubt / (doubt + (1 - doubt) density).

        Args:
            point: d.
            doubt: the probability that a belief is wrong before anything is known, in (0, 1).
        """
        density = self.structure.log_priors(point[None])[0].exp()
        return doubt / (doubt + (1 - doubt) * density)

    def neighbours(self, points: Tensor, n: int, generator: torch.Generator) -> Tensor:
        """n random neighbours of the given points, each with one or two parameters changed (n x d).

        A category changes to any other one, an ordered level to any other with a preference for the next; other
        numbers take a Gaussian step whose scale is log-uniform between 1e-3 and 0.5, reflected at the bounds.

        Args:
            points: centres, k x d; each neighbour picks one at random.
            n: number of neighbours.
            generator: stream of random numbers, drawn on its own device.
        """
        self.check_points(points)
        return self.sampler.neighbours(points, n, generator)

    def neighbour_of_each(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """One random neighbour of each point, in their order and on their device (n x d); see `neighbours`.

        It is the point itself, snapped, where constraints forbid several neighbours in a row.
        """
        self.check_points(points)
        return self.sampler.neighbour_of_each(points, generator)

    def likelier_back(self, points: Tensor, neighbours: Tensor) -> Tensor:
        """log q(neighbour -> point) - log q(point -> neighbour) of each point and its `neighbour_of_each` (n).

        The correction for asymmetric proposals in a Metropolis-Hastings step. Constraints are not considered.
        """
        return self.sampler.likelier_back(points, neighbours)

    def enumerate(self) -> Tensor:
        """Every permitted point of a finite space (cardinality x d), sorted by the columns.

        Raises:
            SpaceError: if a parameter is continuous, or the points would take more than 8 GB.
        """
        return self.enumeration.points()


class SearchSpace:
    """The domain of an optimisation: d named parameters, possibly conditional.

    What users need is here; `points` has what models and searches ask.

    Constraints forbid combinations, such as `"batch * width <= 4096"`: they are never proposed, and not accepted as
    results. An expression holds where one of its parameters is inactive; a function gets active parameters only.

    Args:
        parameters: name -> parameter, or pairs of them, in the order of a point's columns.
        constraints: expressions over names of parameters (arithmetic, comparisons, `in`, and, or, not), and functions
            configuration -> True or False, which must all hold. A journal keeps expressions, and names of functions.
            In expressions, as in conditions, choices that are objects have their names.
        fixed: name -> value of fixed parameters, where they are active; see `with_fixed`.

    Attributes:
        parameters: name -> parameter.
        names: names of the parameters.
        points: the space as models and searches see it (`Points`).

    Raises:
        SpaceError: for an empty space, a name that is no string or not unique, a condition on an unknown or circular
            parent, an invalid expression, or constraints that no configuration was found to meet.

    Example:
        >>> from deepbore import Categorical, Integer, Real
        >>> space = SearchSpace({"lr": Real(1e-5, 1e-1, log=True), "act": Categorical(["relu", "tanh"])})
        >>> space.decode(space.encode([{"lr": 0.001, "act": "tanh"}]))
        [{'lr': 0.001, 'act': 'tanh'}]
        >>> SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=["a < b", "a * b <= 20"]).cardinality
        19
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]],
        *,
        constraints: Sequence[Given | Constraint] | Given = (),
        fixed: Mapping[str, Any] | None = None,
    ):
        structure = SpaceStructure(parameters, fixed)
        self.parameters, self.names = structure.parameters, structure.names
        self.points = Points(self, structure, Constraints(constraints, structure))

    def __len__(self) -> int:
        """d, the number of parameters."""
        return len(self.names)

    def __repr__(self) -> str:
        constraints = f", constraints={list(map(str, self.constraints))}" if self.constraints else ""
        return f"SearchSpace({self.parameters}{constraints}{f', fixed={self.fixed}' if self.points.is_fixed else ''})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchSpace) or list(self.parameters.items()) != list(other.parameters.items()):
            return False
        return (
            self.constraints == other.constraints
            and self.points.structure.fixed_entries == other.points.structure.fixed_entries
        )

    def __hash__(self) -> int:
        return hash(tuple(self.names))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable

    def __reduce__(self) -> tuple[Any, ...]:
        """The declaration alone: what is cached is found again."""
        return _made_again, (type(self), dict(self.parameters), list(self.constraints), self.fixed)

    def _repr_html_(self) -> str:
        """A table of the parameters, for notebooks."""
        rows = [[name, repr(parameter)] for name, parameter in self.parameters.items()]
        rows += [["constraint", str(each)] for each in self.constraints]
        rows += [["fixed", f"{name} = {self.parameters[name].plain(value)}"] for name, value in self.fixed.items()]
        return as_html(f"search space of {len(self)} parameters", rows)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An attribute by its former name, or one that has moved to `points`, with a DeprecationWarning."""
            moved = f"points.{FORMER_NAMES.get(name, name)}"
            if name.startswith("_") or (not hasattr(Points, moved.removeprefix("points.")) and name not in VIEWS):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name)
            warnings.warn(f"SearchSpace.{name} is now SearchSpace.{moved}.", DeprecatedUse, stacklevel=2)
            return attrgetter(moved)(self)

    # --- declaration -------------------------------------------------------------------------------------------------

    @classmethod
    def from_annotations(cls, annotated: Any, **parameters: Parameter) -> "SearchSpace":
        """The space of a dataclass, a pydantic model, a function, or any class with annotations.

        A field is a parameter where its annotation says which values there are; its default is tried first
        (`SearchSpace.default`). Other fields, which a program sets by itself, are left out if they have a default.

        | annotation | parameter |
        |---|---|
        | `Annotated[float, Real(1e-5, 1e-1, log=True)]` | the one that stands there |
        | `Literal["sgd", "adam"]`, `bool`, an enum | `Categorical` of these values |
        | `Annotated[float, Field(ge=0, le=1)]`, as in pydantic | `Real`, or for int `Integer`, between the bounds |

        Args:
            annotated: a class or an instance, whose values are then the defaults; or a function.
            parameters: name -> parameter, of fields whose annotations do not say enough, or say otherwise.

        Raises:
            SpaceError: naming each field without default that gives no parameter, or if there is no parameter.

        Example:
            >>> from dataclasses import dataclass
            >>> from typing import Annotated, Literal
            >>> from deepbore import Real
            >>> @dataclass
            ... class Settings:
            ...     lr: Annotated[float, Real(1e-5, 1e-1, log=True)] = 1e-3
            ...     optimizer: Literal["sgd", "adam"] = "adam"
            ...     log_every: int = 50
            >>> space = SearchSpace.from_annotations(Settings)
            >>> space.names, space.default
            (['lr', 'optimizer'], {'lr': 0.001, 'optimizer': 'adam'})
        """
        return cls(parameters_of(annotated, parameters))

    @property
    def default(self) -> dict[str, Any]:
        """Name -> value of the parameters that have a default, and are active with the others; see `Real`, ...

        A new study tries it first; what it leaves open is proposed.
        """
        given = {name: p.default for name, p in self.parameters.items() if p.default is not UNSET}
        return self.points.structure.without_unused(given, surely=True)

    @property
    def constraints(self) -> list[Constraint]:
        """The constraints."""
        return self.points.constraints.each

    @property
    def fixed(self) -> dict[str, Any]:
        """Name -> value of fixed parameters."""
        return self.points.structure.fixed

    def with_fixed(self, params: Mapping[str, Any]) -> "SearchSpace":
        """The same space, with only these parameters fixed, where they are active.

        Points, features and the configurations that can be encoded stay the same; only proposed points differ.

        Args:
            params: name -> value; {} fixes none.

        Raises:
            SpaceError: for an unknown name, a value outside its parameter, or values that constraints forbid.

        Example:
            >>> from deepbore import Integer
            >>> SearchSpace({"a": Integer(1, 9), "b": Integer(1, 3)}).with_fixed({"a": 5}).cardinality
            3
        """
        if params is None:
            raise SpaceError("fixed values are a dict, but got None. Give {} to release all.")
        return SearchSpace(self.parameters, constraints=self.constraints, fixed=params)

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON data, for `from_dict`."""
        declared: dict[str, Any] = {name: parameter.to_dict() for name, parameter in self.parameters.items()}
        if self.constraints:
            declared[free_name("constraints", self.parameters)] = self.points.constraints.plain()
        if self.points.is_fixed:
            declared[free_name("fixed", self.parameters)] = [self.fixed]
        return declared

    @classmethod
    def from_dict(cls, declared: Mapping[str, Any]) -> "SearchSpace":
        """The space declared by YAML or JSON.

        Args:
            declared: name -> {type: real | integer | ordinal | categorical, low, high, log, step | choices,
                when: {parent: values or comparison, ...}}; beside them `constraints: [expression, ...]`.

        Raises:
            SpaceError: for anything that is no valid space.

        Example:
            >>> SearchSpace.from_dict({"lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True}}).names
            ['lr']
        """
        parameters, constraints, fixed = read_declaration(declared)
        return cls(parameters, constraints=constraints, fixed=fixed)

    # --- properties --------------------------------------------------------------------------------------------------

    @property
    def cardinality(self) -> float:
        """The number of distinct configurations that may be proposed, exactly.

        `math.inf` if a parameter is continuous, from 1e300 on, and where constraints can't be counted by evaluating 20
        million combinations. Of these, one counts as ten with divisions, powers or texts, and as a hundred with a
        function.
        """
        return self.points.enumeration.cardinality

    # --- native configurations <-> points ----------------------------------------------------------------------------

    def encode(self, configurations: Sequence[Mapping[str, Any]]) -> Tensor:
        """Configurations (n dicts) -> points (n x d).

        Raises:
            PointError: for an unknown, missing or inactive parameter, a value outside its parameter, or a combination
                that a constraint forbids.
        """
        return self.points.encoding.encode(configurations)

    def decode(self, points: Tensor) -> list[Params]:
        """Points (n x d) -> configurations (n dicts); numbers between two levels are rounded to the nearer one."""
        self.points.check_points(points)
        return self.points.encoding.decode(points.detach().cpu())


def as_space(space: "SearchSpace | Mapping[str, Parameter]") -> SearchSpace:
    """A space as it is, or of a plain dict of parameters.

    Raises:
        SpaceError: for anything else.
    """
    if isinstance(space, SearchSpace):
        return space
    if not isinstance(space, Mapping):
        raise SpaceError(
            'a space is a SearchSpace, or a dict of parameters, as in {"lr": Real(1e-5, 1e-1, log=True)}, but got '
            f"{space!r:.100}."
        )
    return SearchSpace(space)


def with_defaults_of(space: SearchSpace, other: SearchSpace) -> SearchSpace:
    """A space with the defaults of another one of the same parameters; itself if these are equal."""
    before = {name: each.to_dict().get("default", UNSET) for name, each in other.parameters.items()}
    changed = {name: p for name, p in space.parameters.items() if p.to_dict().get("default", UNSET) != before[name]}
    if not changed:
        return space
    given = {name: UNSET if before[name] is UNSET else p.native(before[name]) for name, p in changed.items()}
    told = {name: replace(p, default=given[name]) for name, p in changed.items()}  # type: ignore[type-var]
    return SearchSpace({**space.parameters, **told}, constraints=space.constraints, fixed=space.fixed)


def check_known(space: SearchSpace) -> None:
    """Raises SpaceError for choices of which a journal has kept the names alone, or of features the checksum."""
    for name, parameter in space.parameters.items():
        if not getattr(parameter, "are_known", True):
            raise SpaceError(
                f"the choices of {name!r} are objects, of which a journal keeps the names alone, or have features, of "
                "which it keeps a checksum: the run can be read, but not resumed. Give the space again: "
                "Study.load(journal, space=SearchSpace({...}))."
            )


def _made_again(cls: type[SearchSpace], parameters: Any, constraints: Any, fixed: Any) -> SearchSpace:
    return cls(parameters, constraints=constraints, fixed=fixed)
