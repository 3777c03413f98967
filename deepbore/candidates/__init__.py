"""From the acquisition to q distinct points. Nothing here learns."""

from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.batches import GreedyBatch, ThompsonBatch
from deepbore.candidates.botorch import BoTorchBatch
from deepbore.candidates.local import LocalSearch, RandomSearch
from deepbore.candidates.papers.epsilon_greedy import Ambitious, EpsilonGreedy
from deepbore.candidates.papers.svgd import SVGDCandidates
from deepbore.candidates.relaxed import DifferentialEvolution, MultiStartLBFGS, RelaxedSearch
from deepbore.candidates.selection import distinct

__all__ = [
    "Ambitious",
    "BoTorchBatch",
    "Candidates",
    "DifferentialEvolution",
    "EpsilonGreedy",
    "GreedyBatch",
    "LocalSearch",
    "MultiStartLBFGS",
    "RandomSearch",
    "RelaxedSearch",
    "SVGDCandidates",
    "Search",
    "ThompsonBatch",
    "WrappedSearch",
    "distinct",
]
