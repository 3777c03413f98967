"""What every posterior must do."""

from collections.abc import Set

import torch
from torch import Tensor

from deepbore.classifiers.posterior import Posterior
from deepbore.errors import SettingError
from deepbore.testing.require import require, require_equal, require_raises, require_shape

DRAWS = 4000


def check_posterior(posterior: Posterior, n: int, capabilities: Set[str]) -> None:
    """Mean and probability always; deviation, covariance and samples that agree, or a refusal; never a silent 0.

    Args:
        posterior: of the scores at n points.
        n: how many points.
        capabilities: what the classifier declares: "std", "members".

    Raises:
        AssertionError: with the rule that is broken, and the values.
    """
    require_shape(posterior.mean, (n,), "the mean")
    require_shape(posterior.probability, (n,), "the probability")
    low, high = float(posterior.probability.min()), float(posterior.probability.max())
    require(low >= 0 and high <= 1, f"probabilities must be in [0, 1], but are in [{low:.3g}, {high:.3g}]")
    if "std" in capabilities:
        check_spread(posterior, n)
    else:
        check_refusal(posterior)
    check_members(posterior, n, declared="members" in capabilities)


def check_members(posterior: Posterior, n: int, declared: bool) -> None:
    """Members are m x n where they are declared, and None elsewhere."""
    members = posterior.members
    if not declared:
        require(members is None, 'members must be None, or "members" be among the capabilities')
        return
    if members is None:
        raise AssertionError('"members" is among the capabilities, but the posterior\'s members are None')
    require_shape(members, (len(members), n), "the members")


def check_spread(posterior: Posterior, n: int) -> None:
    """Deviations are >= 0, the covariance is positive semidefinite with their squares on its diagonal."""
    std, covariance = posterior.std.double(), posterior.covariance().double()
    require_shape(std, (n,), "the standard deviation")
    require(std.min() >= 0, f"standard deviations must be >= 0, but the least is {float(std.min()):.3g}")
    require_shape(covariance, (n, n), "the covariance")
    scale = float(covariance.diagonal().max()) + 1e-9
    require_equal(covariance, covariance.mT, "the covariance must be symmetric", 1e-4 * scale)
    require_equal(covariance.diagonal(), std.square(), "the covariance must have std^2 on its diagonal", 1e-3 * scale)
    least = float(torch.linalg.eigvalsh(covariance).min())
    require(least > -1e-4 * scale, f"the covariance must be positive semidefinite, but has the eigenvalue {least:.3g}")
    check_samples(posterior, n, covariance)


def check_samples(posterior: Posterior, n: int, covariance: Tensor) -> None:
    """Samples are the same for the same stream, and have the posterior's mean and covariance, where these are exact."""
    one, other = (posterior.sample(DRAWS, torch.Generator().manual_seed(8)) for _ in range(2))
    require_shape(one, (DRAWS, n), "the samples")
    require_equal(one, other, "samples drawn with equal generators must be equal")
    if not posterior.has_exact_moments:
        return
    scale = float(covariance.diagonal().max())
    error = 6 * (scale / DRAWS) ** 0.5 + 1e-5  # six standard errors
    require_equal(one.mean(0), posterior.mean, "the samples must have the posterior's mean", error)
    spread = torch.cov(one.double().mT, correction=0).reshape(n, n)
    require_equal(spread, covariance, "the samples must have the posterior's covariance", 0.2 * scale + 1e-9)


def check_refusal(posterior: Posterior) -> None:
    """Without "std" there is no deviation, covariance or sample: all raise SettingError."""
    generator = torch.Generator().manual_seed(8)
    without = 'without "std" among the capabilities'
    require_raises(SettingError, lambda: posterior.std, f"{without}, std")
    require_raises(SettingError, posterior.covariance, f"{without}, covariance()")
    require_raises(SettingError, lambda: posterior.sample(1, generator), f"{without}, sample()")
