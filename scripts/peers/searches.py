"""BORE's trees with other searches of the acquisition's maximum (appendix G.1): random search or evolution, by size."""

from functools import partial

RECIPES = ("bore_rf", "bore_xgb")
SEARCHES = ("random search", "differential evolution")
LIMITS = (50, 100, 200, 500)  # points that the search scores


def name_of(recipe: str, search: str, limit: int) -> str:
    """The method's name: "paper:bore-rf by random search of 50"."""
    return f"paper:{recipe.replace('_', '-')} by {search} of {limit}"


def searched(recipe: str, search: str, limit: int) -> dict[str, object]:
    """A paper's recipe with another search."""
    import deepbore as db  # noqa: PLC0415  # the names are read without it
    from peers.papers import CONFIGS, settings  # noqa: PLC0415

    evolution = db.DifferentialEvolution(limit, population=min(50, limit // 2))
    candidates = db.RandomSearch(limit) if search == "random search" else evolution
    return settings(CONFIGS / f"{recipe}.yaml") | {"candidates": candidates}


METHODS = {
    name_of(recipe, search, limit): partial(searched, recipe, search, limit)
    for recipe in RECIPES
    for search in SEARCHES
    for limit in LIMITS
}
