"""Another share of the values up to tau than one half, so that labels are spread over more of them.

docs/ablation.md has what came of it ("A wider scale of labels").
"""

from collections.abc import Callable

import deepbore as db
from peers.variants.settings import Settings

VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:gamma-.75": lambda: {"labels": db.ValueGradedLabels(gamma=0.75)},
    "deepbore:gamma-.9": lambda: {"labels": db.ValueGradedLabels(gamma=0.9)},
}
