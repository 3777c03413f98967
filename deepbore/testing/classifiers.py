"""Checks of the contract of a classifier and of its posterior."""

from collections.abc import Callable, Set
from copy import deepcopy

import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.posterior import Posterior
from deepbore.errors import SettingError, ShapeError
from deepbore.labels import ThresholdLabels
from deepbore.space import Categorical, Real, SearchSpace
from deepbore.testing.require import require, require_equal, require_raises, require_shape, untouched_randomness
from deepbore.testing.toys import TOY_SPACES, fit, toy_data, toy_objective

DRAWS = 4000
ROUNDING = 1e-6  # of scores: BLAS rounds by where a matrix lies in memory


def check_posterior(posterior: Posterior, n: int, capabilities: Set[str]) -> None:
    """Runs all checks of a posterior: mean, probability, and a consistent deviation, covariance and samples, or errors.

    Args:
        posterior: of the scores at n points.
        n: number of points.
        capabilities: that the classifier declares: "std", "members".

    Raises:
        AssertionError: with the violated rule and the values.
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
    """Members are m x n if they are declared, else None."""
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
    """Samples are reproducible, and have the posterior's mean and covariance, if these are exact."""
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


Make = Callable[[], Classifier]


def check_classifier(make: Make) -> None:
    """Runs all checks of a classifier.

    Args:
        make: gives a new, unbound classifier.

    Raises:
        AssertionError: with the violated rule and the values.

    Example:
        >>> from deepbore import KernelPLS
        >>> check_classifier(KernelPLS)
    """
    for space in TOY_SPACES.values():
        check_shapes(make(), space)
        check_learning(make(), space)
    check_weights(make())
    check_same_seed(make)
    check_state_dict(make)
    check_degenerate_data(make)
    check_wide_spaces(make)
    if not make().closed_form:
        check_learning_states(make)
    if make().differentiable:
        check_gradient(make())


def check_shapes(classifier: Classifier, space: SearchSpace) -> None:
    """The posterior has the declared shapes and capabilities; points of another shape are refused."""
    fit(classifier, toy_data(space), epochs=1)
    require(classifier.ready, "a classifier must be ready once it has been fitted to good and bad points, but is not")
    points = space.points.sample(7, torch.Generator().manual_seed(1))
    with torch.no_grad():
        posterior = classifier.posterior(points)
        check_posterior(posterior, 7, classifier.capabilities)
        require(
            posterior.link is classifier.link,
            f"the posterior must have the link of its classifier, {classifier.link!r}, but has {posterior.link!r}",
        )
        part = classifier.posterior(points[:3]).mean
        require_equal(part, posterior.mean[:3], "the scores of a point must not depend on the other points", 1e-4)
    require_raises(ShapeError, lambda: classifier.posterior(points[:, :-1]), "points with a column too few")


def check_learning(classifier: Classifier, space: SearchSpace) -> None:
    """It separates unseen good and bad points: AUROC > 0.8."""
    fit(classifier, toy_data(space, 150, ThresholdLabels(0.3)), epochs=10)
    area = _area(classifier, space)
    where = ", ".join(space.names)
    require(area > 0.8, f"the AUROC on unseen points of a smooth bowl in ({where}) must be > 0.8, but is {area:.3f}")


def check_weights(classifier: Classifier) -> None:
    """Rows of negligible weight, such as pending ones, have a negligible influence: AUROC > 0.8."""
    space = TOY_SPACES["continuous"]
    data = toy_data(space, 150, ThresholdLabels(0.3))
    points = space.points.sample(2000, torch.Generator().manual_seed(2))
    data.observations.reserve(points[toy_objective(space, points).argsort()[:200]])  # pending where it is good
    fit(classifier, data, epochs=10)
    area = _area(classifier, space)
    require(area > 0.8, f"beside rows of the weight 1e-6 with wrong labels the AUROC must be > 0.8, but is {area:.3f}")


def check_same_seed(make: Make) -> None:
    """The same seed gives the same scores, and the global stream of random numbers is not used."""
    space = TOY_SPACES["mixed"]
    with untouched_randomness():
        one, other = (_scores(fit(make(), toy_data(space), epochs=2), space) for _ in range(2))
    require_equal(one, other, "two classifiers with the same seed and data must have equal scores")


def check_state_dict(make: Make) -> None:
    """A new classifier with the old one's state dict has the same scores, and the same `best_label`."""
    space = TOY_SPACES["mixed"]
    fitted, fresh = fit(make(), toy_data(space), epochs=2), make().bind(space)
    fitted.best_label.fill_(0.5)
    fresh.load_state_dict(fitted.state_dict())
    what = "a classifier that has taken up the state dict of another must have its scores"
    require_equal(_scores(fresh, space), _scores(fitted, space), what, ROUNDING)
    require_equal(fresh.best_label, fitted.best_label, "`best_label` must be in the state dict")


def check_learning_states(make: Make) -> None:
    """Another one with its weights, and the states of its optimizers and schedulers, learns the same from then on.

    Whatever a subclass overrides, of `training_step`, `configure_optimizers` or `loss`, may keep no state elsewhere.
    """
    space = TOY_SPACES["mixed"]
    fitted, fresh = fit(make(), toy_data(space), epochs=3), make().bind(space)
    fresh.load_state_dict(deepcopy(fitted.state_dict()))
    fresh.load_learning_states(iter(deepcopy(fitted.learning_states())))
    fresh.generator.set_state(fitted.generator.get_state())
    one, other = (_scores(fit(each, toy_data(space), epochs=2), space) for each in (fitted, fresh))
    what = "a classifier that has taken up weights, optimizers and schedulers of another must learn as that does"
    require_equal(one, other, what)


def check_degenerate_data(make: Make) -> None:
    """Two rows, equal rows, equal values and failures leave finite scores."""
    space = TOY_SPACES["mixed"]
    nan = float("nan")
    for values in ([1.0, 2.0], [1.0] * 5, [1.0], [1.0, nan, nan, 3.0]):
        data = toy_data(space, 0)
        configuration = {"lr": 0.01, "units": 64, "optimizer": "adam", "momentum": None, "nesterov": None}
        data.observations.add({name: [value] * len(values) for name, value in configuration.items()}, values)
        scores = _scores(fit(make(), data, epochs=2), space)
        require_shape(scores, (11,), f"the mean score after equal points with the values {values}")


def check_wide_spaces(make: Make) -> None:
    """A category of 1000 levels and 200 parameters leave finite scores, from two rows and from twenty."""
    levels = SearchSpace({"c": Categorical([f"level {i}" for i in range(1000)])})
    for space in (levels, SearchSpace({f"x{i}": Real(0, 1) for i in range(200)})):
        for n in (2, 20):
            scores = _scores(fit(make(), toy_data(space, n), epochs=2), space)
            require_shape(scores, (11,), f"the mean score after {n} points of {len(space)} parameters")


def check_gradient(classifier: Classifier) -> None:
    """The gradients of mean and standard deviation in the points agree with finite differences."""
    space = TOY_SPACES["continuous"]
    classifier = fit(classifier, toy_data(space), epochs=3).double()
    points = space.points.sample(20, torch.Generator().manual_seed(2))
    step = 1e-6 * torch.randn(points.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    for part in ("mean", "std") if "std" in classifier.capabilities else ("mean",):
        leaf = points.clone().requires_grad_(True)
        total = getattr(classifier.posterior(leaf), part).sum()
        require(total.requires_grad, f"the {part} must have a gradient in the points (or say differentiable = False)")
        (gradient,) = torch.autograd.grad(total, leaf)
        with torch.no_grad():
            above, below = (getattr(classifier.posterior(x), part).sum() for x in (points + step, points - step))
        slope, found = float((above - below) / 2), float((gradient * step).sum())
        require(
            abs(found - slope) <= 1e-3 * abs(slope) + 1e-10,
            f"along a small step the {part} must change by gradient * step = {found:.6g}, but changes by {slope:.6g}",
        )


def auroc(scores: Tensor, good: Tensor) -> float:
    """The probability that a good point (n, bool) has a higher score (n) than a bad one; ties count half."""
    difference = scores[good][:, None] - scores[~good]
    return float(((difference > 0).double() + 0.5 * (difference == 0)).mean())


@torch.no_grad()
def _area(classifier: Classifier, space: SearchSpace) -> float:
    """The AUROC on 400 other points."""
    test = toy_data(space, 400, ThresholdLabels(0.3), seed=1).labelled()
    return auroc(classifier.posterior(test.points).mean, test.z[:, 0] == 1)


@torch.no_grad()
def _scores(classifier: Classifier, space: SearchSpace) -> Tensor:
    return classifier.posterior(space.points.sample(11, torch.Generator().manual_seed(4))).mean
