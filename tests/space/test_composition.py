"""A search space holds its parts: each works alone, from the structure."""

import ast
from pathlib import Path

import pytest
import torch

import deepbore.space
from deepbore import Categorical, Integer, Ordinal, Real, SearchSpace
from deepbore.space.constraints import Constraints
from deepbore.space.encoding import Encoding
from deepbore.space.enumeration import Enumeration
from deepbore.space.features import Coordinates, Features
from deepbore.space.sampling import Sampler
from deepbore.space.structure import SpaceStructure

PARAMETERS = {
    "lr": Real(1e-4, 1e-1, log=True),
    "layers": Integer(1, 3),
    "width": Ordinal([16, 32, 64], when={"layers": ">= 2"}),
    "kind": Categorical(["a", "b", "c"]),
}
RULES = ["layers * width <= 64"]
ROOM = Path(deepbore.space.__file__).parent
ORDER = [
    "condition", "parameters.scale", "parameters.priors", "parameters.descriptors", "parameters.base",
    "parameters.numeric",
    "parameters.choice", "parameters.library", "parameters",
    "expression", "conditions", "structure", "constraints", "encoding", "features", "enumeration", "sampling",
    "annotations", "search_space", "relaxation",
]  # fmt: skip


def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("fixed", [{}, {"kind": "b"}])
def test_the_parts_of_a_space_work_without_it(fixed):
    space = SearchSpace(PARAMETERS, constraints=RULES, fixed=fixed)
    structure = SpaceStructure(PARAMETERS, fixed)
    constraints = Constraints(RULES, structure)
    enumeration = Enumeration(structure, constraints)
    sampler, encoding = Sampler(structure, constraints, enumeration), Encoding(structure, constraints)
    points = space.points.sample(20, generator())
    assert torch.equal(sampler.sample(20, generator()), points)
    assert torch.equal(sampler.neighbours(points, 9, generator()), space.points.neighbours(points, 9, generator()))
    assert encoding.decode(points) == space.decode(points)
    assert encoding.identify(points) == space.points.identify(points)
    assert torch.equal(encoding.encode(space.decode(points)), space.encode(space.decode(points)))
    assert enumeration.cardinality == space.cardinality
    assert torch.equal(Features(structure)(points), space.points.features(points))
    assert torch.equal(Coordinates(structure)(points), Coordinates(space.points)(points))


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.stem)
def test_a_file_imports_only_files_before_it(path):
    """Also under TYPE_CHECKING, so that no two parts know each other."""
    name = ".".join(path.relative_to(ROOM).with_suffix("").parts).removesuffix(".__init__")
    if name == "__init__":
        return
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    imported = [node.module for node in nodes if (node.module or "").startswith("deepbore.space")]
    for module in imported:
        assert ORDER.index(module.removeprefix("deepbore.space.")) < ORDER.index(name), module


def test_former_names_work_with_a_warning():
    domain = SearchSpace(PARAMETERS).with_fixed({"layers": 2})
    with pytest.warns(DeprecationWarning, match=r"SearchSpace.released is now SearchSpace.points.without_fixed"):
        assert domain.released == domain.points.without_fixed == SearchSpace(PARAMETERS)
    with pytest.warns(DeprecationWarning, match="is_high_dimensional"):
        assert domain.is_wide is domain.points.is_high_dimensional is False
    points = torch.zeros(2, 4, dtype=torch.float64)
    with pytest.warns(DeprecationWarning, match="apply_fixed"):
        assert torch.equal(domain.stand_still(points), domain.points.apply_fixed(points))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = domain.no_such_name


def test_a_projection_ends_between_its_ends():
    space = SearchSpace({"a": Real(0, 1), "b": Real(0, 1)}, constraints=["a + b <= 1"])
    starts, ends = (torch.tensor(rows, dtype=torch.float64) for rows in ([[0.2, 0.2]] * 2, [[0.3, 0.3], [1.0, 1.0]]))
    projected = space.points.project_to_feasible(starts, ends)
    assert space.points.permitted(projected).all()
    assert projected.round(decimals=9).tolist() == [[0.3, 0.3], [0.4, 0.4]]
    free = SearchSpace({"a": Real(0, 1), "b": Real(0, 1)})
    assert torch.equal(free.points.project_to_feasible(starts, ends), ends)
