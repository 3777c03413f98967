"""Strategies: proposals by one model, or by several that take turns."""

from deepbore.strategies.base import ModelStrategy, Proposal, Strategy, View
from deepbore.strategies.near_best import NearBest
from deepbore.strategies.neglected import NeglectedChoices
from deepbore.strategies.other_branches import OtherBranches
from deepbore.strategies.turns import Turns

__all__ = [
    "ModelStrategy",
    "NearBest",
    "NeglectedChoices",
    "OtherBranches",
    "Proposal",
    "Strategy",
    "Turns",
    "View",
]
