"""What every labelling, acquisition and search for candidates must do; checks raise AssertionError."""

from collections.abc import Callable

import torch

from deepbore.acquisition import Acquisition, ClassProbability
from deepbore.candidates import Candidates, Search
from deepbore.classifiers import Classifier
from deepbore.data.observations import Observations
from deepbore.errors import DeepBoreError, SpaceExhausted
from deepbore.labels import Labelling
from deepbore.testing.toys import TOY_SPACES, fit, toy_data

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
    by_value = labels.z[:40][observations.values[:40, 0].argsort()]
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
    values = acquisition.resolved(classifier)(classifier.posterior(points), classifier.best_label)
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
