"""Optimisers of the acquisition, which propose q distinct points. Nothing here learns."""

import warnings
from typing import Any

from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.batches import BelieverBatch, GreedyBatch, ThompsonBatch
from deepbore.candidates.botorch import BoTorchBatch
from deepbore.candidates.library import LibrarySearch
from deepbore.candidates.local import LocalSearch, RandomSearch
from deepbore.candidates.papers.epsilon_greedy import EpsilonGreedy, RaisedIncumbent
from deepbore.candidates.papers.svgd import SVGDCandidates
from deepbore.candidates.relaxed import DifferentialEvolution, MultiStartLBFGS, RelaxedSearch
from deepbore.candidates.selection import select_new
from deepbore.errors import DeprecatedUse

__all__ = [
    "BelieverBatch",
    "BoTorchBatch",
    "Candidates",
    "DifferentialEvolution",
    "EpsilonGreedy",
    "GreedyBatch",
    "LibrarySearch",
    "LocalSearch",
    "MultiStartLBFGS",
    "RaisedIncumbent",
    "RandomSearch",
    "RelaxedSearch",
    "SVGDCandidates",
    "Search",
    "ThompsonBatch",
    "WrappedSearch",
    "select_new",
]

FORMER: dict[str, Any] = {"Ambitious": RaisedIncumbent, "distinct": select_new}


def __getattr__(name: str) -> Any:
    if name not in FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    new = FORMER[name]
    warnings.warn(f"{__name__}.{name} is now {__name__}.{new.__name__}.", DeprecatedUse, stacklevel=2)
    return new
