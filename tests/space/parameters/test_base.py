"""The interface of parameters: the contract of every type, and a type of one's own."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from cases import PARAMETERS
from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.errors import PointError, SpaceError
from deepbore.space.features import Coordinates, squared_distances
from deepbore.space.parameters import Parameter, Reading, Scale
from deepbore.space.parameters.base import KINDS


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def cosine(column, at):
    return torch.cos(2 * math.pi * column - at)


def on_circle(column, at):
    return cosine(column, at) / 2


@dataclass(frozen=True)
class Angle(Parameter):
    """Degrees in [0, 360), where 359 is next to 0."""

    when: Condition | None = field(default=None, kw_only=True)
    kind = "test angle"

    levels = None

    def encode(self, values: Sequence[float]) -> torch.Tensor:
        degrees = torch.tensor([float(value) for value in values], dtype=torch.float64)
        if not ((degrees >= 0) & (degrees < 360)).all():
            raise PointError(f"an angle must lie in [0, 360), but got {degrees.tolist()}.")
        return degrees / 360

    def decode(self, column):
        return [round(360 * place, 9) % 360 for place in column.tolist()]

    def read(self, text):
        return float(text.removesuffix("°"))

    def moved(self, column, u, v, steps):
        return (column + steps) % 1

    def readings(self):
        return [Reading(cosine, 0.0), Reading(cosine, math.pi / 2)]

    def coordinates(self):
        return [Reading(on_circle, 0.0), Reading(on_circle, math.pi / 2)]


@dataclass(frozen=True)
class Stepped(Parameter):
    """Multiples of a step from 0 to 1: numbers, but with levels."""

    step: float
    when: Condition | None = field(default=None, kw_only=True)
    kind = "test stepped"

    @property
    def levels(self):
        return round(1 / self.step) + 1

    @property
    def scale(self):
        return Scale(0.0, 1.0)

    def encode(self, values):
        return torch.tensor([round(value / self.step) for value in values]).double()

    def decode(self, column):
        return [round(level * self.step, 9) for level in self.to_level(column).tolist()]

    def read(self, text):
        return float(text)


OWN = SearchSpace(
    {
        "which": Categorical(["a", "b"]),
        "turn": Angle(),
        "dose": Stepped(0.05),
        "tilt": Angle(when=Condition("which", "a")),
        "half": Stepped(0.5, when=Condition("which", "b")),
        "extra": Ordinal([1, 2], when=Condition("dose", [0.0, 0.05, 1.0])),
    }
)


def test_a_type_of_ones_own_is_sampled_encoded_and_identified():
    points = OWN.points.sample(300, generator())
    configurations = OWN.decode(points)
    assert torch.allclose(OWN.encode(configurations), points, atol=1e-9)
    assert OWN.decode(OWN.encode(configurations)) == configurations
    columns = {name: [params.get(name) for params in configurations] for name in OWN.names}
    assert torch.equal(OWN.points.encode_columns(columns), OWN.encode(configurations))
    same = np.array([[p == q for q in configurations] for p in configurations])
    identities = OWN.points.identify(OWN.encode(configurations))
    assert (same == np.array([[p == q for q in identities] for p in identities])).all()


def test_a_type_of_ones_own_moves_its_own_way():
    north = OWN.encode([{"which": "a", "turn": 0.5, "dose": 0.5, "tilt": 359.5}]).repeat(2000, 1)
    moved = OWN.decode(OWN.points.neighbour_of_each(north, generator()))
    assert {params["turn"] > 180 for params in moved if params["turn"] != 0.5} == {True, False}  # over 0 both ways
    doses = [params["dose"] for params in moved if params["dose"] != 0.5]
    assert np.mean(np.isin(doses, [0.45, 0.55])) == pytest.approx(0.5 + 0.5 * 2 / 20, abs=0.07)
    assert OWN.points.continuous_columns == (1, 3)
    assert OWN.points.bounds[1].tolist() == [1, 1, 20, 1, 2, 1]


def test_a_type_of_ones_own_has_its_own_features_and_distances():
    rows = [{"which": "b", "turn": turn, "dose": 0.3, "half": 0.5} for turn in (0.0, 90.0, 180.0, 359.0)]
    points = OWN.encode(rows)
    features = OWN.points.features(points)
    assert features.shape == (4, OWN.points.features.size) == (4, 2 + 2 + 20 + 2 + 2 + 1 + 3)
    assert features[:2, 2:4].numpy() == pytest.approx(np.array([[1, 0], [0, 1]]), abs=1e-12)
    assert features[0, 4:24].tolist() == [1.0] * 6 + [0.0] * 14  # the thermometer of 0.3 in steps of 0.05
    assert features[0, -3:].tolist() == [0, 1, 0]  # tilt and extra are inactive, half is active
    x = Coordinates(OWN.points)(points)
    distances = squared_distances(x, x).sqrt()[0]
    assert distances[2] == pytest.approx(1.0, abs=1e-6)
    assert distances[3] < distances[1] / 10


def test_a_type_of_ones_own_survives_plain_data_and_is_counted():
    assert SearchSpace.from_dict(json.loads(json.dumps(OWN.to_dict()))) == OWN
    space = SearchSpace({"dose": Stepped(0.25), "extra": Ordinal([1, 2, 3], when=Condition("dose", [0.25, 1.0]))})
    assert space.cardinality == len(space.points.enumerate()) == 3 + 2 * 3
    assert math.isinf(OWN.cardinality)


def test_a_type_of_ones_own_has_ticks():
    assert Stepped(0.25).ticks(5) == [0, 0.25, 0.5, 0.75, 1]
    assert Stepped(0.05).ticks(5) == [0, 0.25, 0.5, 0.75, 1]
    assert Angle().ticks(4) == [0, 120, 240, 0]


def test_two_types_need_two_kinds():
    with pytest.raises(SpaceError, match="'real' is Real's"):

        class Mine(Parameter):
            kind = "real"


def test_every_type_has_a_case():
    kinds = {kind for kind, cls in KINDS.items() if cls.__module__.startswith("deepbore.")}
    assert {parameter.kind for parameter in PARAMETERS.values()} == kinds


def without_descriptors(inputs, points):
    plain = [place for block in inputs.blocks if block.descriptors is None for place in block.inputs]
    return inputs(points)[:, plain]


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=PARAMETERS)
def test_a_parameter_keeps_its_contract(parameter):
    """The same alone and in a space where it is conditional; its numbers lie where they should."""
    conditional = replace(parameter, when=Condition("on", 1))
    space = SearchSpace({"on": Ordinal([0, 1]), "p": conditional, "free": parameter})
    points = space.points.sample(200, generator())
    configurations = space.decode(points)
    assert space.decode(space.encode(configurations)) == configurations
    near = space.points.neighbours(points, 300, generator())
    for each in (points, near):
        assert torch.allclose(space.points.snap(each), each, atol=1e-12)
        assert ((each >= 0) & (each <= space.points.bounds[1] + 1e-12)).all()
        assert without_descriptors(space.points.features, each).abs().max() <= 1 + 1e-12
    x = without_descriptors(Coordinates(SearchSpace({"p": parameter}).points), near[:, 2:])
    if not parameter.is_library:
        assert squared_distances(x, x).max() == pytest.approx(1.0, abs=0.1)
    moved = parameter.decode(parameter.moved(near[:, 2], *torch.rand(3, 300, generator=generator()).double()))
    assert np.mean([a != b for a, b in zip(moved, parameter.decode(near[:, 2]), strict=True)]) > 0.9
    texts = [str(params["free"]) for params in configurations]
    read = [parameter.read(text) for text in texts]
    assert parameter.decode(parameter.encode(read)) == [params["free"] for params in configurations]
    assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    ticks = parameter.ticks(5)
    assert 1 < len(ticks) <= 5
    assert parameter.decode(parameter.encode(ticks)) == ticks


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        (Real(0, 1), (True, True, True, 1.0)),
        (Integer(3, 9, log=True), (False, True, True, 1.0)),
        (Ordinal([1, 5, 7]), (False, True, False, 2.0)),
        (Categorical(list("abcd")), (False, False, False, 3.0)),
    ],
)
def test_predicates(parameter, says):
    assert (parameter.is_continuous, parameter.is_ordered, parameter.is_numeric, parameter.upper) == says


@pytest.mark.parametrize("count", [2, 3, 6])
def test_how_much_likelier_the_way_back_is_comes_from_the_shares_of_all_moves(count):
    ordered, share = Ordinal(list(range(count))), np.zeros((count, count))
    u = (torch.arange(60, dtype=torch.float64).repeat(2) + 0.5) / 60
    v = torch.tensor([0.25, 0.75], dtype=torch.float64).repeat_interleave(60)
    for level in range(count):
        moved = ordered.moved(ordered.encode([level] * 120), u, v, torch.zeros_like(u))
        share[level] = np.bincount(ordered.decode(moved), minlength=count) / 120
    before, after = share.nonzero()
    assert len(before) == count * (count - 1)  # any other level
    found = ordered.likelier_back(ordered.encode(before.tolist()), ordered.encode(after.tolist()))
    assert np.allclose(found, np.log(share[after, before] / share[before, after]), atol=1e-6)


@pytest.mark.parametrize("symmetric", [Real(0, 5), Categorical([0, 1, 2, 3, 4, 5]), Integer(0, 10_000)])
def test_other_moves_are_as_likely_forth_as_back(symmetric):
    before, after = symmetric.encode([0, 3, 1]), symmetric.encode([1, 5, 0])
    assert symmetric.likelier_back(before, after).tolist() == [0, 0, 0]
