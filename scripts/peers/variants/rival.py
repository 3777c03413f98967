"""The default by a kernel of all parameters alone: without the rival that adds what each of them does.

docs/ablation.md has what it brings ("Where parameters add up").
"""

from collections.abc import Callable

import deepbore as db
from peers.variants.settings import Settings

VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:without-rival": lambda: {"classifier": db.KernelPLS(additive=False)},
}
