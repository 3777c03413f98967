"""The exports of the room, each imported when it is first used."""

from .controller import LoopController
from .engine import Engine
from .recipe import Recipe
from .state import RunState

__all__ = ["Engine", "LoopController", "Recipe", "RunState"]
