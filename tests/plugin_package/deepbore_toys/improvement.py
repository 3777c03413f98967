"""An acquisition: the probability of a label above the best one."""

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition
from deepbore.classifiers import Link
from deepbore.classifiers.posterior import Posterior


class ProbabilityOfImprovement(Acquisition):
    """log P(z > best): the logarithm has a gradient where the probability itself is 0 in floating point."""

    links = frozenset({Link.IDENTITY})  # for heads whose scores estimate the label
    needs = frozenset({"std"})

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        return torch.special.log_ndtr((posterior.mean - best) / posterior.std.clamp(min=1e-9))

    def log_density(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        return self(posterior, best)  # a logarithm already
