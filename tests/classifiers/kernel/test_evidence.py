"""The evidence and its gradient by hand, in NumPy and in torch, against torch's own gradient and against each other."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.classifiers.kernel import evidence
from deepbore.classifiers.kernel.evidence import FAILED, FEW, AutogradGram, Evidence, pairs_of
from deepbore.classifiers.kernel.kernels import Split
from deepbore.classifiers.kernel.least_squares import BaseKernelPLS, PartlyAdditivePLS
from deepbore.labels import LabelledBatch
from deepbore.testing import TOY_SPACES

SPACES = {
    **TOY_SPACES,
    "one": SearchSpace({"x": Real(0, 1)}),
    "binaries": SearchSpace({f"b{i}": Categorical(["a", "b"]) for i in range(5)}),
    "long choice": SearchSpace({"m": Categorical([f"m{i}" for i in range(20)]), "k": Ordinal([1, 2, 3])}),
    "branches": SearchSpace(
        {
            "c": Categorical(["a", "b", "c"]),
            "x": Real(0, 1, when=Condition("c", "a")),
            "k": Integer(1, 5, when=Condition("c", "b")),
        }
    ),
}
MODELS = [BaseKernelPLS, PartlyAdditivePLS]
KERNELS = ["matern", "rbf", "rational_quadratic"]


def fitted(model, space, n=30, **settings):
    """A model that has learned n random rows with random labels and weights."""
    stream = torch.Generator().manual_seed(n)
    points = space.points.sample(n, stream)
    points[n // 2] = points[0]  # a repeated row
    z, weight = (torch.rand(n, 1, generator=stream, dtype=torch.float64) for _ in range(2))
    one = model(iterations=1, **settings)
    one.bind(space)
    one.learn_all(LabelledBatch(points, z, weight[:, 0] + 0.1))
    return one


def by_autograd(model, theta):
    """The value and the gradient by torch, of the covariance that predictions come from."""
    at, z = torch.tensor(theta, requires_grad=True), model._data[:, 0]
    factor = torch.linalg.cholesky(model._covariance(at))
    value = z @ torch.cholesky_solve(z[:, None], factor)[:, 0] / 2 + factor.diagonal().log().sum()
    (gradient,) = torch.autograd.grad(value, at)
    return float(value.detach()), gradient.numpy()


def agree(one, other):
    """Whether two values with their gradients are the same to nine digits."""
    (value, gradient), (other_value, other_gradient) = one, other
    scale = np.abs(other_gradient).max()
    return abs(value - other_value) < 1e-9 * (1 + abs(other_value)) and np.allclose(
        gradient, other_gradient, rtol=1e-9, atol=1e-9 * scale
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("space", SPACES)
def test_the_gradient_by_hand_is_that_of_autograd_in_numpy_and_in_torch(space, model, kernel, monkeypatch):
    one, rng = fitted(model, SPACES[space], kernel=kernel, prior=False), np.random.default_rng(0)
    for spread in (0.3, 1.0):
        theta = one.theta.numpy() + spread * rng.normal(size=len(one.theta))
        theta = theta.clip([-2.5] * (len(theta) - 1) + [-8])  # shorter scales cost the distances their digits
        expected = by_autograd(one, theta)
        assert agree(one.negative_evidence()(theta), expected)
        assert agree(Evidence(AutogradGram(one._kernel, one._x), *one._data.mT)(theta), expected)
        with monkeypatch.context() as patch:
            patch.setattr(evidence, "native", lambda tensor: tensor)
            assert agree(one.negative_evidence()(theta), expected)
        with monkeypatch.context() as patch:
            patch.setattr(evidence, "CACHED", 0)  # by products of matrices, as for many rows or parameters
            assert agree(one.negative_evidence()(theta), expected)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40), st.sampled_from(sorted(SPACES)), st.sampled_from(MODELS), st.integers(0, 99))
def test_it_is_right_for_any_number_of_rows(n, space, model, seed):
    one = fitted(model, SPACES[space], n, prior=False)
    theta = np.random.default_rng(seed).uniform(-2, 2, len(one.theta))
    assert agree(one.negative_evidence()(theta), by_autograd(one, theta))


def test_the_prior_is_added_with_its_slope():
    one, other = (fitted(BaseKernelPLS, SPACES["continuous"], prior=prior) for prior in (True, False))
    theta, step = one.theta.numpy(), 1e-6 * np.eye(len(one.theta))
    value, gradient = one.negative_evidence()(theta)
    score = (theta - one._prior[:, 0]) / one._prior[:, 1]
    assert value - other.negative_evidence()(theta)[0] == pytest.approx(score @ score / 2)
    ends = [[one.negative_evidence()(theta + sign * each)[0] for sign in (1, -1)] for each in step]
    assert np.allclose(gradient, np.diff(ends)[:, 0] / -2e-6, rtol=1e-4, atol=1e-5)


def test_what_is_fixed_stays():
    for kept in ({"length_scale": 0.3}, {"regularisation": 0.1}, {"length_scale": 0.3, "regularisation": 0.1}):
        one = fitted(BaseKernelPLS, SPACES["continuous"], **kept)
        one.iterations = 15
        one.learn_all(LabelledBatch(one.space.points.sample(20, one.generator), torch.rand(20, 1), torch.ones(20)))
        if "length_scale" in kept:
            assert torch.allclose(one.theta[:-1].exp(), torch.tensor([0.3] * 3 + [1.0]).double())
        if "regularisation" in kept:
            assert float(one.theta[-1].exp()) == pytest.approx(0.1)


@pytest.mark.parametrize("torch_too", [False, True])
def test_a_matrix_without_a_factor_has_no_evidence(torch_too, monkeypatch):
    if torch_too:
        monkeypatch.setattr(evidence, "native", lambda tensor: tensor)

    def indefinite(theta):
        matrix = evidence.native(torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64))
        return pairs_of(matrix).of(matrix), lambda derivative: []

    value, gradient = Evidence(indefinite, torch.ones(2).double(), torch.ones(2).double())(np.array([0.0, -9.0]))
    assert value == FAILED
    assert not gradient.any()


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("in_torch", [False, True])
def test_pairs_compute_with_a_matrix(n, in_torch):
    stream = np.random.default_rng(n)
    a, x = stream.normal(size=(n, n)), stream.normal(size=(n, 3))
    k, z = a @ a.T + np.eye(n), x[:, 0].copy()
    given, rows, labels = (torch.from_numpy(each) if in_torch else each for each in (k, x, z))
    pairs = pairs_of(rows)
    vector = pairs.of(given)
    lower = np.tril(np.asarray(pairs.matrix(vector)))
    assert np.array_equal(lower, np.tril(k))
    assert np.array_equal(vector[pairs.diagonal], k.diagonal())
    assert len(vector) == (n * n if in_torch else n * (n + 1) // 2)
    assert np.allclose(pairs.times(vector, rows), k @ x)
    factor = pairs.factor(vector)
    assert np.allclose(np.tril(np.asarray(pairs.matrix(factor))), np.linalg.cholesky(k))
    a = pairs.solve(factor, labels)
    assert np.allclose(a, np.linalg.solve(k, z))
    residual = np.linalg.inv(k) - np.outer(a, a)
    assert np.allclose(np.tril(np.asarray(pairs.matrix(pairs.residual(factor, a)))), np.tril(residual))


@pytest.mark.parametrize("in_torch", [False, True])
@pytest.mark.parametrize("many", [False, True])
def test_a_root_of_the_inverse_is_that_of_the_latest_or_of_any_theta(many, in_torch, monkeypatch):
    if in_torch:
        monkeypatch.setattr(evidence, "native", lambda tensor: tensor)
    if many:
        monkeypatch.setattr(evidence, "CACHED", 0)
    one = fitted(BaseKernelPLS, SPACES["continuous"], prior=False)
    tried, theta = one._evidence(), one.theta.numpy()
    expected = torch.linalg.inv(one._covariance(one.theta))
    for before in (theta, theta + 0.1):
        tried(before)
        root = torch.as_tensor(tried.root(theta))
        assert torch.allclose(root.mT @ root, expected, rtol=1e-6)
        assert torch.equal(root, root.tril())


def test_levels_are_those_of_the_rows():
    space = SPACES["branches"]
    points = space.points.sample(40, torch.Generator().manual_seed(0))
    one = BaseKernelPLS()
    one.bind(space)
    place, owner = one.coordinates(points).numpy(), one.coordinates.owner.numpy()
    level, counts = Split.of([np.flatnonzero(owner == column) for column in range(3)]).levels(place)
    for column in range(3):
        rows = [tuple(row) for row in place[:, owner == column]]
        assert counts[column] == len(set(rows))
        assert len(set(zip(level[:, column], rows, strict=True))) == len(set(rows))
    assert counts[0] == 3 <= FEW < counts[1]
