"""Checks of the contract of an acquisition."""

from collections.abc import Callable

import torch

from deepbore.acquisition import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.errors import SettingError
from deepbore.testing.require import require, require_equal, require_shape
from deepbore.testing.toys import TOY_SPACES, ToyClassifier, fit, toy_data

CAPABILITIES = (frozenset[str](), frozenset({"std"}), frozenset({"std", "members"}), frozenset({"columns"}))


def check_acquisition(acquisition: Acquisition, make: Callable[[], Classifier]) -> None:
    """Runs all checks of an acquisition.

    Args:
        acquisition: the formula.
        make: gives a new classifier that the acquisition accepts.

    Raises:
        AssertionError: with the violated rule and the values.

    Example:
        >>> from deepbore import KernelPLS, LogExpectedImprovement
        >>> check_acquisition(LogExpectedImprovement(), KernelPLS)
    """
    check_declared_needs(acquisition)
    check_value_gradient(acquisition, make())


def check_declared_needs(acquisition: Acquisition) -> None:
    """Every classifier that `links` and `needs` accept gives n finite values that increase with the mean."""
    for link in Link:
        for capabilities in CAPABILITIES:
            model = ToyClassifier(link, capabilities)
            try:
                acquisition.check(model)
            except SettingError:
                continue
            check_values(acquisition, model)


def check_values(acquisition: Acquisition, model: ToyClassifier) -> None:
    """n finite values, also for a deviation of 0; each depends on its own point alone and increases with the mean."""
    who = f"with scores of link {model.link} that can {sorted(model.capabilities) or 'nothing but their mean'}"
    resolved, points = acquisition.resolved(model), model.points
    try:
        values = resolved(model.posterior(points), model.best_label)
    except SettingError as error:
        raise AssertionError(f"{who}, `check` lets it through, but the call raises: {error}") from error
    require_shape(values, (len(points),), f"values {who}")
    halves = torch.cat([resolved(model.posterior(part), model.best_label) for part in points.split(5)])
    require_equal(halves, values, "the value of a point must not depend on the other points", 1e-6)
    lifted = resolved(model.posterior(points, lift=0.5), model.best_label)
    lost = float((values - lifted).max())
    require(lost <= 1e-6, f"a higher mean must not lower the value, but 0.5 more lowers one by {lost:.3g} {who}")
    log_density = resolved.log_density(model.posterior(points), model.best_label)
    require_shape(log_density, (len(points),), f"log_density {who}")


def check_value_gradient(acquisition: Acquisition, classifier: Classifier) -> None:
    """A trained classifier gives n finite values, with gradients if the classifier has them."""
    space = TOY_SPACES["continuous"]
    fit(classifier, toy_data(space), epochs=2)
    acquisition.check(classifier)
    points = space.points.sample(9, torch.Generator().manual_seed(6)).requires_grad_(classifier.differentiable)
    values = acquisition.resolved(classifier)(classifier.posterior(points), classifier.best_label)
    require_shape(values, (9,), f"values with {type(classifier).__name__}")
    if not classifier.differentiable:
        return
    require(values.requires_grad, "values must have gradients in the points, but have none (no detach, no rounding)")
    (gradient,) = torch.autograd.grad(values.sum(), points)
    require_shape(gradient, tuple(points.shape), "the gradient of the values")
    require(gradient.abs().sum() > 0, "the gradient of the values must not be 0 everywhere")
