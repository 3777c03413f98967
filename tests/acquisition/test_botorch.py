"""The bridge to BoTorch: posteriors against the classifier's scores, acquisitions against closed forms."""

import math
import runpy

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qExpectedImprovement,
    qProbabilityOfImprovement,
    qSimpleRegret,
    qUpperConfidenceBound,
)
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.index_sampler import IndexSampler

import deepbore
from deepbore import (
    DeepEnsemble,
    DeepPLS,
    KernelPLS,
    LaplaceGGN,
    MLPClassifier,
    Study,
    Training,
    UpperConfidenceBound as OurBound,
)
from deepbore.classifiers import FourierLogistic, GPClassifier
from deepbore.errors import SettingError, ShapeError
from deepbore.integrations.botorch import BoTorchAcquisition, BoTorchClassifier, EveryMember, joint_acquisition
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from processes import ROOT
from tried import some_bowl, tried

SPACE = TOY_SPACES["continuous"]

QUICK = Training(steps=30)

HEADS = {
    "DeepEnsemble": lambda: DeepEnsemble(members=4, training=QUICK),
    "LaplaceGGN": lambda: LaplaceGGN(training=QUICK),
    "KernelPLS": KernelPLS,
    "DeepPLS": lambda: DeepPLS(training=QUICK),
    "FourierLogistic": FourierLogistic,
    "GPClassifier": GPClassifier,
}

EXAMPLE = ROOT / "examples" / "botorch_acquisition.py"


@pytest.fixture(scope="module", params=HEADS)
def classifier(request):
    return fit(HEADS[request.param](), toy_data(SPACE, 10), epochs=3)


@pytest.fixture(scope="module")
def ensemble():
    return fit(HEADS["DeepEnsemble"](), toy_data(SPACE), epochs=3)


@pytest.fixture(scope="module")
def kernel():
    return fit(KernelPLS(length_scale=0.5, regularisation=0.01), toy_data(SPACE, 10), epochs=1)


def points(*shape, seed=17):  # other than the seed of the data
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, len(SPACE), dtype=torch.float64, generator=generator)


def members(classifier, x):
    return classifier.posterior(x).members


@pytest.mark.parametrize("shape", [(1,), (5,), (0, 2), (4, 3), (2, 3, 2), (200, 2)])
def test_posteriors_have_botorchs_shapes_and_the_classifiers_moments(classifier, shape):
    x = points(*shape)
    posterior = BoTorchClassifier(classifier).posterior(x)
    assert posterior.mean.shape == posterior.variance.shape == (*shape, 1)
    assert posterior.rsample(torch.Size([6])).shape == (6, *shape, 1)
    expected = classifier.posterior(x.reshape(-1, 3))
    if BoTorchClassifier(classifier).gaussian:
        assert torch.allclose(posterior.mean.flatten(), expected.mean.double(), atol=1e-5)
        assert torch.allclose(posterior.variance.flatten(), expected.std.double().square(), rtol=1e-3, atol=1e-7)
    else:
        scores = expected.members.double()
        assert torch.allclose(posterior.mean.flatten(), scores.mean(0), atol=1e-5)
        assert torch.allclose(posterior.variance.flatten(), scores.var(0, correction=1), rtol=1e-3)


def test_the_members_are_joint_samples_of_all_points(ensemble):
    x = points(4, 3)
    samples = EveryMember()(BoTorchClassifier(ensemble).posterior(x))
    for b in range(4):
        assert torch.allclose(samples[:, b, :, 0], members(ensemble, x[b]).double(), atol=1e-5)


def test_the_joint_gaussian_of_a_kernel_is_that_of_its_closed_form(kernel):
    x = points(2, 4)
    theirs = BoTorchClassifier(kernel).posterior(x).distribution.covariance_matrix
    scale = (-kernel.theta[:3]).exp()

    def gram(a, b):
        return kernel.theta[3].exp() * kernel.function(torch.cdist(a * scale, b * scale).square())

    noise = kernel.theta[4].exp() / kernel._data[:, 1]
    inverse = torch.linalg.inv(gram(kernel._x, kernel._x) + torch.diag(noise))
    for b in range(2):
        expected = gram(x[b], x[b]) - gram(x[b], kernel._x) @ inverse @ gram(kernel._x, x[b])
        assert torch.allclose(theirs[b], expected, rtol=1e-4, atol=1e-6)
        assert (expected - expected.diag().diag()).abs().max() > 1e-3


def test_the_joint_gaussian_of_last_layers_is_the_mixture_of_the_members():
    classifier = fit(HEADS["DeepPLS"](), toy_data(SPACE), epochs=3)
    x = points(3)
    phi = classifier._last_features(classifier.encode(x)).detach().numpy()
    roots, means = classifier.last_root.numpy(), classifier.last_mean.numpy()
    each = [phi[m] @ roots[m] @ roots[m].T @ phi[m].T for m in range(3)]
    between = np.cov(np.stack([phi[m] @ means[m] for m in range(3)], axis=1), bias=True)
    posterior = classifier.posterior(x)
    assert np.allclose(posterior.covariance().detach(), sum(each) / 3 + between, rtol=1e-3, atol=1e-6)
    assert torch.allclose(posterior.covariance().diagonal(), posterior.std.square(), rtol=1e-3)


def test_a_head_is_taken_for_what_its_posterior_can_do():
    gaussian = {name for name, make in HEADS.items() if BoTorchClassifier(make()).gaussian}
    assert gaussian == {"KernelPLS", "DeepPLS", "FourierLogistic", "GPClassifier"}
    with pytest.raises(SettingError, match=r"MLPClassifier has no deviation, so no Gaussian. Use DeepEnsemble"):
        BoTorchClassifier(MLPClassifier(), gaussian=True)
    with pytest.raises(SettingError, match="KernelPLS has a Gaussian and no members"):
        BoTorchClassifier(KernelPLS(), gaussian=False)


def test_points_of_another_space_are_refused(ensemble, kernel):
    for classifier in (ensemble, kernel):
        with pytest.raises(ShapeError):
            BoTorchClassifier(classifier).posterior(points(2, 2)[..., :2])


def test_the_bound_of_one_point_is_its_closed_form_over_the_members(ensemble):
    x, beta = points(7, 1), 2.0
    scores = members(ensemble, x.squeeze(1)).double()
    deviation = (scores - scores.mean(0)).abs().mean(0)
    expected = scores.mean(0) + math.sqrt(beta * math.pi / 2) * deviation
    bound = qUpperConfidenceBound(BoTorchClassifier(ensemble), beta=beta, sampler=EveryMember())
    assert torch.allclose(bound(x), expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore:qExpectedImprovement")
def test_acquisitions_of_several_points_are_double_loops_over_points_and_members(ensemble):
    x, best = points(3, 2), members(ensemble, points(20)).mean().item()
    model, sampler = BoTorchClassifier(ensemble), EveryMember()
    improvement = qExpectedImprovement(model, best_f=best, sampler=sampler)(x)
    regret = qSimpleRegret(model, sampler=sampler)(x)
    probability = qProbabilityOfImprovement(model, best_f=best, sampler=sampler, tau=1e-6)(x)
    for b in range(3):
        tops = [max(member) for member in members(ensemble, x[b]).tolist()]
        assert regret[b].item() == pytest.approx(sum(tops) / 4, abs=1e-5)
        assert improvement[b].item() == pytest.approx(sum(max(top - best, 0) for top in tops) / 4, abs=1e-5)
        assert probability[b].item() == pytest.approx(sum(top > best for top in tops) / 4, abs=1e-5)


def test_botorchs_own_random_members_agree_in_the_mean(ensemble):
    model, x = BoTorchClassifier(ensemble), points(3, 2)
    random = qSimpleRegret(model, sampler=IndexSampler(torch.Size([4000]), seed=0))(x)
    spread = members(ensemble, x.view(-1, 3)).std(0).max()
    assert torch.allclose(random, qSimpleRegret(model, sampler=EveryMember())(x), atol=0.1 * spread.item())


def test_gaussian_acquisitions_agree_with_ours_and_botorchs(kernel):
    x, model = points(6, 1), BoTorchClassifier(kernel)
    posterior = kernel.posterior(x.squeeze(1))
    for best in (1.0, 0.6):
        ours = deepbore.LogExpectedImprovement()(posterior, best)
        assert torch.allclose(LogExpectedImprovement(model, best_f=best)(x), ours, rtol=1e-3)
    bound = UpperConfidenceBound(model, beta=4.0)(x)
    assert torch.allclose(bound, OurBound(2.0)(posterior, 1.0), atol=1e-5)
    sampler = SobolQMCNormalSampler(torch.Size([4096]), seed=0)
    assert torch.allclose(qUpperConfidenceBound(model, beta=4.0, sampler=sampler)(x), bound, rtol=0.01)


def test_the_best_label_is_what_botorch_improves_on(kernel):
    before = float(kernel.best_label)
    try:
        kernel.best_label.fill_(0.6)
        assert float(joint_acquisition(kernel, seed=0).best_f) == pytest.approx(0.6)
    finally:
        kernel.best_label.fill_(before)


def test_gradients_flow(classifier):
    acquisition, x = joint_acquisition(classifier, seed=0), points(3, 2).requires_grad_(True)
    (gradient,) = torch.autograd.grad(acquisition(x).sum(), x)
    assert gradient.isfinite().all()
    assert (gradient.abs().sum((1, 2)) > 0).all()


def test_a_network_in_double_precision_has_the_gradient_of_finite_differences(ensemble):
    model = BoTorchClassifier(fit(HEADS["DeepEnsemble"](), toy_data(SPACE), epochs=3).double())
    acquisition, x = qUpperConfidenceBound(model, beta=1.0, sampler=EveryMember()), points(2, 2)
    assert torch.autograd.gradcheck(acquisition, x.requires_grad_(True), eps=1e-7, atol=1e-4)


def test_an_acquisition_of_ours_has_its_values_in_batches_of_one_point(kernel):
    x = points(5)
    ours = deepbore.LogExpectedImprovement()
    expected = ours(kernel.posterior(x), kernel.best_label)
    assert torch.equal(BoTorchAcquisition(ours, kernel)(x[:, None]), expected.to(x))
    assert torch.equal(BoTorchAcquisition(ours, kernel, lambda some: some[:, 0])(x[:, None]), x[:, 0])
    for wrong in (x, x.view(1, 5, 3), x[None, :, None]):
        with pytest.raises(ShapeError, match="X must have shape b x 1 x d"):
            BoTorchAcquisition(ours, kernel)(wrong)


def test_a_transform_of_the_posterior_is_applied(classifier):
    x, double = points(4, 2), ScalarizedPosteriorTransform(torch.tensor([2.0], dtype=torch.float64))
    model = BoTorchClassifier(classifier)
    if model.gaussian:
        assert torch.allclose(model.posterior(x, posterior_transform=double).mean, 2 * model.posterior(x).mean)


@pytest.mark.parametrize(("noisy", "kind"), [(False, qLogExpectedImprovement), (True, qLogNoisyExpectedImprovement)])
def test_improvement_is_over_a_baseline_where_labels_are_noisy(noisy, kind):
    study = Study(SQUARE, seed=0, classifier=KernelPLS(noisy=noisy))
    study.add(*some_bowl(60, 0, chance=0.3))  # most is chance
    classifier, seen = study.fit(), study.observations.points
    torch.manual_seed(0)
    state = torch.get_rng_state()
    found = joint_acquisition(classifier, seed=0, baseline=seen)
    assert type(found) is kind
    assert found(seen[:6].view(3, 2, 2)).isfinite().all()
    assert torch.equal(torch.get_rng_state(), state)  # nothing is drawn from the global stream
    assert type(joint_acquisition(classifier, seed=0)) is qLogExpectedImprovement


@pytest.mark.slow
def test_botorchs_optimiser_keeps_its_constraint(ensemble):
    bound = qUpperConfidenceBound(BoTorchClassifier(ensemble), beta=1.0, sampler=EveryMember())
    indices, coefficients = torch.tensor([0, 1]), torch.tensor([-1.0, -1.0], dtype=torch.float64)
    torch.manual_seed(0)
    found, _ = optimize_acqf(
        bound,
        SPACE.points.bounds,
        q=2,
        num_restarts=2,
        raw_samples=16,
        inequality_constraints=[(indices, coefficients, -0.4)],
    )
    assert found.shape == (2, 3)
    assert (found[:, 0] + found[:, 1] <= 0.4 + 1e-6).all()
    free, _ = optimize_acqf(bound, SPACE.points.bounds, q=2, num_restarts=2, raw_samples=16)
    assert float(bound(free)) > float(bound(found))


@pytest.mark.slow
def test_the_example_runs(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "within the constraint: True" in capsys.readouterr().out


# regression: this was wrong once
@pytest.mark.slow
@pytest.mark.parametrize("head", [FourierLogistic, GPClassifier, KernelPLS])
def test_scores_at_points_in_single_precision_can_be_drawn(head):
    study = tried(Study(SQUARE, classifier=head(), seed=0, n_initial=6), 15)
    model = BoTorchClassifier(study.fit())
    points = torch.rand(300, 2, generator=torch.Generator().manual_seed(0))
    drawn = model.posterior(points).rsample(torch.Size([64]))
    assert drawn.dtype == torch.float32
    assert drawn.isfinite().all()
