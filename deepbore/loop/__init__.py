"""The loop: relabel, train, propose, evaluate, record."""

from deepbore.loop.controller import LoopController
from deepbore.loop.engine import Engine
from deepbore.loop.recipe import Recipe
from deepbore.loop.state import RunState

__all__ = ["Engine", "LoopController", "Recipe", "RunState"]
