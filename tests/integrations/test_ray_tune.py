"""`DeepBoreSearch` by Tune's own rules, and under its schedulers; where Ray Tune's packages are installed."""

import math

import pytest

from alone import alone
from deepbore import Integer, SearchSpace
from deepbore.errors import SettingError, SpaceError

pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("pyarrow", reason="Ray Tune's packages are not installed: pip install 'ray[tune]'")
from ray import tune

from deepbore.integrations.ray_tune import DeepBoreSearch, from_tune

LINE = {"x": tune.uniform(0, 1)}


def search(**settings):
    return DeepBoreSearch(**{"space": LINE, "metric": "loss", "mode": "min", "seed": 0} | settings)


def test_domains_are_parameters_and_constants_stay():
    space, constants = from_tune(
        {
            "lr": tune.loguniform(1e-5, 1e-1),
            "net": {"layers": tune.randint(1, 5), "width": tune.qrandint(8, 64, 8), "units": tune.lograndint(1, 9)},
            "drop": tune.quniform(0, 1, 0.25),
            "act": tune.choice(["relu", "tanh"]),
            "epochs": 9,
        }
    )
    assert space.names == ["lr", "net/layers", "net/width", "net/units", "drop", "act"]
    assert (space.parameters["net/layers"].high, space.parameters["net/width"].high) == (4, 64)
    assert constants == {"epochs": 9}


@pytest.mark.parametrize(
    "domain",
    [tune.randn(0, 1), tune.sample_from(lambda _: 1), tune.qloguniform(1e-3, 1, 1e-3), tune.grid_search([1, 2])],
)
def test_what_has_no_counterpart_is_refused_by_name(domain):
    with pytest.raises(SpaceError, match="part"):
        from_tune({"part": {"part": domain}})


def test_configurations_are_nested_as_the_space_is():
    found = search(space={"net": {"layers": tune.randint(1, 5)}, "epochs": 9}).suggest("a")
    assert found == {"net": {"layers": found["net"]["layers"]}, "epochs": 9}


@pytest.mark.parametrize("result", [{"loss": math.nan}, {"loss": math.inf}, {"other": 1.0}, {"loss": "a"}, None])
def test_results_without_a_number_are_failures(result):
    made = search()
    made.suggest("a")
    made.on_trial_complete("a", result)
    made.suggest("b")
    made.on_trial_complete("b", {"loss": 1.0}, error=True)
    assert [trial.status.name for trial in made.study.trials] == ["FAILED", "FAILED"]


def test_points_come_first_and_those_with_results_are_known():
    assert search(points_to_evaluate=[{"x": 0.25}]).suggest("a") == {"x": 0.25}
    made = search(points_to_evaluate=[{"x": 0.25}], evaluated_rewards=[7.0])
    assert made.suggest("a") != {"x": 0.25}
    assert made.study.trials[0].value == 7.0
    with pytest.raises(SettingError, match="as many"):
        search(points_to_evaluate=[{"x": 0.25}], evaluated_rewards=[])


def test_several_metrics_are_several_objectives():
    made = search(metric=["loss", "score"], mode=["min", "max"])
    made.suggest("a")
    made.on_trial_complete("a", {"loss": 1.0, "score": 2.0})
    made.suggest("b")
    made.on_trial_complete("b", {"loss": 1.0, "score": math.nan})
    assert [trial.values for trial in made.study.trials] == [(1.0, 2.0), None]


def test_tune_may_give_space_metric_and_mode():
    made = DeepBoreSearch(seed=0)
    with pytest.raises(SettingError, match="space and metric and mode"):
        made.suggest("a")
    assert made.set_search_properties("loss", "max", LINE, stop={"training_iteration": 9})
    assert not made.set_search_properties("loss", "max", LINE)
    assert (made.max_t, made.study.observations.directions[0]) == (9, "maximize")


def test_a_trial_that_ends_before_max_t_is_pruned_and_keeps_its_results():
    made = search(max_t=3)
    for name, steps in (("a", 3), ("b", 2)):
        made.suggest(name)
        for step in range(1, steps):
            made.on_trial_result(name, {"loss": 1 / step, "training_iteration": step})
        made.on_trial_complete(name, {"loss": 1 / steps, "training_iteration": steps})
    assert [trial.status.name for trial in made.study.trials] == ["COMPLETE", "PRUNED"]
    assert made.study.trials[1].reports == {1: 1.0, 2: 0.5}


def test_a_finite_space_ends_the_search():
    made = search(space=SearchSpace({"n": Integer(1, 2)}))
    assert [made.suggest("a"), made.suggest("b")] in ([{"n": 1}, {"n": 2}], [{"n": 2}, {"n": 1}])
    assert made.suggest("c") == made.FINISHED


@pytest.mark.parametrize("with_journal", [False, True])
def test_a_search_that_is_restored_goes_on(tmp_path, with_journal):
    settings = {"journal": str(tmp_path / "run.jsonl")} if with_journal else {}
    made = search(**settings)
    for k in range(12):
        made.on_trial_complete(f"{k}", {"loss": made.suggest(f"{k}")["x"]})
    made.suggest("running")
    made.save(str(tmp_path / "state"))
    if with_journal:
        made.suggest("unknown")  # to Tune, which saved before
        made.study.close()
    again = DeepBoreSearch()
    again.restore(str(tmp_path / "state"))
    again.on_trial_complete("running", {"loss": 5.0})
    assert [trial.value for trial in again.study.trials[:13]] == [
        trial.params["x"] for trial in made.study.trials[:12]
    ] + [5.0]
    assert not again.study.pending
    assert again.suggest("next")["x"] >= 0


def test_budgets_are_the_schedulers():
    with pytest.raises(SettingError, match="max_t"):
        search(budget=object())


def trains(config):
    for step in range(1, 10):
        tune.report({"loss": config["x"] + 1 / step})


@pytest.mark.slow
@alone
def test_a_run_of_tune_with_asha(tmp_path):
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        made = DeepBoreSearch(max_t=9, seed=0)
        scheduler = tune.schedulers.ASHAScheduler(max_t=9, grace_period=1, reduction_factor=3)
        config = tune.TuneConfig(
            search_alg=made, scheduler=scheduler, metric="loss", mode="min", num_samples=12, max_concurrent_trials=2
        )
        run = tune.RunConfig(storage_path=str(tmp_path), verbose=0)
        found = tune.Tuner(trains, param_space={"x": tune.uniform(0, 1)}, tune_config=config, run_config=run).fit()
        assert len(found) == 12
        counted = [trial.status.name for trial in made.study.trials]
        steps = [result.metrics["training_iteration"] for result in found]
        assert counted.count("PRUNED") == sum(step < 9 for step in steps) > 0
        assert counted.count("COMPLETE") == steps.count(9) > 0
    finally:
        ray.shutdown()


# regression: a domain within a choice was a choice, and the first suggestion ended with an odd error
@pytest.mark.parametrize(
    "space",
    [
        {"part": tune.choice([{"lr": tune.uniform(0, 1)}, {"m": 2}])},
        {"part": tune.choice([tune.uniform(0, 1), 2])},
        {"part": tune.choice([[1, tune.randint(0, 3)], [2, 3]])},
        {"part": tune.choice([{"deep": {"er": (tune.choice([1, 2]),)}}, 1])},
        {"part": tune.choice([{"lr": tune.grid_search([1, 2])}, 1])},
        {"part": [tune.uniform(0, 1)], "x": tune.uniform(0, 1)},
    ],
)
def test_a_domain_within_a_choice_is_refused_when_the_search_is_made(space):
    with pytest.raises(SpaceError, match=r"'part'.* within it"):
        search(space=space)
    with pytest.raises(SpaceError, match=r"'part'.* within it"):
        DeepBoreSearch().set_search_properties("loss", "min", space)


def test_choices_that_are_dicts_without_domains_stay():
    assert search(space={"part": tune.choice([{"lr": 1}, {"m": [2]}])}).suggest("a")["part"] in [{"lr": 1}, {"m": [2]}]
