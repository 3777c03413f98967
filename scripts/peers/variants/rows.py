"""How many rows the model of all observations learns; the model near the best keeps its 200."""

from collections.abc import Callable

import deepbore as db
from deepbore.strategies import ModelStrategy, NearBest, Turns
from peers.variants.settings import Settings


def rows(count: int) -> Callable[[], Settings]:
    """The default of real spaces with another maximum of rows."""
    return lambda: {"strategy": Turns([ModelStrategy(db.KernelPLS(rows=count)), NearBest()])}


VARIANTS = {f"rows-{count}": rows(count) for count in (100, 500, 1000)}
