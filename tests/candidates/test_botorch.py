"""BoTorch's batches: better together than one by one, within constraints, and reproducible."""

import pytest
import torch

import deepbore as db
from deepbore import (
    BoTorchBatch,
    ClassProbability,
    DeepEnsemble,
    DeepPLS,
    FourierLogistic,
    GPClassifier,
    KernelPLS,
    LaplaceGGN,
    LogExpectedImprovement,
    MLPClassifier,
    Real,
    SearchSpace,
    Study,
    Training,
    UpperConfidenceBound as OurBound,
)
from deepbore.candidates import Search
from deepbore.candidates.botorch import feasible, in_points
from deepbore.errors import SettingError, ShapeError
from deepbore.integrations.botorch import BoTorchAcquisition, joint_acquisition
from deepbore.testing import TOY_SPACES, fit, toy_data
from peaks import FIVE, Peak
from plane import SQUARE
from tried import asked_by, noisy_bowl

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


@pytest.fixture(scope="module", params=HEADS)
def classifier(request):
    return fit(HEADS[request.param](), toy_data(SPACE, 10), epochs=3)


@pytest.fixture(scope="module")
def ensemble():
    return fit(HEADS["DeepEnsemble"](), toy_data(SPACE), epochs=3)


def points(*shape, seed=17):  # other than the seed of the data
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, len(SPACE), dtype=torch.float64, generator=generator)


def search(classifier, data, seed=0):
    return Search(OurBound().resolved(classifier), classifier, data.observations, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("head", ["DeepEnsemble", "KernelPLS", "FourierLogistic"])
def test_a_batch_is_better_together_than_the_best_points_alone(head, joint):
    data = toy_data(SPACE, 40)
    trained = fit(HEADS[head](), data, epochs=3)
    batch = BoTorchBatch(joint=joint, restarts=3, samples=200).propose(search(trained, data), q=3)
    value = joint_acquisition(trained, seed=99)
    alone, _ = search(trained, data).best_first(points(500))
    assert float(value(batch)) > float(value(alone[:3]))


def test_proposals_leave_the_global_stream_alone_and_depend_on_the_seed(ensemble):
    data, before = toy_data(SPACE, 40), torch.random.get_rng_state()
    one, same, other = (BoTorchBatch(samples=50).propose(search(ensemble, data, seed), q=2) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_constraints_hold_in_the_parameters_own_units(joint):
    space = SearchSpace({"x": Real(0, 10), "y": Real(-5, 5)})
    search_ = BoTorchBatch(joint=joint, restarts=2, samples=300, inequality_constraints=[((0, 1), (-1.0, 2.0), -9.0)])
    study = Study(space, seed=0, candidates=search_, n_initial=6)

    def objective(p):  # its minimum is outside: -8 - 4 < -9
        return (p["x"] - 8) ** 2 + (p["y"] + 2) ** 2

    for trial in (study.ask(1)[0] for _ in range(6)):
        study.tell(trial, objective(trial.params))
    proposed = []
    for _ in range(4):
        for trial in study.ask(3):
            proposed.append(trial.params)
            study.tell(trial, objective(trial.params))
    design = [
        trial.params for trial in study.trials[:6]
    ]  # it, and a trial that confirms one of it, knows no constraints
    searched_for = [p for p in proposed if all(max(abs(p[k] - d[k]) for k in "xy") > 0.2 for d in design)]
    assert len(searched_for) > 8
    assert all(-p["x"] + 2 * p["y"] >= -9 - 1e-6 for p in searched_for)
    assert min(objective(p) for p in searched_for) == pytest.approx(1.8, abs=0.2)  # (-8 - 4 + 9)^2 / (1 + 4)


def test_an_inequality_of_points_is_that_of_the_parameters_in_units_of_its_greatest_range():
    space = SearchSpace({"x": Real(2, 4), "y": Real(-1, 0)})
    indices, coefficients, rhs = in_points(space, ([1, 0], [3.0, 1.0], 2.5))
    for params in ({"x": 2.5, "y": -0.2}, {"x": 4, "y": -0.5}):
        left = float(space.encode([params])[0, indices] @ coefficients) - rhs
        assert left == pytest.approx((3 * params["y"] + params["x"] - 2.5) / 3)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"inequality_constraints": [((0, 5), (1.0, 1.0), 0.0)]}, "one coefficient for each index among 0 ... 2"),
        ({"inequality_constraints": [((0,), (1.0, 1.0), 0.0)]}, "one coefficient for each index"),
        ({"inequality_constraints": [((2,), (1.0,), 0.0)]}, "without a log scale"),
        ({"inequality_constraints": [((0,), (1.0,), 2.0)]}, "relax"),
        ({"restarts": 0}, "restarts >= 1"),
    ],
)
def test_bad_settings_are_refused(ensemble, settings, says):
    with pytest.raises(SettingError, match=says):
        BoTorchBatch(**settings).propose(search(ensemble, toy_data(SPACE, 20)), q=1)


def test_a_point_estimate_is_refused_for_several_points():
    data = toy_data(SPACE, 20)
    network = fit(MLPClassifier(training=QUICK), data, epochs=1)
    with pytest.raises(SettingError, match="need standard deviations of the scores, but MLPClassifier has"):
        BoTorchBatch(samples=50).propose(search(network, data), q=2)
    at = Search(ClassProbability(), network, data.observations, torch.Generator().manual_seed(0))
    assert BoTorchBatch(samples=50).propose(at, q=1).shape == (1, 3)


def test_a_mixed_space_is_refused():
    data = toy_data(TOY_SPACES["mixed"], 20)
    with pytest.raises(SettingError, match="BoTorchBatch needs real parameters"):
        BoTorchBatch().propose(search(fit(KernelPLS(), data, epochs=1), data), q=2)
    with pytest.raises(SettingError, match="BoTorchBatch needs real parameters"):
        BoTorchBatch().check(data.space, KernelPLS())
    with pytest.raises(SettingError, match="without a log scale"):
        BoTorchBatch(inequality_constraints=[((2,), (1.0,), 0.0)]).check(SPACE, KernelPLS())


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_botorch_gets_an_acquisition_function():
    top = torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7])
    acquisition = BoTorchAcquisition(ClassProbability(), Peak(top).bind(FIVE))
    points = FIVE.points.sample(6, generator())
    assert torch.equal(acquisition(points[:, None]), Peak(top).height(points))
    with pytest.raises(ShapeError, match="b x 1 x d"):
        acquisition(points.reshape(3, 2, 5))


# regression: each of these was wrong once
def test_a_batch_of_botorch_under_noise_draws_from_its_own_stream():
    proposed = []
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        candidates = BoTorchBatch(samples=50, restarts=2, iterations=5)
        study = Study(SQUARE, seed=0, n_initial=5, classifier=KernelPLS(noisy=True), candidates=candidates)
        study.add(*noisy_bowl(40))
        before = torch.get_rng_state()
        proposed.append([trial.params for trial in study.ask(2)])
        assert torch.equal(torch.get_rng_state(), before)
    assert proposed[0] == proposed[1] == proposed[2]


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_an_inequality_is_the_same_in_any_unit(unit):
    space = SearchSpace({"x": Real(0, unit), "y": Real(0, unit)})
    points = space.points.sobol(256, seed=0)
    met = feasible(points, [in_points(space, ([0, 1], [1.0, 1.0], 1.2 * unit))])
    assert met.equal(points.sum(-1) >= 1.2)


@pytest.mark.parametrize("inequality", [(["x"], [1.0], 0.1), 1, ([0], ["a"], 0.1), ([0, 1], [1.0], 0.1)])
def test_an_inequality_that_is_none_is_refused(inequality):
    with pytest.raises(SettingError, match="indices, coefficients, bound"):
        Study(SQUARE, candidates=db.BoTorchBatch(inequality_constraints=[inequality]))


def searched(study, seed=0):
    """What a search of the study may look at now."""
    return Search(LogExpectedImprovement(), study.fit(), study.observations, torch.Generator().manual_seed(seed))


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_what_botorch_climbs_to_stays_within_the_constraints_of_the_space(joint):
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(4)}, constraints=["x0 + x1 + x2 + x3 <= 1.6"])
    study = Study(space, seed=0)
    asked_by(study, 20, lambda params: sum((value - 0.7) ** 2 for value in params.values()))
    search = searched(study)
    chosen = BoTorchBatch(joint=joint).ranked(search, 3)[:3]
    assert space.points.permitted(chosen).all()
    among_many = search.best_first(space.points.sample(1000, torch.Generator().manual_seed(1)))[1][0]
    assert float(search.values(chosen).max()) > float(among_many) - 0.1  # it maximises a mean of samples


def gap(trials):
    """The least distance of two configurations."""
    places = torch.tensor([list(trial.params.values()) for trial in trials], dtype=torch.float64)
    return float(torch.pdist(places).min())


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_botorch_keeps_away_from_pending_trials_as_from_those_of_its_batch(joint):
    one_by_one, at_once = (Study(SQUARE, seed=0, candidates=BoTorchBatch(joint=joint)) for _ in range(2))
    asked_by(one_by_one, 16)
    asked_by(at_once, 16)
    apart = gap([one_by_one.ask()[0] for _ in range(4)])
    assert apart > gap(at_once.ask(4)) / 4
    assert apart > 0.01


@pytest.mark.slow
def test_botorch_still_climbs_one_score_a_point_where_a_better_point_is_pending():
    study = Study(SQUARE, seed=0, classifier=MLPClassifier(training=Training(steps=50)), candidates=BoTorchBatch())
    asked_by(study, 16)
    study.ask()
    search = Search(ClassProbability(), study.fit(), study.observations, torch.Generator().manual_seed(0))
    values = search.values(BoTorchBatch().propose(search, 1)), search.values(SQUARE.points.sobol(1000, seed=0))
    assert float(values[0]) > float(values[1].max())
