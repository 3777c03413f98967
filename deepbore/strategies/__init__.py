"""Strategies: proposals by one model, or by several that take turns."""

from deepbore.strategies.base import ModelStrategy, Proposal, Strategy, View
from deepbore.strategies.evolution import Evolution
from deepbore.strategies.near_best import NearBest
from deepbore.strategies.neglected import NeglectedChoices
from deepbore.strategies.other_branches import OtherBranches
from deepbore.strategies.rough_ground import RoughGround
from deepbore.strategies.sampling import GridSampling, RandomSampling, SobolSampling
from deepbore.strategies.turns import Turns

__all__ = [
    "Evolution",
    "GridSampling",
    "ModelStrategy",
    "NearBest",
    "NeglectedChoices",
    "OtherBranches",
    "Proposal",
    "RandomSampling",
    "RoughGround",
    "SobolSampling",
    "Strategy",
    "Turns",
    "View",
]
