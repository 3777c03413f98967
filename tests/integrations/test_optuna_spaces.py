"""Spaces of Optuna, read and written, and spaces of deepbore within its objectives."""

import optuna
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from deepbore import Categorical, Integer, Normal, Ordinal, Real, SearchSpace
from deepbore.errors import SpaceError
from deepbore.integrations.optuna import from_optuna, suggest, to_distributions

DISTRIBUTIONS = {
    "lr": FloatDistribution(1e-5, 1e-1, log=True),
    "grid": FloatDistribution(0, 1, step=0.25),
    "n": IntDistribution(1, 512, log=True),
    "even": IntDistribution(2, 10, step=2),
    "act": CategoricalDistribution(["relu", None, 3, True]),
}
SPACE = SearchSpace(
    {
        "lr": Real(1e-5, 1e-1, log=True),
        "grid": Real(0, 1, step=0.25),
        "n": Integer(1, 512, log=True),
        "even": Integer(2, 10, step=2),
        "act": Categorical(["relu", None, 3, True]),
    }
)
NESTED = SearchSpace(
    {
        "C": Real(0, 1, when={"model": "svc"}),
        "model": Categorical({"svc": [1], "net": [1, 2]}),
        "layers": Integer(1, 4, when={"model": "net"}),
        "width": Ordinal([16, 32], when={"layers": ">= 2"}),
    },
    constraints=["model != 'net' or layers != 3"],
)


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_distributions_are_read_and_written():
    assert from_optuna(DISTRIBUTIONS) == SPACE
    assert to_distributions(SPACE) == DISTRIBUTIONS
    for params in SPACE.decode(SPACE.points.sample(30, torch.Generator().manual_seed(0))):
        optuna.trial.create_trial(params=params, distributions=DISTRIBUTIONS, value=0.0)


def test_a_space_with_conditions_is_asked_of_a_trial_and_read_off_the_study():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    asked = []

    def objective(trial):
        asked.append(suggest(trial, NESTED))
        return float(len(asked))

    study.optimize(objective, n_trials=60)
    pruned = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.PRUNED]
    assert 0 < len(pruned) < 30
    assert all(trial.params["layers"] == 3 for trial in pruned)
    NESTED.encode(asked)
    assert {tuple(params["model"]) for params in asked} == {(1,), (1, 2)}
    read = from_optuna(study)
    read.encode([trial.params for trial in study.trials if trial not in pruned])
    assert {name for name in read.names if read.parameters[name].conditions} == {"C", "layers", "width"}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: from_optuna({"k": IntDistribution(3, 3)}), "'k' has no counterpart"),
        (lambda: from_optuna({"c": CategoricalDistribution(["a"])}), "'c' has no counterpart"),
        (lambda: to_distributions(NESTED), r"conditions.*\['C', 'layers', 'width'\]"),
        (lambda: to_distributions(SearchSpace({"a": Integer(1, 9)}, constraints=["a < 5"])), "'a < 5'"),
        (lambda: to_distributions(SPACE.with_fixed({"even": 4})), r"\['even'\]"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(call, says):
    with pytest.raises(SpaceError, match=says):
        call()


def test_ranges_that_differ_between_trials_are_refused_by_name():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(
        lambda trial: trial.suggest_float("x", 0, 1 + trial.number) + trial.suggest_int("k", 0, 3), n_trials=3
    )
    with pytest.raises(SpaceError, match=r"\['x'\] have no counterpart"):
        from_optuna(study)


def test_priors_that_distributions_can_not_say_are_left_out_by_name():
    space = SearchSpace({"lr": Real(1e-5, 1e-1, log=True, prior=Normal(1e-3, 3)), "x": Real(0, 1, default=0.5)})
    with pytest.warns(UserWarning, match=r"no priors: those of \['lr'\] are left out. DeepBoreSampler"):
        assert to_distributions(space)["lr"] == DISTRIBUTIONS["lr"]
