"""The default without the proposals that leave out the branches known in detail, in spaces with conditions.

docs/ablation.md has what these bring ("Branches that are known in detail").
"""

from collections.abc import Callable

import deepbore as db
from deepbore.strategies import ModelStrategy
from peers.variants.settings import Settings

VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:without-elsewhere": lambda: {"strategy": ModelStrategy(db.KernelPLS())},
}
