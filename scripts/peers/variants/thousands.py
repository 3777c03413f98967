"""What long runs of real spaces have beside the default: no evolution, or one that other models screen."""

from collections.abc import Callable

import deepbore as db
from deepbore.classifiers.networks.network import Training
from deepbore.strategies import Evolution, ModelStrategy, NearBest, Strategy, Turns
from peers.variants.deep_kernel import DeepKernel
from peers.variants.settings import Settings


def beside(*others: Callable[[], Strategy]) -> Callable[[], Settings]:
    """The default kernel and the model near the best in turns with others."""
    return lambda: {"strategy": Turns([ModelStrategy(db.KernelPLS()), NearBest(), *(make() for make in others)])}


TRAINING = Training(steps=120, batch_size=128, learning_rate=2e-3)
VARIANTS = {
    "deepbore:without-evolution": beside(),
    "deepbore:evolution-unscreened": beside(lambda: Evolution(screened=1)),
    "deepbore:evolution-by-networks": beside(lambda: Evolution(db.DeepEnsemble((128, 128), "silu", members=3))),
    "deepbore:evolution-by-deep-kernel": beside(lambda: Evolution(DeepKernel(training=TRAINING), rows=1000)),
}
