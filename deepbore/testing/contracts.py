"""What every classifier, labelling, acquisition and search for candidates must do; checks raise AssertionError."""

from collections.abc import Callable

import torch
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc

from deepbore.acquisition import Acquisition, ClassProbability
from deepbore.candidates import Candidates, Search
from deepbore.classifiers import Classifier
from deepbore.data.observations import Observations
from deepbore.errors import DeepBoreError, ShapeError, SpaceExhausted
from deepbore.labels import Labelling, ThresholdLabels
from deepbore.space import Categorical, Real, SearchSpace
from deepbore.testing.toys import TOY_SPACES, fit, toy_data

# --- classifiers -----------------------------------------------------------------------------------------------------


def check_classifier(make: Callable[[], Classifier]) -> None:
    """Runs all checks of a classifier.

    Args:
        make: gives a new, unbound classifier.
    """
    for space in TOY_SPACES.values():
        check_shapes(make(), space)
        check_learning(make(), space)
    check_same_seed(make)
    check_state_dict(make)
    check_degenerate_data(make)
    check_wide_spaces(make)
    if make().differentiable:
        check_gradient(make())


def check_shapes(classifier: Classifier, space: SearchSpace) -> None:
    """Scores are m x n, mean and standard deviation n, covariance n x n, all finite; other points are refused."""
    fit(classifier, toy_data(space), epochs=1)
    points = space.sample(7, torch.Generator().manual_seed(1))
    scores, (mean, std) = classifier.scores(points), classifier.gaussian(points)
    assert scores.ndim == 2
    assert scores.shape[1] == 7
    assert mean.shape == std.shape == (7,)
    assert scores.isfinite().all()
    assert (std >= 0).all()
    covariance = classifier.covariance(points).double()
    assert covariance.shape == (7, 7)
    assert torch.linalg.eigvalsh(covariance).min() > -1e-4 * covariance.diagonal().max() - 1e-9
    probability = classifier.probability(points)
    assert probability.shape == (7,)
    assert ((probability >= 0) & (probability <= 1)).all()
    assert _refuses(ShapeError, lambda: classifier.scores(points[:, :-1]))


def check_learning(classifier: Classifier, space: SearchSpace) -> None:
    """It tells good points that it has not seen from bad ones."""
    fit(classifier, toy_data(space, 150, ThresholdLabels(0.3)), epochs=10)
    test = toy_data(space, 400, ThresholdLabels(0.3), seed=1).labelled()
    with torch.no_grad():
        scores = classifier.scores(test.points).mean(0)
    assert binary_auroc(scores.sigmoid(), test.z[:, 0].long()) > 0.8


def check_same_seed(make: Callable[[], Classifier]) -> None:
    """The same seed gives the same scores, and the global stream of random numbers stays as it was."""
    before = torch.random.get_rng_state()
    space = TOY_SPACES["mixed"]
    one, other = (_scores(fit(make(), toy_data(space), epochs=2), space) for _ in range(2))
    assert torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def check_state_dict(make: Callable[[], Classifier]) -> None:
    """A new classifier with the old one's state dict scores the same."""
    space = TOY_SPACES["mixed"]
    fitted, fresh = fit(make(), toy_data(space), epochs=2), make().bind(space)
    fresh.load_state_dict(fitted.state_dict())
    assert torch.equal(_scores(fitted, space), _scores(fresh, space))


def check_degenerate_data(make: Callable[[], Classifier]) -> None:
    """Two rows, equal rows, equal values and failures leave finite scores."""
    space = TOY_SPACES["mixed"]
    for n, values in [(2, [1.0, 2.0]), (5, [1.0] * 5), (1, [1.0]), (4, [1.0, float("nan"), float("nan"), 3.0])]:
        data = toy_data(space, 0)
        configuration = {"lr": 0.01, "units": 64, "optimizer": "adam", "momentum": None, "nesterov": None}
        data.observations.add({name: [value] * n for name, value in configuration.items()}, values)
        assert _scores(fit(make(), data, epochs=2), space).isfinite().all()


def check_wide_spaces(make: Callable[[], Classifier]) -> None:
    """A category of 1000 levels and 200 parameters leave finite scores, from two rows and from twenty."""
    wide = {f"x{i}": Real(0, 1) for i in range(200)}
    for space in (SearchSpace({"c": Categorical([f"level {i}" for i in range(1000)])}), SearchSpace(wide)):
        for n in (2, 20):
            assert _scores(fit(make(), toy_data(space, n), epochs=2), space).isfinite().all()


def check_gradient(classifier: Classifier) -> None:
    """The gradients of mean and standard deviation in the points agree with finite differences."""
    space = TOY_SPACES["continuous"]
    classifier = fit(classifier, toy_data(space), epochs=3).double()
    points = space.sample(20, torch.Generator().manual_seed(2))
    for part in (0, 1):
        leaf = points.clone().requires_grad_(True)
        if not (total := classifier.gaussian(leaf)[part].sum()).requires_grad:
            continue  # a constant, such as the spread of one member
        (gradient,) = torch.autograd.grad(total, leaf)
        direction = torch.randn(points.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
        step = 1e-6 * direction
        with torch.no_grad():
            above, below = (classifier.gaussian(x)[part].sum() for x in (points + step, points - step))
            slope = (above - below) / 2
        assert torch.allclose((gradient * step).sum().to(slope), slope, rtol=1e-3, atol=1e-10)


@torch.no_grad()
def _scores(classifier: Classifier, space: SearchSpace) -> Tensor:
    return classifier.scores(space.sample(11, torch.Generator().manual_seed(4)))


# --- labels, acquisitions, candidates --------------------------------------------------------------------------------


def check_labelling(make: Callable[[], Labelling]) -> None:
    """Labels are in [0, 1], fall as values grow, and leave failed and pending rows in class 0; weights are positive."""
    space = TOY_SPACES["continuous"]
    observations = toy_data(space, 40).observations
    failed, _pending = observations.reserve(space.sample(2, torch.Generator().manual_seed(5)))
    observations.tell(failed, failed=True)
    labels = make()(observations)
    assert labels.z.shape == (42, make().outputs)
    assert labels.weight.shape == (42,)
    assert labels.separable
    assert ((labels.z >= 0) & (labels.z <= 1)).all()
    assert (labels.weight > 0).all()
    by_value = labels.z[:40][observations.values[:40].argsort()]
    assert (by_value.diff(dim=0) <= 0).all()
    assert by_value[0].min() > 0
    assert (labels.z[40:] == 0).all()
    nothing = make()(Observations(space))
    assert not nothing.separable


def check_acquisition(acquisition: Acquisition, make: Callable[[], Classifier]) -> None:
    """Values are n finite numbers with gradients where the classifier has them."""
    space = TOY_SPACES["continuous"]
    classifier = fit(make(), toy_data(space), epochs=2)
    points = space.sample(9, torch.Generator().manual_seed(6)).requires_grad_(classifier.differentiable)
    values = acquisition(classifier, points)
    assert values.shape == (9,)
    assert values.isfinite().all()
    if classifier.differentiable:
        (gradient,) = torch.autograd.grad(values.sum(), points)
        assert gradient.isfinite().all()
        assert gradient.abs().sum() > 0


def check_candidates(
    candidates: Candidates, make: Callable[[], Classifier], spaces: tuple[str, ...] = ("continuous", "finite", "mixed")
) -> None:
    """Proposals are q distinct new configurations, better than random ones, the same for the same seed."""
    for name in spaces:
        space = TOY_SPACES[name]
        data = toy_data(space, 30)
        classifier = fit(make(), data, epochs=3)
        one, other = (candidates.propose(_search(classifier, data.observations), q=5) for _ in range(2))
        assert torch.equal(one, other)
        assert len(set(space.identify(one))) == 5
        assert all(data.observations.unseen(one))
        assert torch.allclose(space.encode(space.decode(one)), one, atol=1e-9)


def check_exhaustion(candidates: Candidates, make: Callable[[], Classifier]) -> None:
    """A finite space is proposed to its last configuration, and then refused."""
    space = TOY_SPACES["finite"]
    data = toy_data(space, 0)
    points = space.enumerate()
    data.observations.reserve(points[:-2])
    for row in range(len(points) - 2):
        data.observations.tell(row, float(row))
    search = _search(fit(make(), data, epochs=1), data.observations)
    assert set(space.identify(candidates.propose(search, q=2))) == set(space.identify(points[-2:]))
    assert _refuses(SpaceExhausted, lambda: candidates.propose(search, q=3))


def _search(classifier: Classifier, observations: Observations) -> Search:
    return Search(ClassProbability(), classifier, observations, torch.Generator().manual_seed(7))


def _refuses(error: type[DeepBoreError], call: Callable[[], object]) -> bool:
    try:
        call()
    except error:
        return True
    return False
