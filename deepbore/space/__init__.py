"""Search spaces: named parameters, and their conversion between native configurations and points."""

from deepbore.space.encoding import Params
from deepbore.space.parameters import Categorical, Condition, Integer, Library, Normal, Ordinal, Parameter, Real
from deepbore.space.search_space import Points, SearchSpace

__all__ = [
    "Categorical",
    "Condition",
    "Integer",
    "Library",
    "Normal",
    "Ordinal",
    "Parameter",
    "Params",
    "Points",
    "Real",
    "SearchSpace",
]
