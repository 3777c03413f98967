"""scripts/peers/variants: every variant is a Study that suggests; docs/ablation.md and its runs name them all."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import norm

import deepbore as db
from deepbore import Categorical, Condition, Integer, Ordinal, Outcome, Real, SearchSpace, Study
from peers import methods
from peers.variants import ALL as VARIANTS, REPEATED, averaging, former, in_context, noise
from peers.variants.averaging import elliptical_slice
from peers.variants.design import FIRST
from processes import ROOT

REAL = SearchSpace({"a": Real(-1, 2), "b": Real(1e-3, 1, log=True)})
MIXED = SearchSpace(
    {
        "kind": Categorical(["x", "y"]),
        "width": Integer(2, 200, log=True),
        "depth": Ordinal([1, 2, 4]),
        "share": Real(0, 1, when=Condition("kind", "y")),
    }
)
ROWS = [json.loads(line) for file in (ROOT / "docs/results/ablation").glob("*.jsonl") for line in file.open()]


def cost(params):
    return float(sum(value for value in params.values() if isinstance(value, float | int)))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_suggests_after_the_design(name, monkeypatch):
    monkeypatch.setattr(in_context, "at_hand", in_context.Forecaster)  # one that has learned nothing
    space = REAL if name.endswith("+box") else MIXED
    study = Study(space, seed=0, n_initial=4, **VARIANTS[name]())
    for value in (3.0, 1.0, float("nan"), 2.0):
        study.tell(study.ask()[0], value)
    (trial,) = study.ask()
    space.encode([trial.params])


def test_a_design_begins_where_its_variant_says():
    for seed in range(3):
        plain = methods.make("deepbore", MIXED, seed, n_initial=4).suggest(1)[0][0]
        sobol, *middles = (methods.make(name, MIXED, seed, n_initial=4).suggest(1)[0][0] for name in FIRST)
        assert sobol == plain
        for middle in middles:
            assert {**middle, "share": 0.5} == {"kind": sobol["kind"], "width": 17, "depth": 2, "share": 0.5}
            assert middle.get("share", 0.5) == 0.5


@pytest.mark.parametrize(
    "name", ["deepbore:sobol-first", "deepbore:former", "paper:bore-mlp", "deepbore:classifier-alone"]
)
def test_what_was_measured_before_begins_at_sobol_s_first_point_in_wide_spaces_too(name):
    wide = SearchSpace({f"x{i}": Real(0, 1) for i in range(10)})
    ((first, _),) = methods.make(name, wide, seed=2, n_initial=4).suggest(1)
    assert first == wide.decode(wide.points.sobol(1, seed=2))[0]
    ((default, _),) = methods.make("deepbore", wide, seed=2, n_initial=4).suggest(1)
    assert set(default.values()) == {0.5}


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True])
def test_the_best_configuration_again_tells_whether_values_are_noisy(noisy):
    peer, seen, noise = methods.make("deepbore:repeat", REAL, seed=0, n_initial=8), [], np.random.default_rng(0)
    for _ in range(20):
        ((params, handle),) = peer.suggest(1)
        seen.append(tuple(params.values()))
        chance = noise if noisy else np.random.default_rng(int(1e6 * (2 + params["a"])))  # or the same each time
        peer.observe_outcome(handle, Outcome(cost(params) + chance.normal()))
    assert len(seen) - len(set(seen)) == 1
    assert peer.study.classifier.noisy is noisy


def test_local_rows_learn_from_as_many_as_they_may():
    for regrade in (False, True):
        kernel = former.LocalRows(regrade=regrade)
        kernel.rows, kernel.iterations = 12, 2
        study = Study(REAL, seed=0, n_initial=20, classifier=kernel)
        for _ in range(20):
            trial = study.ask()[0]
            study.tell(trial, cost(trial.params))
        study.ask()
        assert len(study._state.classifier._x) <= 12
        assert study._state.classifier._data[:, 0].max() == 1


def test_labels_between_value_and_rank():
    labels = former.BetweenValueAndRank([0.0, 0.5, 1.0])
    z, _ = labels.label(torch.tensor([0.0, 1.0, 4.0, 9.0]).double(), torch.tensor([0.0, 1, 4, 9]).double().numpy(), 4.0)
    assert z[1].tolist() == pytest.approx([3 / 4, (3 / 4 + 2 / 3) / 2, 2 / 3])
    assert z[3].tolist() == [0, 0, 0]


def test_with_a_nugget_improvement_is_that_of_a_label_as_it_will_be_seen():
    classifier = told(Study(REAL, seed=0, n_initial=12, **VARIANTS["deepbore:nugget"]()), 12)
    posterior = classifier.posterior(REAL.points.sobol(5, seed=3))
    deviations = (posterior.std.square() + posterior.model.regularisation).sqrt().tolist()
    expected = [
        norm(mean, std).expect(lambda z: z - 1.0, lb=1.0)
        for mean, std in zip(posterior.mean.tolist(), deviations, strict=True)
    ]
    found = noise.ImprovementWithNugget()(posterior, 1.0).exp()
    assert found.tolist() == pytest.approx(expected, rel=1e-6)
    assert bool((found > db.LogExpectedImprovement()(posterior, 1.0).exp()).all())


def test_names_are_those_of_methods_of_the_page_and_of_the_runs():
    listed = methods.names()
    assert len(listed) == len(set(listed))
    assert set(VARIANTS) < set(listed)
    page = (ROOT / "docs" / "ablation.md").read_text()
    assert [name for name in [*VARIANTS, *FIRST, *REPEATED] if f"`{name.removeprefix('deepbore:')}`" not in page] == []
    peers = {"cma-es", "optuna-gp", "optuna-tpe", "random"}
    assert {row["method"] for row in ROWS} <= {"deepbore", *peers, *VARIANTS, *FIRST, *REPEATED}
    own = {row["version"] for row in ROWS if row["method"] not in peers}
    assert own == {"0.2.0+prototype", "deepbore 0.2.0", "deepbore 0.3.0"}


def told(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, cost(trial.params))
    study.ask()
    return study._state.classifier


def test_improvement_is_over_what_is_expected():
    labelled = told(Study(REAL, seed=0, n_initial=8), 8)
    mean = told(Study(REAL, seed=0, n_initial=8, **VARIANTS["deepbore:posterior-mean"]()), 8)
    assert float(mean.best_label) < float(labelled.best_label)
    expected = mean._kernel(mean.theta)(mean._x, mean._x) @ mean._coefficients
    assert float(mean.best_label) == pytest.approx(float(expected.max()), abs=1e-9)


def test_labels_reach_no_further_than_they_may():
    values = torch.tensor([-1000.0, -2, -1, 0, 1, 2]).double()  # the good values' median is -2, their threshold 0 or so
    z, _ = noise.ReachingLabels(4).label(values, values.numpy(), 0.0)
    plain, _ = noise.db.ValueGradedLabels().label(values, values.numpy(), 0.0)
    assert z[0] == plain[0] == 1
    assert z[1] - z[3] > 100 * (plain[1] - plain[3])  # the outlier leaves no room for the others


def test_two_starts_have_at_least_the_evidence_of_one():
    one, two = (
        told(Study(REAL, seed=0, n_initial=10, **settings), 10) for settings in ({}, VARIANTS["deepbore:two-starts"]())
    )
    assert two.negative_evidence()(two.theta.numpy())[0] <= one.negative_evidence()(one.theta.numpy())[0] + 1e-6


@pytest.mark.parametrize(("centre", "width"), [(0.0, 1.0), (2.0, 0.5), (-1.0, 0.2)])
def test_elliptical_slices_follow_prior_times_likelihood(centre, width):
    generator = torch.Generator().manual_seed(0)
    x, seen = np.zeros(2), []
    for _ in range(6000):
        x = elliptical_slice(x, lambda at: -((at[0] - centre) ** 2) / (2 * width**2), 1, generator)
        seen.append(x)
    precision = 1 + width**-2
    mean, std = np.mean(seen, 0), np.std(seen, 0)
    assert mean[0] == pytest.approx(centre * width**-2 / precision, abs=0.08)
    assert std[0] == pytest.approx(precision**-0.5, rel=0.1)
    assert abs(mean[1]) < 0.1  # the prior's, as the likelihood does not know this coordinate
    assert std[1] == pytest.approx(1, rel=0.1)


@pytest.mark.slow
def test_improvement_is_averaged_over_settings_where_lambda_is_large():
    rng = np.random.default_rng(1)
    noisy = Study(REAL, seed=0, **VARIANTS["deepbore:averaged-settings"]())
    x = {"a": rng.uniform(-1, 2, 40), "b": rng.uniform(1e-3, 1, 40)}
    noisy.add(x, x["a"] + 2 * rng.normal(size=40))
    noisy.ask()
    head = noisy._state.classifier
    assert len(head.models) == 9
    points = REAL.points.sample(5, torch.Generator().manual_seed(1))
    posterior, best = head.posterior(points), 0.2
    samples = torch.cat(
        [part.sample(20_000, torch.Generator().manual_seed(k)) for k, part in enumerate(posterior.parts)]
    )
    assert torch.allclose(posterior.mean, samples.mean(0), atol=0.01)
    assert torch.allclose(posterior.std, samples.std(0), atol=0.01)
    expected = (samples - best).clamp(min=0).mean(0)
    assert torch.allclose(averaging.AveragedImprovement()(posterior, best).exp(), expected, rtol=0.05)


def prior_deviation(space, **params):
    """Of a configuration before anything is known, by `ends`, as a share of that in the middle of all ranges."""
    classifier = VARIANTS["deepbore:ends"]()["classifier"]
    classifier.bind(space)
    deviation = classifier.posterior(space.encode([params])).std
    return float(deviation / classifier.theta[-2].exp().sqrt())


def test_a_prior_that_falls_towards_the_ends_of_active_real_parameters():
    assert prior_deviation(MIXED, kind="x", width=2, depth=1) == pytest.approx(1)
    assert prior_deviation(MIXED, kind="y", width=200, depth=4, share=0.5) == pytest.approx(1)
    assert prior_deviation(MIXED, kind="y", width=20, depth=2, share=0) == pytest.approx(0.9)
    assert prior_deviation(MIXED, kind="y", width=20, depth=2, share=0.75) == pytest.approx(0.9**0.25)
    assert prior_deviation(REAL, a=-1, b=1) == pytest.approx(1)  # without levels nothing falls
