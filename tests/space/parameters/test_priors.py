"""Priors of parameters: as declared and as plain data, and their densities against SciPy's."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy.stats import norm, truncnorm

from deepbore import Categorical, Integer, Library, Normal, Ordinal, Real, SearchSpace
from deepbore.errors import SpaceError
from deepbore.space.parameters.priors import FAVOURED, WEAK, TruncatedNormal, Weighted

BELIEVED = {
    "real": Real(-2, 6, prior=Normal(1, 0.5)),
    "log real": Real(1e-5, 0.3, log=True, prior=Normal(1e-3, 3.0)),
    "steps": Real(0, 1, step=0.05, prior=Normal(0.31, 0.1)),
    "many steps": Real(0, 1, step=1e-5, prior=Normal(0.3, 0.1)),
    "integer": Integer(1, 9, prior=Normal(3, 1.5)),
    "log integer": Integer(1, 512, log=True, prior=Normal(64, 2.0)),
    "wide integer": Integer(0, 10**6, prior=Normal(3e5, 1e5)),
    "wide log integer": Integer(1, 10**6, log=True, prior=Normal(1000, 10)),
    "integer steps": Integer(0, 100, step=10, prior=Normal(30, 10)),
    "ordinal": Ordinal(["s", "m", "l", "xl"], prior=Normal("m", 0.7)),
    "weighted ordinal": Ordinal([1, 2, 4], prior=[1, 5, 0]),
    "weights": Categorical(["a", "b", "c"], prior=[0.7, 0.2, 0.1]),
    "weights by name": Categorical([True, False, None], prior={True: 3, False: 1, None: 1}),
    "far end": Real(0, 1, prior=Normal(1, 0.05)),
    "default": Real(1e-5, 1e-1, log=True, default=1e-3),
    "default choice": Categorical(["a", "b"], default="b"),
}
means, stds = st.floats(0, 1), st.floats(1e-3, 30)
u = (torch.arange(4096, dtype=torch.float64) + 0.5) / 4096


def scipys(mean, std):
    return truncnorm(-mean / std, (1 - mean) / std, mean, std)


# --- distributions ---------------------------------------------------------------------------------------------------


@given(means, stds)
@settings(max_examples=100, deadline=None)
def test_a_truncated_normal_is_scipys(mean, std):
    mine, theirs, at = TruncatedNormal(mean, std), scipys(mean, std), u[::64]
    assert np.allclose(mine.log_density(at), theirs.logpdf(at), rtol=1e-7, atol=1e-7)
    assert np.allclose(mine.quantile(at), theirs.ppf(at), atol=1e-7)
    masses = np.diff(theirs.cdf(np.linspace(0, 1, 17)))
    ends = torch.linspace(0, 1, 17, dtype=torch.float64)
    found = mine.log_mean_density(ends[:-1], ends[1:]).exp() / 16
    assert np.allclose(found, masses, atol=1e-9)


@given(means, st.floats(1e-300, 1e300))
@settings(max_examples=100, deadline=None)
def test_quantiles_rise_within_the_bounds_whatever_the_spread(mean, std):
    found = TruncatedNormal(mean, std).quantile(torch.cat([torch.zeros(1), u[::64], torch.ones(1)]).double())
    assert bool(found.isfinite().all())
    assert bool((found.diff() >= 0).all())
    assert float(found[0]) >= 0
    assert float(found[-1]) <= 1


@given(means, st.floats(1e-3, 1))
@settings(max_examples=30, deadline=None)
def test_its_density_has_the_slope_of_finite_differences(mean, std):
    belief, at = TruncatedNormal(mean, std), u[::512].clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(belief.log_density(at).sum(), at)
    step = 1e-6
    rise = (belief.log_density(at + step) - belief.log_density(at - step)) / (2 * step)
    assert torch.allclose(slope, rise, rtol=1e-4, atol=1e-4)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=9).filter(lambda weights: sum(weights) > 1e-3))
@settings(max_examples=100, deadline=None)
def test_weights_are_shares_of_the_numbers(weights):
    levels = (Weighted(weights).quantile(u) * len(weights)).long()
    counts = torch.bincount(levels, minlength=len(weights))
    assert np.allclose(counts / len(u), np.array(weights) / sum(weights), atol=2 / len(u) * len(weights))
    assert bool((counts[torch.tensor(weights) == 0] == 0).all())


# --- of parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", BELIEVED.values(), ids=BELIEVED)
def test_the_mean_density_of_random_entries_is_one_and_levels_are_drawn_as_often_as_it_says(parameter):
    drawn = parameter.from_uniform(torch.linspace(0, 1, 200_001, dtype=torch.float64))
    density = parameter.log_prior(drawn).exp()
    assert float(density.mean()) == pytest.approx(1, abs=1e-3)
    if parameter.levels is not None and not parameter.climbs:
        believed = parameter.from_uniform(parameter.belief.quantile(torch.linspace(0, 1, 200_001).double()))
        often = torch.bincount(parameter.to_level(believed).long(), minlength=parameter.levels) / len(believed)
        expected = torch.zeros(parameter.levels).double().index_add(0, parameter.to_level(drawn).long(), density)
        assert torch.allclose(often.double(), expected / len(drawn), atol=1e-3)


@pytest.mark.parametrize("parameter", BELIEVED.values(), ids=BELIEVED)
def test_quantiles_of_a_sobol_sequence_stay_stratified(parameter):
    space = SearchSpace({"p": parameter})
    even = SearchSpace({"p": Real(0, 1)}).points.sobol(64, seed=3)[:, 0]
    believed = space.points.sobol(64, seed=3, prior=True)[:, 0]
    drawn = (torch.arange(64) % 4 < 3) & (torch.arange(64) > 0)  # the first is the likeliest, every fourth uniform
    assert torch.equal(believed[drawn], parameter.from_uniform(parameter.belief.quantile(even[drawn])))
    assert bool((believed[drawn][even[drawn].argsort()].diff() >= 0).all())  # so cells of equal mass share the points
    assert torch.equal(believed[3::4], space.points.sobol(64, seed=3)[3::4, 0])


def test_the_first_of_a_sequence_has_the_likeliest_values():
    space = SearchSpace({name.replace(" ", "_"): each for name, each in BELIEVED.items()})
    (first,) = space.decode(space.points.sobol(1, seed=0, prior=True))
    assert first["real"] == 1
    assert first["log_real"] == pytest.approx(1e-3)
    assert (first["integer"], first["log_integer"], first["integer_steps"]) == (3, 64, 30)
    assert (first["ordinal"], first["weighted_ordinal"], first["weights"]) == ("m", 2, "a")
    assert (first["default"], first["default_choice"]) == (pytest.approx(1e-3), "b")


def test_a_normal_is_one_of_values_of_logarithms_and_of_positions():
    plain, log = BELIEVED["real"].belief, BELIEVED["log real"].belief
    assert (plain.mean, plain.std) == (3 / 8, 0.5 / 8)
    width = math.log(0.3 / 1e-5)
    assert (log.mean, log.std) == (pytest.approx(math.log(100) / width), pytest.approx(math.log(3) / width))
    k = np.arange(4)
    masses = np.diff(norm(1, 0.7).cdf([-0.5, 0.5, 1.5, 2.5, 3.5]))
    density = BELIEVED["ordinal"].log_prior(torch.tensor(k).double()).exp()
    assert np.allclose(density / 4, masses / masses.sum())
    whole = np.diff(norm(3, 1.5).cdf(np.arange(0.5, 10)))
    density = BELIEVED["integer"].log_prior(BELIEVED["integer"].encode(range(1, 10))).exp()
    assert np.allclose(density / 9, whole / whole.sum())


def test_a_default_alone_is_believed_a_little_and_uniform_says_that_it_is_not():
    real, choice = BELIEVED["default"].belief, BELIEVED["default choice"].belief
    assert (real.mean, real.std) == (pytest.approx(0.5), WEAK)
    assert choice.shares.tolist() == [1 / (1 + FAVOURED), FAVOURED / (1 + FAVOURED)]
    assert Real(0, 1, default=0.2, prior="uniform").belief is None
    assert Categorical(["a", "b"], default="a", prior="uniform").belief is None
    assert Ordinal([1, 2, 4], default=1).belief.mean == pytest.approx(1 / 6)
    assert Real(0, 1).belief is None


# --- as plain data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", BELIEVED.values(), ids=BELIEVED)
def test_a_prior_survives_json_and_pickle(parameter):
    parameter.log_prior(torch.zeros(3).double())  # what is cached is not written
    space = SearchSpace({"p": parameter})
    for again in (SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))), pickle.loads(pickle.dumps(space))):
        assert again.parameters["p"].prior == parameter.prior
        assert repr(again) == repr(space)
        assert torch.equal(
            again.points.log_prior(space.points.sobol(9, 0)), space.points.log_prior(space.points.sobol(9, 0))
        )


def test_without_a_prior_the_declaration_is_what_it_was():
    declared = {"type": "real", "low": 0.0, "high": 1.0, "log": False, "default": 0.5}
    assert Real(0.0, 1.0, default=0.5).to_dict() == declared
    assert Categorical(["a", "b"]).to_dict() == {"type": "categorical", "choices": ["a", "b"]}
    assert repr(Real(0, 1)) == "Real(0, 1)"


def test_a_prior_is_no_other_space():
    assert Real(0, 1, prior=Normal(0.5, 0.1)) == Real(0, 1)
    assert Categorical(["a", "b"], prior=[1, 2]) == Categorical(["a", "b"])


def test_choices_that_are_objects_have_priors_by_name_or_in_order():
    named = Categorical({"narrow": [64], "wide": [512]}, prior={"wide": 3, "narrow": 1})
    assert named.prior == (1.0, 3.0)
    ordered = Ordinal({"narrow": [64], "wide": [512]}, prior=Normal([512], 1))
    assert ordered.prior == Normal("wide", 1.0)
    assert json.loads(json.dumps(ordered.to_dict()))["prior"] == {"centre": "wide", "spread": 1.0}
    about_priors = Categorical(["centre", "spread"], prior={"centre": 1, "spread": 2})  # as hostile as names get
    assert about_priors.prior == (1.0, 2.0)


def test_numbers_of_numpy_and_torch_will_do():
    assert Real(0, 1, prior=Normal(np.float32(0.5), torch.tensor(0.25))).prior == Normal(0.5, 0.25)
    for weights in (np.array([1, 2]), torch.tensor([1, 2]), (1, 2)):
        assert Categorical(["a", "b"], prior=weights).prior == (1.0, 2.0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Real(0, 1, prior=Normal(2, 0.1)), r"centre of a prior must lie in \[0, 1\], but got 2"),
        (lambda: Real(0, 1, prior=Normal(0.5, 0)), "standard deviation, and must be > 0"),
        (lambda: Real(0, 1, prior=Normal(0.5, -1)), "must be > 0"),
        (lambda: Real(0, 1, prior=Normal(0.5, math.nan)), "finite number"),
        (lambda: Real(0, 1, prior=Normal(math.inf, 1)), "finite number"),
        (lambda: Real(0, 1, prior=Normal("0.5", 1)), "finite number"),
        (lambda: Real(1e-3, 1, log=True, prior=Normal(0.1, 0.5)), "a factor, and must be > 1"),
        (lambda: Real(1e-3, 1, log=True, prior=Normal(0.1, 1)), "a factor, and must be > 1"),
        (lambda: Real(0, 1, prior=[0.5, 0.1]), r"Normal\(centre, spread\)"),
        (lambda: Real(0, 1, prior=0.5), r"Normal\(centre, spread\)"),
        (lambda: Real(0, 1, prior="log-uniform"), "log=True"),
        (lambda: Real(0, 1, prior={"centre": 0.5}), "'spread' is missing"),
        (lambda: Real(0, 1, prior={"center": 0.5, "spread": 1}), "Did you mean 'centre'"),
        (lambda: Real(0, 1, prior=True), r"Normal\(centre, spread\)"),
        (lambda: Integer(1, 9, prior=Normal(0, 1)), r"must lie in \[1, 9\]"),
        (lambda: Ordinal([1, 2, 4], prior=Normal(3, 1)), "centre of a prior must be one of the choices"),
        (lambda: Ordinal([1, 2, 4], prior=Normal(2, 0)), "must be > 0"),
        (lambda: Categorical(["a", "b"], prior=Normal("a", 1)), "without an order have weights"),
        (lambda: Categorical(["a", "b"], prior=[1]), "a weight for each of 2 choices, but got 1"),
        (lambda: Categorical(["a", "b"], prior=[1, -1]), ">= 0"),
        (lambda: Categorical(["a", "b"], prior=[0, 0]), "one of them > 0"),
        (lambda: Categorical(["a", "b"], prior=[1, math.nan]), "finite number"),
        (lambda: Categorical(["a", "b"], prior=[1e308, 1e308]), "one of them > 0"),
        (lambda: Categorical(["a", "b"], prior="ab"), "must be weights"),
        (lambda: Categorical(["a", "b"], prior=3), "must be weights"),
        (lambda: Categorical(["a", "b"], prior={"a": 1}), "a weight for each of"),
        (lambda: Categorical(["a", "b"], prior=[[1, 2]]), "a weight for each of 2"),
        (lambda: Library(np.eye(4, 32, dtype=bool), prior=[1, 1, 1, 1]), "prior"),
    ],
)
def test_what_no_prior_can_be_made_from_is_refused(make, says):
    with pytest.raises(SpaceError, match=says):
        make()


# --- of spaces -------------------------------------------------------------------------------------------------------

CONDITIONAL = SearchSpace(
    {
        "model": Categorical(["svc", "forest"], prior=[3, 1]),
        "C": Real(1e-3, 1e3, log=True, when={"model": "svc"}, prior=Normal(1.0, 10.0)),
        "trees": Integer(1, 500, when={"model": "forest"}),
        "x": Real(0, 1),
    }
)


def test_the_density_of_a_point_is_that_of_its_active_parameters():
    rows = [{"model": "svc", "C": 10.0, "x": 0.1}, {"model": "forest", "trees": 3, "x": 0.9}]
    model, c = CONDITIONAL.parameters["model"], CONDITIONAL.parameters["C"]
    expected = [float(model.log_prior(model.encode([row["model"]]))[0]) for row in rows]
    expected[0] += float(c.log_prior(c.encode([10.0]))[0])
    assert CONDITIONAL.points.log_prior(CONDITIONAL.encode(rows)).tolist() == pytest.approx(expected)
    assert float(
        CONDITIONAL.points.log_prior(CONDITIONAL.points.sample(50_000, torch.Generator().manual_seed(0))).exp().mean()
    ) == (pytest.approx(1, abs=0.02))


def test_what_is_fixed_is_not_believed():
    fixed = CONDITIONAL.with_fixed({"model": "forest"})
    assert fixed.points.log_prior(fixed.points.sobol(5, 0)).tolist() == [0.0] * 5
    assert CONDITIONAL.points.has_prior
    assert not SearchSpace({"x": Real(0, 1)}).points.has_prior


def test_doubt_bounds_how_unlikely_a_value_is():
    space = SearchSpace({"x": Real(0, 1, prior=Normal(0.1, 0.01)), "c": Categorical(["a", "b"], prior=[1, 0])})
    far = space.encode([{"x": 1.0, "c": "b"}])
    assert float(space.points.log_prior(far)) == -math.inf
    assert float(space.points.log_prior(far, doubt=0.1)) == pytest.approx(2 * math.log(0.1))
    assert space.points.doubts(far[0], 0.1).tolist() == [1.0, 1.0]
    assert float(space.points.log_prior(far, space.points.doubts(far[0], 0.1))) == pytest.approx(0)
    at = far.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(space.points.log_prior(at, doubt=0.1).sum(), at)
    assert bool(slope.isfinite().all())


def test_draws_have_the_prior_and_keep_constraints_and_conditions():
    space = SearchSpace({"a": Real(0, 1, prior=Normal(0.8, 0.1)), "b": Real(0, 1)}, constraints=["a + b <= 1"])
    for points in (
        space.points.sample(2000, torch.Generator().manual_seed(0), prior=True),
        space.points.sobol(500, 0, prior=True),
    ):
        assert bool(space.points.permitted(points).all())
        assert float(points[:, 0].median()) > 0.65
    drawn = CONDITIONAL.points.sample(4000, torch.Generator().manual_seed(0), prior=True)
    assert float((drawn[:, 0] == 0).double().mean()) == pytest.approx(0.75, abs=0.03)
    assert torch.equal(CONDITIONAL.points.snap(drawn), drawn)


def test_the_middle_is_left_to_what_is_believed():
    space = SearchSpace({f"x{k}": Real(0, 1, prior=Normal(0.9, 0.1) if k == 3 else None) for k in range(12)})
    middle = space.points.in_the_middle(space.points.sobol(1, 0, prior=True))
    assert middle[0].tolist() == [0.5] * 3 + [0.9] + [0.5] * 8
