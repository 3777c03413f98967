"""The papers' classifiers with other searches of the acquisition's maximum: random search or evolution, by size.

For BORE's trees that is appendix G.1. The network by random search is ours: it parts what BORE-MLP owes to the network
from what it owes to L-BFGS over relaxed categories.
"""

from functools import partial
from itertools import product

RECIPES = ("bore_rf", "bore_xgb")
SEARCHES = ("random search", "differential evolution")
LIMITS = (50, 100, 200, 500)  # points that the search scores


def name_of(recipe: str, search: str, limit: int) -> str:
    """The method's name: "paper:bore-rf by random search of 50"."""
    return f"paper:{recipe.replace('_', '-')} by {search} of {limit}"


def searched(recipe: str, search: str, limit: int) -> dict[str, object]:
    """A paper's recipe with another search."""
    import deepbore as db  # the names are read without it
    from peers.papers import CONFIGS, settings

    evolution = db.DifferentialEvolution(limit, population=min(50, limit // 2))
    candidates = db.RandomSearch(limit) if search == "random search" else evolution
    return settings(CONFIGS / f"{recipe}.yaml") | {"candidates": candidates}


ALL = [*product(RECIPES, SEARCHES, LIMITS), ("bore_mlp", "random search", 500)]
METHODS = {name_of(*each): partial(searched, *each) for each in ALL}
