"""The bridge to BoTorch: a classifier as a BoTorch `Model`, an acquisition as a BoTorch `AcquisitionFunction`."""

from collections.abc import Callable

import torch
from botorch.acquisition import AcquisitionFunction, qUpperConfidenceBound
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.objective import PosteriorTransform
from botorch.acquisition.utils import prune_inferior_points
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior, Posterior
from botorch.posteriors.ensemble import EnsemblePosterior
from botorch.sampling import MCSampler, SobolQMCNormalSampler
from gpytorch.distributions import MultivariateNormal
from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import UNCERTAIN
from deepbore.errors import SettingError, ShapeError

CHUNK = 256  # points a call of the classifier
JITTER, SINGLE_JITTER = 1e-8, 1e-5  # on the diagonal of covariances; in single precision relative to its maximum
NORMAL_SAMPLES, PRUNING_SAMPLES = 128, 2048  # the latter to prune the baseline


class BoTorchAcquisition(AcquisitionFunction):
    """An acquisition of deepbore for BoTorch's optimisers: X (b x 1 x d) -> b.

    Args:
        acquisition: the formula.
        classifier: the trained classifier.
        value: points (b x d) -> values (b), if these are not the formula's alone, as under constraints.
    """

    def __init__(
        self, acquisition: Acquisition, classifier: Classifier, value: Callable[[Tensor], Tensor] | None = None
    ):
        super().__init__(model=classifier)
        self.acquisition, self.value = acquisition.resolved(classifier), value

    def forward(self, X: Tensor) -> Tensor:
        """Values of a t-batch of single points.

        Raises:
            ShapeError: for q > 1, which needs a joint acquisition: one of BoTorch's on a `BoTorchClassifier`.
        """
        if X.ndim != 3 or X.shape[1] != 1:
            raise ShapeError(f"X must have shape b x 1 x d, but got {tuple(X.shape)}.")
        points = X.squeeze(1).to(self.model.device)
        if self.value is not None:
            return self.value(points).to(X)
        posterior = self.model.posterior(points)
        return self.acquisition(posterior, self.model.best_label).to(X)


class BoTorchClassifier(Model):
    """A trained classifier as a BoTorch model of its score, for any of BoTorch's acquisitions, with q > 1 too.

    The posterior over q points is joint. For classifiers with a standard deviation and without members it is their
    Gaussian N(mean, covariance). For others it is the ensemble of the members or posterior samples (one score a point
    is an ensemble of one): the sampler `EveryMember` draws each of them once. BoTorch's `best_f` is the classifier's
    `best_label`.

    Args:
        classifier: the trained classifier.
        gaussian: whether the posterior is Gaussian; None to choose by the classifier.

    Raises:
        SettingError: for gaussian=True and a classifier without a standard deviation; for gaussian=False and one with a
            standard deviation but without members; and for a score for each of several columns.

    Example:
        >>> from botorch.acquisition import qUpperConfidenceBound
        >>> from deepbore import DeepEnsemble
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> model = BoTorchClassifier(fit(DeepEnsemble(), toy_data(space), epochs=1))
        >>> points = space.points.sobol(8, seed=0).view(2, 4, 3)
        >>> qUpperConfidenceBound(model, beta=1.0, sampler=EveryMember())(points).shape
        torch.Size([2])
    """

    num_outputs = 1
    batch_shape = torch.Size()

    def __init__(self, classifier: Classifier, gaussian: bool | None = None):
        super().__init__()
        self.classifier = classifier
        can = classifier.capabilities
        if "columns" in can:
            raise SettingError(
                f"a BoTorchClassifier has one score, but {type(classifier).__name__} has one for each objective. Wrap "
                "one of its parts, or give the study labels=ChebyshevLabels(ValueGradedLabels())."
            )
        self.gaussian = ("std" in can and "members" not in can) if gaussian is None else gaussian
        if self.gaussian and "std" not in can:
            raise SettingError(f"{type(classifier).__name__} has no deviation, so no Gaussian. Use {UNCERTAIN}.")
        if not self.gaussian and "std" in can and "members" not in can:
            raise SettingError(f"{type(classifier).__name__} has a Gaussian and no members. Leave out gaussian=False.")

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior of the scores of q points, in each t-batch.

        Args:
            X: points, b x q x d (any leading shape).
            output_indices: ignored: there is one output.
            observation_noise: ignored: scores have none.
            posterior_transform: applied to the posterior, if any.

        Raises:
            ShapeError: for points of another space.
        """
        posterior = self._gaussian(X) if self.gaussian else self._members(X)
        return posterior if posterior_transform is None else posterior_transform(posterior)

    def _members(self, X: Tensor) -> EnsemblePosterior:
        parts = X.reshape(-1, X.shape[-1]).to(self.classifier.device).split(CHUNK)
        scores = torch.cat([_scores(self.classifier, part) for part in parts], dim=-1)  # m x bq
        return EnsemblePosterior(scores.view(len(scores), *X.shape[:-1]).movedim(0, -2).unsqueeze(-1).to(X))

    def _gaussian(self, X: Tensor) -> GPyTorchPosterior:
        q, d = X.shape[-2:]
        parts = X.reshape(-1, q, d).to(self.classifier.device).split(max(1, CHUNK // q))
        means, covariances = zip(*(self._moments(part) for part in parts), strict=True)
        mean, covariance = torch.cat(means).view(X.shape[:-1]), torch.cat(covariances).view(*X.shape[:-1], q)
        return GPyTorchPosterior(MultivariateNormal(mean.to(X), covariance.to(X)))

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means (b x q) and covariances within each t-batch (b x q x q)."""
        b, q, d = X.shape
        posterior = self.classifier.posterior(X.reshape(-1, d))
        within = posterior.covariance().view(b, q, b, q).diagonal(dim1=0, dim2=2).movedim(-1, 0)
        return posterior.mean.view(b, q), within + _jitter(within, X.dtype) * torch.eye(q).to(within)


def _jitter(covariance: Tensor, kept_as: torch.dtype) -> Tensor | float:
    """The number added to the diagonal of covariances, which are returned in the dtype `kept_as`."""
    if covariance.dtype == kept_as == torch.float64 or not covariance.numel():
        return JITTER
    return SINGLE_JITTER * covariance.detach().diagonal(dim1=-2, dim2=-1).max()


def _scores(classifier: Classifier, points: Tensor) -> Tensor:
    """The members' scores (m x n); one score a point as a single member."""
    posterior = classifier.posterior(points)
    return posterior.mean[None] if posterior.members is None else posterior.members


class EveryMember(MCSampler):
    """A sampler that takes every member of an `EnsemblePosterior` once; BoTorch's own draws with replacement.

    Monte Carlo acquisitions are then exact means over the members.
    """

    def __init__(self) -> None:
        super().__init__(torch.Size([1]), seed=0)  # both are unused; without a seed BoTorch draws one

    def forward(self, posterior: EnsemblePosterior) -> Tensor:
        """Samples, m x b x q x 1."""
        samples: Tensor = posterior.values.movedim(-3, 0)
        return samples


class Favouring(AcquisitionFunction):
    """A joint acquisition of BoTorch, times what favours some points, as prior belief does: X (b x q x d) -> b.

    The sum of the acquisition's logarithm and the mean over the q points of that of these factors. BoTorch's
    acquisitions with "log" in their names are logarithms already; an upper confidence bound of scores becomes one by
    the link, as in `Acquisition.log_density`; any other counts as one.

    Args:
        acquisition: the joint acquisition.
        log_favour: points (n x d) -> log of the factors (n).
        link: of the classifier's scores.
    """

    def __init__(self, acquisition: AcquisitionFunction, log_favour: Callable[[Tensor], Tensor], link: Link):
        super().__init__(model=acquisition.model)
        self.acquisition, self.log_favour, self.link = acquisition, log_favour, link

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:  # BoTorch's names
        """Points that are being evaluated (k x d)."""
        self.acquisition.set_X_pending(X_pending)

    def forward(self, X: Tensor) -> Tensor:
        """Values of a t-batch."""
        value: Tensor = self.acquisition(X)
        if isinstance(self.acquisition, qUpperConfidenceBound):
            value = self.link.log_probability(value)
        q, d = X.shape[-2:]
        favour = self.log_favour(X.reshape(-1, d)).view(*X.shape[:-2], q).mean(-1)
        return value + favour.to(value)


def joint_acquisition(
    classifier: Classifier, seed: int, best: Tensor | None = None, baseline: Tensor | None = None
) -> AcquisitionFunction:
    """The Monte Carlo acquisition for q points that suits a classifier.

    For Gaussian scores that estimate labels it is log expected improvement over the best label, or, if the posterior
    has scenarios of the labels without noise (`KernelPLS(noisy=True)`), over the best of the noiseless baseline. For
    others it is an upper confidence bound, E[max over the q points of mean + sqrt(pi / 2) kappa |score - mean|] (Wilson
    et al., The reparameterization trick for acquisition functions, 2017).

    Args:
        classifier: the trained classifier.
        seed: of the quasi-random normal samples of a Gaussian.
        best: the label to improve on (a scalar); None for the best of the data.
        baseline: points that may be the best without noise (n x d); None to take labels as noiseless.
    """
    model = BoTorchClassifier(classifier)
    sampler = SobolQMCNormalSampler(torch.Size([NORMAL_SAMPLES]), seed=seed) if model.gaussian else EveryMember()
    if classifier.link is not Link.IDENTITY or not model.gaussian:
        return qUpperConfidenceBound(model, beta=classifier.kappa**2, sampler=sampler)
    if baseline is not None and classifier.posterior(baseline[:1]).noiseless is not None:
        deciding = SobolQMCNormalSampler(
            torch.Size([PRUNING_SAMPLES]), seed=seed
        )  # BoTorch's default draws from the global stream
        kept = prune_inferior_points(model, baseline, sampler=deciding)
        return qLogNoisyExpectedImprovement(model, kept, sampler, prune_baseline=False, cache_root=False)
    goal = float(classifier.best_label if best is None else best)
    return qLogExpectedImprovement(model, best_f=goal, sampler=sampler)
