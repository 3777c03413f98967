"""Names of problems, and the halves of the suites."""

import json
import math
from functools import cache
from pathlib import Path

import pytest

import deepbore
from deepbore.errors import SettingError
from deepbore.problems import Coco, Problem, suites


def test_every_design_has_a_name():
    assert suites.suite("designs") == ["pressure-vessel", "welded-beam", "digits-under-limit"]
    made = [suites.problem(name) for name in suites.suite("designs")]
    assert all(isinstance(problem, Problem) and problem.constraints for problem in made)
    assert suites.suite("bbob-constrained", dimensions=[2], instances=[1])[-1] == "bbob-constrained/f54/i01/d02"


DEVELOPMENT = {
    "networks": [
        "networks/everything-digits",
        "networks/convolution-shapes",
        "networks/cells-chirps",
        "networks/rate-digits",
        "networks/schedules-friedman",
        "networks/optimizers-digits",
        "networks/descent-moons",
        "networks/athletes",
        "networks/clipping-text",
        "networks/losses-rare",
        "networks/norms-spirals",
    ],
    "branches": [
        "branches/12x2-3",
        "branches/12x2-6",
        "branches/12x2-0",
        "branches/6x3-0",
        "branches/6x3-1",
        "branches/6x3-2",
        "branches/12x2-5",
        "branches/6x3-7",
    ],
    "tables": [
        "hpolib/slice_localization",
        "nasbench201/cifar10",
        "nasbench201/cifar100",
        "hpolib/protein_structure",
    ],
    "training": [
        "training/network-cancer",
        "training/boosting-cancer",
        "training/svm-diabetes",
        "training/logistic-digits",
        "training/pipeline-diabetes",
        "training/logistic-cancer",
        "training/knn-cancer",
        "training/mlp-diabetes",
        "training/knn-digits",
        "training/svm-digits",
        "training/pipeline-digits",
        "training/descent-wine",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tables", "training", "levels", "noisy", "functions", "long", "control"])
def test_every_name_makes_a_problem(name):
    for each in suites.suite(name, half="all"):
        assert isinstance(suites.problem(each), Problem)


@pytest.mark.parametrize("name", list(Coco.DIMENSIONS))
def test_a_coco_name_makes_its_function(name):
    for each in suites.suite(name, dimensions=Coco.DIMENSIONS[name][1:2], instances=[3]):
        made = suites.problem(each)
        assert f"{made.suite}/f{made.function:02d}/i{made.instance:02d}/d{made.dimension:02d}" == each
        assert len(made.space.names) == made.dimension


@pytest.mark.parametrize("name", suites.SUITES)
def test_halves_share_nothing_and_are_the_whole(name):
    part = {half: suites.suite(name, half=half) for half in ("development", "validation", "held_out", "all")}
    assert not set(part["development"]) & set(part["held_out"])
    assert sorted(part["development"] + part["validation"] + part["held_out"]) == sorted(part["all"])
    assert len(set(part["all"])) == len(part["all"])


@pytest.mark.parametrize("name", DEVELOPMENT)
def test_the_half_for_development_stays_as_it_was_drawn(name):
    assert suites.suite(name) == DEVELOPMENT[name]


@pytest.mark.parametrize("half", ["development", "held_out", "all"])
def test_one_run_of_a_table_is_in_the_half_of_the_table(half):
    names = suites.suite("tables", half=half)
    assert suites.suite("tables-single", half=half) == [f"tables-single/{name}" for name in names]


@pytest.mark.parametrize("half", ["development", "held_out", "all"])
def test_a_run_on_levels_is_in_the_half_of_the_run_without(half):
    names = [name.partition("/")[2] for name in suites.suite("training", half=half)]
    assert suites.suite("levels", half=half) == [f"levels/{name}" for name in names]


def test_cocos_instances_above_5_are_held_out():
    instances = {int(each.split("/")[2][1:]) for each in suites.suite("bbob", half="held_out")}
    assert instances == set(range(6, 16))
    assert suites.suite("bbob", half="held_out", dimensions=[2], instances=[71])[0] == "bbob/f01/i71/d02"
    assert suites.suite("bbob-noisy", dimensions=[5], instances=[1])[-1] == "bbob-noisy/f130/i01/d05"
    for half, instance in [("development", 6), ("held_out", 5)]:
        with pytest.raises(SettingError, match=f"but got instance={instance} for half='{half}'"):
            suites.suite("bbob", half=half, instances=[instance])


@pytest.mark.parametrize(
    "name", ["bob/f01/i01/d05", "bbob/f1/i1/d5", "bbob/f01/i01/d005", "bbob/f01/i01/d04", "tables", "hpobench/x"]
)
def test_a_name_that_no_problem_has_is_refused(name):
    with pytest.raises(SettingError):
        suites.problem(name)


@pytest.mark.parametrize(
    ("name", "settings"),
    [("bob", {}), ("bbob", {"half": "test"}), ("bbob", {"dimensions": [4]}), ("tables", {"dimensions": [5]})],
)
def test_a_suite_that_is_none_is_refused(name, settings):
    with pytest.raises(SettingError):
        suites.suite(name, **settings)


SHARED = Path(deepbore.__file__).parents[2] / "shared" / "problems"


@cache
def golden(name):
    path = SHARED / f"{name}_golden.json"
    if not path.exists():
        pytest.skip("the original programs' values are not beside this checkout")
    return json.loads(path.read_text())


def test_every_name_of_the_papers_makes_a_problem(monkeypatch):
    for name in suites.suite("papers"):
        if not name.startswith("racing/ethz"):
            assert isinstance(suites.problem(name, seed=1), Problem)
    monkeypatch.delenv("DEEPBORE_TRACKS", raising=False)
    with pytest.raises(SettingError, match="DEEPBORE_TRACKS"):
        suites.problem("racing/ethz_b")
    golden("racing")
    monkeypatch.setenv("DEEPBORE_TRACKS", str(SHARED / "racing_golden.json"))
    assert len(suites.problem("racing/ethz_b").space.names) == 21


def test_the_six_of_batch_bore_are_functions_of_known_optimum():
    names = suites.suite("batch-bore")
    assert len(names) == 6
    assert {"camel", "hartmann3"} < set(names)
    assert all(math.isfinite(suites.problem(name).optimum) for name in names)
