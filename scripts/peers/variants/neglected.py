"""Ways to keep branches and levels from being missed by bad luck.

docs/ablation.md has what came of each ("Branches and levels that are neglected").
"""

from collections.abc import Callable

import deepbore as db
from deepbore.classifiers.kernel.kernels import AMPLITUDE
from deepbore.strategies import ModelStrategy, NeglectedChoices, OtherBranches, Turns
from deepbore.strategies.neglected import BOLD, BoldModel
from peers.variants.settings import Settings


class Shortly(NeglectedChoices):
    """Half as many trials for each branch."""

    branch_trials = 2.0


class Unraced(NeglectedChoices):
    """Without what gains on the best going on."""

    races = False


class Whole(NeglectedChoices):
    """A kernel that adds nothing."""

    def __init__(self) -> None:
        super().__init__(additive=False)


class Timid(NeglectedChoices):
    """The amplitude of the default."""

    def __init__(self) -> None:
        super().__init__()
        self.model = TimidModel()


class TimidModel(BoldModel):
    """Its model."""

    amplitude_prior = AMPLITUDE


class Together(NeglectedChoices):
    """The labels of all rows for neglected branches, too."""

    def _beside_others(self, view):
        return None


class LongScales(NeglectedChoices):
    """The same prior of length scales in a branch as elsewhere."""

    own_scales = False


class BoldKernel(db.KernelPLS):
    """The default kernel with an amplitude close to 1."""

    amplitude_prior = BOLD


def turns(*others: type[NeglectedChoices], first: type[db.KernelPLS] = db.KernelPLS) -> Callable[[], Settings]:
    """A kernel of all rows in turns with other strategies."""
    return lambda: {"strategy": Turns([ModelStrategy(first()), *(each() for each in others), OtherBranches()])}


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:unneglected": turns(),
    "deepbore:bold": turns(first=BoldKernel),
    "deepbore:neglected": turns(NeglectedChoices),
    "deepbore:neglected-unraced": turns(Unraced),
    "deepbore:neglected-whole": turns(Whole),
    "deepbore:neglected-2": turns(Shortly),
    "deepbore:neglected-timid": turns(Timid),
    "deepbore:neglected-together": turns(Together),
    "deepbore:neglected-long-scales": turns(LongScales),
}
