"""Spaces read off annotations: of dataclasses, pydantic models, classes and functions."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal

import pytest

from deepbore import Categorical, Integer, Real, SearchSpace, minimize
from deepbore.errors import SpaceError


class Act(Enum):
    RELU = 1
    TANH = 2


@dataclass
class Settings:
    lr: Annotated[float, Real(1e-5, 1e-1, log=True)] = 1e-3
    optimizer: Literal["sgd", "adam"] = "adam"
    act: Act = Act.RELU
    nesterov: bool = False
    clip: Literal[1, 5] | None = None
    momentum: Annotated[float, Real(0, 1, when={"optimizer": "sgd"})] = 0.9
    log_every: int = 50
    tags: list = field(default_factory=list)


SPACE = {
    "lr": Real(1e-5, 1e-1, log=True),
    "optimizer": Categorical(["sgd", "adam"]),
    "act": Categorical({"RELU": Act.RELU, "TANH": Act.TANH}),
    "nesterov": Categorical([False, True]),
    "clip": Categorical([1, 5, None]),
    "momentum": Real(0, 1, when={"optimizer": "sgd"}),
}
DEFAULT = {"lr": 1e-3, "optimizer": "adam", "act": Act.RELU, "nesterov": False, "clip": None}


def test_a_dataclass_and_its_defaults_are_tried_first():
    space = SearchSpace.from_annotations(Settings)
    assert space == SearchSpace(SPACE)
    assert space.default == DEFAULT  # momentum is inactive
    found = minimize(lambda params: Settings(**params).lr, space, 3)
    assert found.study.trials[0].params == DEFAULT


def test_an_instance_has_its_values_as_defaults_and_parameters_may_be_said_beside_it():
    space = SearchSpace.from_annotations(Settings(optimizer="sgd"), log_every=Integer(1, 100))
    assert space.default == {**DEFAULT, "optimizer": "sgd", "momentum": 0.9, "log_every": 50}
    assert space.parameters["log_every"] == Integer(1, 100)


def test_a_function_and_a_plain_class():
    def train(lr: Annotated[float, Real(0, 1)], layers: Annotated[int, Integer(1, 4)] = 2, name="run"):
        return lr, layers, name

    class Plain:
        lr: Annotated[float, Real(0, 1)]
        layers: Annotated[int, Integer(1, 4)] = 2

    for each in (train, Plain):
        space = SearchSpace.from_annotations(each)
        assert space == SearchSpace({"lr": Real(0, 1), "layers": Integer(1, 4)})
        assert space.default == {"layers": 2}


def test_a_pydantic_model():
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel):
        lr: float = pydantic.Field(1e-3, ge=1e-5, le=1e-1)
        layers: int = pydantic.Field(gt=0, lt=9)
        steps: Annotated[int, pydantic.Field(ge=0, le=100, multiple_of=10)] = 50
        act: Literal["relu", "tanh"] = "tanh"
        decay: Annotated[float, Real(1e-6, 1, log=True)] = 1e-2
        name: str = "run"

    space = SearchSpace.from_annotations(Model, lr=Real(1e-5, 1e-1, log=True))
    assert space == SearchSpace(
        {
            "lr": Real(1e-5, 1e-1, log=True),
            "layers": Integer(1, 8),
            "steps": Integer(0, 100, step=10),
            "act": Categorical(["relu", "tanh"]),
            "decay": Real(1e-6, 1, log=True),
        }
    )
    assert space.default == {"lr": 1e-3, "steps": 50, "act": "tanh", "decay": 1e-2}
    assert SearchSpace.from_annotations(Model(layers=3)).default["layers"] == 3


@dataclass
class Wide:
    lr: float
    act: Literal["a", "b"] = "a"


@dataclass
class Outside:
    lr: Annotated[float, Real(0, 1)] = 2.0


@pytest.mark.parametrize(
    ("annotated", "more", "says"),
    [
        (Wide, {}, r"\['lr'\] of Wide say no range"),
        (Wide, {"lr": Real(0, 1), "z": Real(0, 1)}, r"among the fields \['lr', 'act'\], but got \['z'\]"),
        (Outside, {}, "the default of 'lr'"),
        (object, {}, "has none"),
        (lambda x=3: x, {}, "say no range"),
    ],
)
def test_what_says_too_little_is_refused_by_name(annotated, more, says):
    with pytest.raises(SpaceError, match=says):
        SearchSpace.from_annotations(annotated, **more)
