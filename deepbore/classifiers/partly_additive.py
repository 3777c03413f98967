"""`PartlyAdditiveFit`: a kernel that adds what each parameter does alone to what all do together."""

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import OptimizeResult
from torch import Tensor

from deepbore.classifiers.kernel_fit import KernelFit
from deepbore.classifiers.kernel_posterior import JITTER
from deepbore.classifiers.kernels import Kernel, PartlyAdditiveKernel, ScaledKernel
from deepbore.classifiers.partly_additive_gram import PartlyAdditiveGram
from deepbore.space import SearchSpace

# the logit of the share of what is added, and the logarithm of the ratio of its length scales to those of the rest
ADDED_PRIOR = [(-1.0, 2.0), (-2.0, 1.0)]  # means and standard deviations
ADDED_BOUNDS = [(-8.0, 6.0), (-5.0, 2.0)]


class PartlyAdditiveFit(KernelFit):
    """`KernelFit` by a partly additive kernel, whose share and ratio the evidence chooses with all else.

    Its theta has them before the amplitude and lambda.
    """

    def _start(self, space: SearchSpace) -> np.ndarray:
        d, start = len(space), super()._start(space)
        owner = self.coordinates.owner
        self.groups = tuple((owner == parameter).nonzero().squeeze(-1) for parameter in owner.unique())
        self._prior = np.insert(self._prior, d, ADDED_PRIOR, axis=0)
        self._prior_precision = np.eye(d + 4)
        self._bounds[d:d] = ADDED_BOUNDS
        return np.insert(start, d, self._prior[d : d + 2, 0])

    def _most_evident(self, start: np.ndarray) -> OptimizeResult:
        self._gram = PartlyAdditiveGram.of(self._x, self.coordinates.owner)
        return super()._most_evident(start)

    def _differentiable(self, theta: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        gram, carried_by_gram = self._gram(theta[:-1])
        noise = self._noise(theta)

        def carried(derivative: Tensor) -> Tensor:
            return torch.cat([carried_by_gram(derivative), (derivative.diagonal() @ noise)[None]])

        return gram + torch.diag(noise + JITTER), carried

    def begin_from(self, theta: Tensor) -> None:
        """Takes up the settings of a kernel of all parameters, with the likeliest share and ratio."""
        self.theta.copy_(torch.cat([theta[:-2], theta.new_tensor(ADDED_PRIOR)[:, 0], theta[-2:]]))

    def _kernel(self, theta: Tensor) -> Kernel:
        together = ScaledKernel(self.function, (-theta[:-4]).exp()[self.coordinates.owner], theta[-2].exp())
        return PartlyAdditiveKernel(together, theta[-4].sigmoid(), theta[-3].exp(), self.groups)
