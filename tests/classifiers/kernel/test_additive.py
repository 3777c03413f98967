"""Where what each parameter does alone adds up, `KernelPLS` predicts by a kernel that says so."""

import math
import random

import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import Matern

from deepbore import Categorical, Condition, Integer, KernelPLS, Outcome, Real, SearchSpace, Study, ValueGradedLabels
from deepbore.classifiers.kernel.kernels import PartlyAdditiveKernel, ScaledKernel, matern52
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations
from deepbore.strategies import OtherBranches
from deepbore.testing import fit

CUBE, HYPERCUBE = (SearchSpace({name: Real(0, 1) for name in names}) for names in ("xyz", "abcd"))


def waves(params):
    """A bowl, and waves along each parameter."""
    return sum(4 * (u - 0.4) ** 2 + 0.3 * math.cos(25 * (u - 0.4)) for u in params.values())


def across(params):
    """A bowl, and waves along a diagonal."""
    diagonal = params["x"] + params["y"] - params["z"]
    return sum(4 * (u - 0.4) ** 2 for u in params.values()) + math.cos(15 * diagonal)


def data(objective, n=60, space=CUBE, seed=0):
    """n random configurations with the objective's values."""
    observations = Observations(space)
    points = space.points.sample(n, torch.Generator().manual_seed(seed))
    for row, params in zip(observations.reserve(points), space.decode(points), strict=True):
        observations.tell(row, objective(params))
    return LabelledObservations(observations, ValueGradedLabels())


def test_the_kernel_adds_one_of_each_parameter_to_one_of_all():
    x, y = torch.rand(7, 3, dtype=torch.float64), torch.rand(5, 3, dtype=torch.float64)
    scales, groups = np.array([0.3, 0.7, 0.7]), (torch.tensor([0]), torch.tensor([1, 2]))
    together = ScaledKernel(matern52, torch.tensor(1 / scales), torch.tensor(2.0, dtype=torch.float64))
    share, ratio = torch.tensor(0.3, dtype=torch.float64), torch.tensor(0.2, dtype=torch.float64)
    ours = PartlyAdditiveKernel(together, share, ratio, groups)
    first, second = Matern(0.2 * scales[0], nu=2.5), Matern(0.2 * scales[1:], nu=2.5)
    alone = (first(x[:, :1], y[:, :1]) + second(x[:, 1:], y[:, 1:])) / 2
    assert np.allclose(ours(x, y), 2 * (0.7 * Matern(scales, nu=2.5)(x, y) + 0.3 * alone))
    assert np.allclose(ours(x, x).diagonal(), ours.amplitude)


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "prefers_additive"), [(waves, True), (across, False)])
def test_the_rival_predicts_where_parameters_add_and_nowhere_else(objective, prefers_additive):
    for seed in range(3):
        assert fit(KernelPLS(), data(objective, seed=seed), epochs=5).prefers_additive == prefers_additive


def test_a_rival_that_does_not_predict_changes_nothing():
    rows, at = data(across), CUBE.points.sobol(50, seed=1)
    with_it, without = (fit(KernelPLS(additive=additive), rows, epochs=5) for additive in (True, False))
    assert torch.equal(with_it.posterior(at).mean, without.posterior(at).mean)
    assert torch.equal(with_it.posterior(at).std, without.posterior(at).std)
    assert torch.equal(with_it.best_label, without.best_label)


def test_it_forecasts_waves_along_parameters_better():
    at = CUBE.points.sobol(200, seed=1)
    truth = np.array([waves(params) for params in CUBE.decode(at)])
    ranks = {}
    for additive in (True, False):
        forecast = fit(KernelPLS(additive=additive), data(waves), epochs=5).posterior(at).mean.numpy()
        ranks[additive] = -np.corrcoef(forecast.argsort().argsort(), truth.argsort().argsort())[0, 1]
    assert ranks[True] > 0.9 > ranks[False]


def test_the_chosen_one_is_likelier_by_schwarz_criterion():
    rows = data(waves)
    classifier = fit(KernelPLS(), rows, epochs=5)
    n = len(rows.labelled())
    own, rival = (each.negative_evidence()(each.theta.numpy())[0] for each in (classifier, classifier.additive_model))
    assert own - rival > math.log(n)


def test_a_rival_to_which_most_is_chance_does_not_predict():
    values = random.Random(3)
    batch = data(lambda params: values.gauss(0, 1), 60).labelled()
    classifier = KernelPLS()
    classifier.bind(CUBE)
    classifier.theta.copy_(torch.tensor([-3.0, -3.0, -3.0, 0.0, -12.0]))  # explains noise by short length scales
    for _ in range(3):
        learned = classifier.learn(batch)
    rival = classifier.additive_model.learn(batch)
    assert (learned["loss"] - rival["loss"]) * len(batch) > math.log(len(batch))
    assert classifier.additive_model.is_mostly_noise
    assert not classifier.prefers_additive


@pytest.mark.slow
def test_a_run_down_waves_finds_what_one_without_does_not():
    found = {}
    for additive in (True, False):
        study = Study(HYPERCUBE, classifier=KernelPLS(additive=additive), seed=0)
        found[additive] = study.optimize(waves, n_trials=70, progress=False).best_value
    lowest = 4 * min(4 * (u - 0.4) ** 2 + 0.3 * math.cos(25 * (u - 0.4)) for u in np.linspace(0, 1, 10001))
    assert found[True] - lowest < 0.1 * (found[False] - lowest)


def test_what_it_has_learned_is_in_checkpoints():
    at = CUBE.points.sobol(20, seed=1)
    classifier = fit(KernelPLS(), data(waves), epochs=5)
    other = KernelPLS()
    other.bind(CUBE)
    other.load_state_dict(classifier.state_dict())
    assert other.prefers_additive
    assert torch.allclose(other.posterior(at).mean, classifier.posterior(at).mean)


@pytest.mark.slow
def test_a_loaded_study_goes_on_by_it_bit_for_bit(tmp_path):
    def go_on(study, n):
        study.optimize(waves, n_trials=n, progress=False)
        assert study._state.classifier.prefers_additive
        return [trial.params for trial in study.trials]

    whole, part = (Study(HYPERCUBE, journal=tmp_path / f"{name}.jsonl", seed=0) for name in "ab")
    expected = go_on(whole, 34)
    go_on(part, 30)
    part.close()
    assert go_on(Study.load(tmp_path / "b.jsonl"), 4) == expected


def test_what_leaves_out_branches_keeps_its_rival_too():
    space = SearchSpace({"kind": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("kind", "a"))})
    told, loaded = OtherBranches(), OtherBranches()
    told.load_state_dict({"theta": torch.arange(4.0), "rival": torch.arange(6.0)})
    told._bind(space)
    loaded.load_state_dict(told.state_dict())
    loaded._bind(space)
    assert torch.equal(loaded.model.additive_model.theta, torch.arange(6.0).double())


def test_constraints_have_none():
    study = Study(CUBE, seed=0)
    study.optimize(lambda params: Outcome(waves(params), constraints=[params["x"] - 0.5]), n_trials=12, progress=False)
    heads = study._state.feasibility._models.values()
    assert heads
    assert all(head.additive_model is None for head in heads)


def test_where_there_is_none():
    wide = SearchSpace({f"x{number}": Real(0, 1) for number in range(10)})
    for space, settings in [
        (SearchSpace({"x": Real(0, 1)}), {}),
        (wide, {}),
        (CUBE, {"additive": False}),
        (CUBE, {"noisy": True}),
        (CUBE, {"length_scale": 0.3}),
        (CUBE, {"regularisation": 0.1}),
        (CUBE, {"kernel": "rbf"}),
    ]:
        classifier = KernelPLS(**settings)
        classifier.bind(space)
        assert classifier.additive_model is None


def test_parameters_with_levels_and_conditions_add_too():
    space = SearchSpace(
        {
            "layers": Integer(1, 20),
            "rate": Real(1e-4, 1, log=True),
            "kind": Categorical(["a", "b", "c"]),
            "momentum": Real(0, 1, when=Condition("kind", "a")),
        }
    )

    def objective(params):
        rate = math.cos(4 * math.log(params["rate"]))
        return 0.3 * (params["layers"] % 3) + rate + {"a": 0, "b": 1, "c": 0.5}[params["kind"]]

    assert fit(KernelPLS(), data(objective, 80, space), epochs=5).prefers_additive


def test_additive_is_yes_or_no():
    with pytest.raises(SettingError, match="additive"):
        KernelPLS(additive="mostly")


def test_states_of_version_0_2_load():
    own, loaded = fit(KernelPLS(), data(waves), epochs=5), KernelPLS()
    loaded.bind(own.space)
    former = {key.replace("additive_model.", "rival."): value for key, value in own.state_dict().items()}
    extra = former["_extra_state"]
    former["_extra_state"] = {**extra, "is_beaten": extra["prefers_additive"]}
    del former["_extra_state"]["prefers_additive"]
    loaded.load_state_dict(former)
    assert loaded.prefers_additive
    assert torch.equal(loaded.additive_model.theta, own.additive_model.theta)
