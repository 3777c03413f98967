"""From the acquisition to q distinct points. Nothing here learns."""

from deepbore.candidates.ambitious import Ambitious
from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.botorch import BoTorchBatch
from deepbore.candidates.epsilon_greedy import EpsilonGreedy
from deepbore.candidates.evolution import DifferentialEvolution
from deepbore.candidates.gradient import MultiStartLBFGS
from deepbore.candidates.greedy_batch import GreedyBatch
from deepbore.candidates.local import LocalSearch
from deepbore.candidates.random import RandomSearch
from deepbore.candidates.relaxed import RelaxedSearch
from deepbore.candidates.svgd import SVGDCandidates
from deepbore.candidates.thompson import ThompsonBatch
from deepbore.candidates.walk import distinct

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
