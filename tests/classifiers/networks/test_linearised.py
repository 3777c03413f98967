"""LaplaceGGN of a user's own network against built-in ones, dense algebra, and laplace-torch's own curvature."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from laplace import Laplace
from laplace.curvature import CurvlinopsGGN
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from deepbore import LaplaceGGN, ThresholdLabels, Training
from deepbore.classifiers.networks.laplace_torch import TwoLogits
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, check_classifier, fit, toy_data

SPACE = TOY_SPACES["continuous"]
FEW = Training(steps=30, batch_size=1000)
STRUCTURES = ["full", "kron", "diag", "last_layer"]
POINTS = SPACE.points.sobol(7, seed=2)


def tanh_network(features, outputs):
    return nn.Sequential(nn.Linear(features, 4), nn.Tanh(), nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, outputs))


def normed_network(features, outputs):
    return nn.Sequential(nn.Linear(features, 6), nn.LayerNorm(6), nn.SiLU(), nn.Linear(6, outputs, bias=False))


def silu_network(features, outputs):
    hidden = [nn.Linear(features, 24), nn.SiLU(), nn.Linear(24, 24), nn.SiLU()]
    return nn.Sequential(*hidden, nn.Linear(24, outputs))


def built_in(structure, n=40, weight=None, **settings):
    """A fitted classifier, in double precision, and its rows, whose weights are set."""
    data = toy_data(SPACE, n, ThresholdLabels(0.4))
    settings = {"likelihood": "bernoulli", **settings}
    classifier = LaplaceGGN((4, 3), "tanh", structure=structure, training=FEW, **settings)
    fit(classifier, data, epochs=3).double()
    batch = data.labelled()
    batch = replace(batch, z=batch.z.double(), weight=torch.ones(n).double() if weight is None else weight)
    condition(classifier, batch)
    return classifier, batch


def condition(classifier, batch):
    classifier._condition_on(classifier.encode(batch.points), batch.weight, torch.tensor(3), batch.z[:, 0])


def copy_of(classifier, batch):
    """The same network and prior as a user's own, given the same rows."""
    likelihood = "gaussian" if classifier.is_gaussian else "bernoulli"
    own = LaplaceGGN(network=tanh_network, structure=classifier.structure, likelihood=likelihood).bind(SPACE).double()
    layers = [layer for layer in own.net.members[0] if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer, stacked in zip(layers, classifier.net.layers, strict=True):
            layer.weight.copy_(stacked.weight[0].mT)
            layer.bias.copy_(stacked.bias[0, 0])
        own.delta.copy_(classifier.delta)
        if classifier.is_gaussian:
            own.noise.copy_(classifier.noise)
    condition(own, batch)
    return own


# --- the same as the built-in path -----------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("n", [20, 80])  # fewer rows than weights, and more
def test_the_same_network_has_the_same_posterior_and_evidence_by_both_paths(structure, n, likelihood):
    weight = torch.linspace(0.2, 3.0, n, dtype=torch.float64)
    classifier, batch = built_in(structure, n, weight, likelihood=likelihood)
    own = copy_of(classifier, batch)
    ours, theirs = classifier.posterior(POINTS), own.posterior(POINTS)
    assert torch.allclose(theirs.mean, ours.mean)
    assert torch.allclose(theirs.std, ours.std, rtol=1e-6)
    assert torch.allclose(theirs.covariance(), ours.covariance(), rtol=1e-6, atol=1e-9)
    assert float(own.log_evidence(batch)) == pytest.approx(float(classifier.log_evidence(batch)), rel=1e-6)
    effective = float(classifier.weight_posterior.effective)
    assert float(own.weight_posterior.effective) == pytest.approx(effective, rel=1e-6)


def test_kronecker_factors_are_those_by_hand_with_biases_apart():
    weight = torch.linspace(0.2, 3.0, 40, dtype=torch.float64)
    classifier, batch = built_in("kron", 40, weight)
    own = copy_of(classifier, batch)
    output, factors = classifier.net.jacobian_factors(classifier.encode(batch.points))
    _, at = classifier.net.jacobian_factors(classifier.encode(POINTS))
    curvature = weight * output.sigmoid() * (1 - output.sigmoid())
    expected, log_determinant, effective, delta = torch.zeros(7, 7, dtype=torch.float64), 0.0, 0.0, classifier.delta
    for (a, g), (b, h) in zip(factors, at, strict=True):
        gradients = torch.einsum("n,ni,nj->ij", curvature, g, g)
        inputs = torch.einsum("n,ni,nj->ij", weight / weight.sum(), a[:, :-1], a[:, :-1])
        for block, jacobian in (
            (torch.kron(gradients, inputs), torch.einsum("no,ni->noi", h, b[:, :-1]).flatten(1)),
            (gradients, h),
        ):
            precision = block + delta * torch.eye(len(block))
            expected += jacobian @ torch.linalg.inv(precision) @ jacobian.mT
            log_determinant += float((precision / delta).logdet().detach())
            effective += float((block @ torch.linalg.inv(precision)).trace().detach())
    posterior = own.posterior(POINTS)
    assert torch.allclose(posterior.covariance(), expected)
    assert torch.allclose(posterior.std.square(), expected.diagonal())
    assert float(own.weight_posterior.log_determinant) == pytest.approx(log_determinant)
    assert float(own.weight_posterior.effective) == pytest.approx(effective)


# --- the same as laplace-torch with its own curvature ----------------------------------------------------------------


def reference(own, batch, structure):
    """laplace-torch as it comes: no weights of rows, Jacobians and factors by curvlinops."""
    theirs = Laplace(
        TwoLogits(own.net.members[0]), "classification", "all", structure, backend=CurvlinopsGGN,
        prior_precision=float(own.delta),
    )  # fmt: skip
    rows = TensorDataset(own.encode(batch.points), batch.z[:, 0].long())
    theirs.fit(DataLoader(rows, batch_size=len(batch)))
    return theirs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("structure", ["full", "kron", "diag"])
def test_without_weights_it_is_what_laplace_torch_gives(structure):
    classifier, batch = built_in(structure)
    own = copy_of(classifier, batch)
    theirs = reference(own, batch, structure)
    _, variance = theirs._glm_predictive_distribution(own.encode(POINTS))
    assert torch.allclose(own.posterior(POINTS).std.square(), variance[:, 1, 1])
    assert float(own.log_evidence(batch)) == pytest.approx(float(theirs.log_marginal_likelihood()))
    if structure == "full":
        return
    probability = theirs(own.encode(POINTS), link_approx="probit")  # of two logits, and one with a variance
    assert torch.allclose(own.weight_posterior.laplace(own.encode(POINTS), link_approx="probit"), probability)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("structure", ["full", "diag"])
def test_the_built_in_path_is_what_laplace_torch_gives(structure):
    classifier, batch = built_in(structure)
    theirs = reference(copy_of(classifier, batch), batch, structure)
    _, variance = theirs._glm_predictive_distribution(classifier.encode(POINTS))
    assert torch.allclose(classifier.posterior(POINTS).std.square(), variance[:, 1, 1])
    assert float(classifier.log_evidence(batch)) == pytest.approx(float(theirs.log_marginal_likelihood()))


# --- weights, gradients, samples, state ------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_row_of_weight_two_counts_twice(structure):
    classifier, batch = built_in(structure, 12)
    own = copy_of(classifier, batch)
    weight = torch.ones(12, dtype=torch.float64).index_fill(0, torch.tensor(4), 2.0)
    condition(own, replace(batch, weight=weight))
    weighted = own.posterior(POINTS).std
    condition(own, batch.take(torch.tensor([*range(12), 4])))
    assert torch.allclose(own.posterior(POINTS).std, weighted)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_row_of_weight_two_counts_twice_where_a_layer_sees_several_vectors_of_a_row(structure):
    class Shared(nn.Module):
        """One layer for each feature of a row, then the mean."""

        def __init__(self, features, outputs):
            super().__init__()
            self.first, self.last = nn.Linear(1, 5), nn.Linear(5, outputs)

        def forward(self, x):
            return self.last(self.first(x[..., None]).tanh().mean(-2))

    data = toy_data(SPACE, 20, ThresholdLabels(0.4))
    settings = {"network": Shared, "structure": structure, "training": FEW, "likelihood": "bernoulli"}
    own = fit(LaplaceGGN(**settings), data, epochs=2).double()
    deviations = []
    for rows in ([*range(20)], [*range(20), 4]):
        batch = data.labelled().take(torch.tensor(rows))
        weight = torch.ones(len(rows)).index_fill(0, torch.tensor(4), 2.0 if len(rows) == 20 else 1.0)
        condition(own, replace(batch, weight=weight))
        deviations.append(own.posterior(POINTS).std)
    assert torch.allclose(*deviations)


@pytest.mark.parametrize(
    ("structure", "network"),
    [*((structure, tanh_network) for structure in STRUCTURES), ("full", normed_network), ("diag", normed_network)],
)
def test_mean_and_deviation_have_the_gradients_of_finite_differences(structure, network):
    """Through vmap(grad(...)) that of the deviation was wrong for nn.LayerNorm."""
    data = toy_data(SPACE, 30, ThresholdLabels(0.4))
    own = fit(LaplaceGGN(network=network, structure=structure, training=FEW), data, epochs=3).double()
    points = POINTS.clone().requires_grad_(True)
    for moment in ("mean", "std"):
        (gradient,) = torch.autograd.grad(getattr(own.posterior(points), moment).sum(), points)
        assert gradient.abs().max() > 1e-4
        for i in range(points.shape[1]):
            step = torch.zeros_like(points).index_fill(1, torch.tensor(i), 1e-6)
            with torch.no_grad():
                above, below = (getattr(own.posterior(points + sign * step), moment) for sign in (1, -1))
            assert torch.allclose(gradient[:, i], (above - below) / 2e-6, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_members_and_samples_have_the_moments_of_the_predictive(structure):
    data = toy_data(SPACE, 40, ThresholdLabels(0.4))
    settings = {"network": tanh_network, "structure": structure, "samples": 4000, "training": FEW}
    own = fit(LaplaceGGN(**settings), data, epochs=2).double()
    with torch.no_grad():
        posterior = own.posterior(POINTS)
        covariance = posterior.covariance()
        for drawn in (posterior.members, posterior.sample(4000, torch.Generator().manual_seed(5))):
            assert drawn.shape == (4000, 7)
            assert torch.allclose(drawn.mean(0), posterior.mean, atol=5 * float(posterior.std.max()) / 4000**0.5)
            assert torch.allclose(torch.cov(drawn.mT), covariance, atol=0.15 * float(covariance.max()))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_posterior_comes_back_with_the_state_and_leaves_the_global_stream_alone(structure):
    settings = {"network": tanh_network, "structure": structure, "training": FEW}
    own = fit(LaplaceGGN(**settings), toy_data(SPACE, 30, ThresholdLabels(0.4)), epochs=2)
    fresh = LaplaceGGN(**settings).bind(SPACE)
    before = torch.random.get_rng_state()
    fresh.load_state_dict(own.state_dict())
    with torch.no_grad():
        old, new = own.posterior(POINTS), fresh.posterior(POINTS)
        assert torch.allclose(new.members, old.members, rtol=0, atol=1e-6)  # BLAS rounds by where a matrix lies
        assert torch.allclose(new.std, old.std, rtol=0, atol=1e-6)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_before_any_row_it_is_the_prior():
    own = LaplaceGGN(network=tanh_network, prior_precision=4.0).bind(SPACE).double()
    leaf = POINTS.clone()
    (_, factors) = own._linearised(own.encode(leaf))
    assert torch.allclose(own.posterior(leaf).std.square(), factors[0][0].square().sum(-1) / 4)


def test_the_users_network_stays_as_it_is():
    """Its own parameters keep their precision and go on to be trained."""
    own = LaplaceGGN(network=tanh_network, structure="last_layer", training=FEW)
    fit(own, toy_data(SPACE, 30, ThresholdLabels(0.4)), epochs=2)
    own.posterior(POINTS)
    assert all(p.requires_grad and p.dtype == torch.float32 for p in own.net.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_it_learns(structure):
    data = toy_data(SPACE, 60, ThresholdLabels(0.3))
    own = fit(LaplaceGGN(network=silu_network, structure=structure), data)
    assert float(own.trainer.callback_metrics["auroc"]) > 0.95
    assert (own.posterior(POINTS).std > 1e-3).all()


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_contract_of_classifiers(structure):
    check_classifier(lambda: LaplaceGGN(network=silu_network, structure=structure, training=Training(steps=50)))


# --- what is refused, and when it is imported ------------------------------------------------------------------------


class Doubtful(nn.Module):
    """Asks for a number in the middle, as torch.func cannot."""

    def __init__(self, features, outputs):
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x):
        return self.layer(x if float(x.sum()) > 0 else -x)


@pytest.mark.parametrize(
    ("structure", "network", "says"),
    [
        ("last_layer", lambda e, k: nn.Sequential(nn.Linear(e, k), nn.Tanh()), "must give its output"),
        ("last_layer", lambda e, k: nn.Bilinear(e, e, k), "needs a network with an nn.Linear|fails for two rows"),
        ("kron", normed_network, "weights are all of nn.Linear"),
        ("full", Doubtful, 'can.t be had for several rows at once.*Try "last_layer"'),
    ],
)
def test_networks_without_this_structure_are_refused_before_anything_is_learned(structure, network, says):
    with pytest.raises(SettingError, match=says):
        LaplaceGGN(network=network, structure=structure).bind(SPACE)


@pytest.mark.slow
def test_laplace_torch_is_imported_when_it_is_used():
    code = (
        "import sys, deepbore; from deepbore.testing import TOY_SPACES, toy_data, fit;"
        "fit(deepbore.DeepEnsemble(), toy_data(TOY_SPACES['continuous'], 5), epochs=1);"
        "print('laplace' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False"]
