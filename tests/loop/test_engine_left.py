"""How many trials could be asked for."""

import math

import pytest

from deepbore import Budget, Integer, SearchSpace, Study
from deepbore.errors import SpaceExhausted
from deepbore.loop.engine import Engine
from plane import LINE

FIVE = SearchSpace({"n": Integer(1, 5)})


def test_what_is_queued_takes_the_place_of_its_configuration():
    study = Study(FIVE, seed=0)
    engine = Engine(study.state)
    assert engine.n_left == 5
    study.enqueue({"n": 2})
    study.enqueue({"n": 3})
    assert engine.n_left == 5
    study.enqueue({"n": 3})  # again: one more trial
    assert engine.n_left == 6
    engine.require_room(6)
    with pytest.raises(SpaceExhausted):
        engine.require_room(7)
    study.ask(6)
    assert engine.n_left == 0


def test_promotions_need_no_new_configuration():
    study = Study(FIVE, seed=0, budget=Budget("epochs", 1, 9))
    engine = Engine(study.state)
    for trial in study.ask(5):
        study.tell(trial, float(trial.id))
    assert engine.n_left == 1
    (trial,) = study.ask()
    assert (trial.resume_from.id, engine.n_left) == (0, 0)


def test_an_endless_space_has_room():
    study = Study(LINE, seed=0)
    study.enqueue({"x": 0.5})
    assert Engine(study.state).n_left == math.inf
