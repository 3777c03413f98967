"""`GPClassifier`: a Gaussian process classifier by variational inference (BORE-GP)."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Adam

from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior
from deepbore.classifiers.trained import TrainedClassifier
from deepbore.compute.torch_state import import_quietly
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.space.features import Coordinates
from deepbore.validation import above, whole

if TYPE_CHECKING:
    from deepbore.classifiers.papers.variational import VariationalGP

SETTLING = 4  # natural gradient steps until q has converged for given hyperparameters
CORESET = 1024  # maximal number of rows per iteration


class GPClassifier(TrainedClassifier):
    """P(z = 1 | x) = Phi(f(x)) with a Gaussian process f (Matern 5/2), a Gaussian q(f), and evidence by its bound.

    Scores are values of f. Every iteration starts with q at the prior and at new inducing points, and finds it by a few
    natural gradient steps of rate 1, while Adam continues from the last iteration's hyperparameters: a length scale for
    each parameter, an amplitude and a constant mean. Up to M observations each have an inducing point, and only the
    shape of the posterior is approximated. Categories have distance one, and the value of an inactive parameter is
    ignored (see `Coordinates`).

    Made for `ThresholdLabels`: the likelihood treats a graded label as a fraction of one noisy observation, so that the
    evidence favours a very smooth function.

    Args:
        inducing: M, the number of inducing points; with fewer observations, the others are a Sobol design.
        steps: gradient steps per iteration, >= 6.
        learning_rate: of Adam, for the hyperparameters.

    Raises:
        SettingError: for a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["mixed"]
        >>> posterior = fit(GPClassifier(), toy_data(space), epochs=2).posterior(space.points.sobol(4, seed=0))
        >>> posterior.mean.shape, posterior.std.shape
        (torch.Size([4]), torch.Size([4]))

    References:
        Hensman, Matthews & Ghahramani, Scalable variational Gaussian process classification, 2015.
        Salimbeni, Eleftheriadis & Hensman, Natural gradients in practice, 2018.
    """

    link = Link.PROBIT
    capabilities = frozenset({"std"})
    kappa = 2.0

    def __init__(self, inducing: int = 64, steps: int = 20, learning_rate: float = 0.05):
        super().__init__()
        above(0, learning_rate=learning_rate)
        whole(1, inducing=inducing)
        whole(SETTLING + 2, steps=steps)
        self.inducing, self.steps, self.learning_rate = inducing, steps, learning_rate

    gp: "VariationalGP"

    def build(self, space: SearchSpace, outputs: int) -> None:
        import_quietly("gpytorch")
        from deepbore.classifiers.papers.variational import VariationalGP

        self.coordinates = Coordinates(space.points)
        self.register_buffer("design", self.coordinates(space.points.sobol(self.inducing, seed=0)), persistent=False)
        self.gp = VariationalGP(self.coordinates.block, self.design)

    design: Tensor  # inducing points in place of missing observations, M x c

    def configure_optimizers(self) -> Adam:
        """Adam for the hyperparameters."""
        return Adam([self.gp.theta], lr=self.learning_rate)

    # --- learning ----------------------------------------------------------------------------------------------------

    @torch.enable_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(CORESET, self.generator)
        data = self.coordinates(batch.points), batch.z.double().mean(-1), batch.weight.double()
        natural = self.gp.restart(self._inducing_points(batch))
        for step in range(self.steps):
            self.gp.zero_grad()
            loss = -self.gp.elbo(*data) - self.gp.log_prior()
            loss.backward()
            natural.step()
            if SETTLING <= step < self.steps - 1:  # in the last step only q changes
                self.optimizers_made().optimizers[0].step()
        return {"loss": loss.detach() / len(batch), "rows": float(len(batch))}

    def _inducing_points(self, batch: LabelledBatch) -> Tensor:
        """A coreset of M rows, filled up by the design (M x c)."""
        chosen = self.coordinates(batch.coreset(self.inducing, self.generator).points)
        return torch.cat([chosen, self.design[len(chosen) :]])

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> "ProbitPosterior":
        """The joint q(f); its `probability` is exactly E[Phi(f)] = Phi(mean / sqrt(1 + var))."""
        self.check_points(points)
        return ProbitPosterior(self.gp, self.coordinates(points.double()))


class ProbitPosterior(GaussianPosterior):
    """The Gaussian q(f) at n points; its covariance is computed on request.

    Args:
        gp: the fitted process, which must not be refitted before.
        x: the points as coordinates, n x c.
    """

    def __init__(self, gp: "VariationalGP", x: Tensor):
        self.gp, self.x = gp, x
        self._marginals = gp.marginals(x)
        super().__init__(self._marginals.mean, None, Link.PROBIT)

    @cached_property
    def std(self) -> Tensor:  # computed once, on request
        variance: Tensor = self._marginals.variance
        return variance.clamp(min=1e-12).sqrt()

    def covariance(self) -> Tensor:
        return self.gp.covariance(self.x)
