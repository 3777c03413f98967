"""One vocabulary for all doors: plain dicts, names of objectives, partial configurations, defaults, hints."""

import pandas as pd
import pytest

import deepbore
from deepbore import Categorical, Integer, KernelPLS, Outcome, Real, SearchSpace, SerialEvaluator, Study, minimize
from deepbore.errors import (
    DeepBoreError,
    JournalError,
    NoBestTrial,
    PointError,
    SettingError,
    SpaceError,
    ValueTypeError,
)
from objectives import bowl
from plane import PLANE, SQUARE

GROWN = {"x": Real(-1, 1), "k": Integer(1, 9)}


def told(study, n):
    for _ in range(n):
        trial = study.ask_one()
        study.tell(trial, trial.params["x"] ** 2)
    return study


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_a_dict_of_parameters_is_a_space(tmp_path):
    path = tmp_path / "run.jsonl"
    found = minimize(lambda p: p["x"] ** 2, dict(GROWN), 3, journal=path)
    assert found.study.space == SearchSpace(GROWN)
    assert Study.load(path, space=GROWN).best_params == found.best_params
    with pytest.raises(SpaceError, match="parameter 'x' must be a Real"):
        Study({"x": (0, 1)})


def test_a_journal_has_the_names_of_choices_and_goes_on_only_with_the_objects(tmp_path):
    path, space = tmp_path / "run.jsonl", {"layers": Categorical({"one": object(), "two": [64, 64]}), "x": Real(0, 1)}
    study = told(Study(space, journal=path, n_initial=2), 4)
    study.enqueue({"layers": [64, 64], "x": 0.5})
    study.fix({"layers": "one"})
    study.close()
    assert [trial.params["layers"] for trial in Study.load(path).trials] == list(study.to_frame()["layers"])
    with pytest.raises(SpaceError, match="keeps the names alone"):
        Study.load(path).ask()
    again = Study.load(path, space=space)
    assert again.trials == study.trials
    assert again.ask_one().params == {"layers": [64, 64], "x": 0.5}
    assert again.ask_one().params["layers"] is space["layers"].choices[0]


# --- what is tried first ---------------------------------------------------------------------------------------------


def test_defaults_are_tried_first_and_what_they_leave_open_is_proposed(tmp_path):
    space = {
        "model": Categorical(["svc", "forest"], default="svc"),
        "C": Real(1e-3, 1e3, log=True, when={"model": "svc"}, default=1.0),
        "trees": Integer(1, 500, when={"model": "forest"}, default=100),
        "x": Real(0, 1),
    }
    path = tmp_path / "run.jsonl"
    study = Study(space, journal=path)
    study.close()
    again = Study.load(path)  # the journal has it, too
    first = again.ask_one().params
    assert first == {"model": "svc", "C": 1.0, "x": first["x"]}
    assert study.space.default == {"model": "svc", "C": 1.0}
    assert again.ask_one().params != first
    assert SearchSpace({"x": Real(0, 1, default=0.5)}) == SearchSpace({"x": Real(0, 1)})
    with pytest.raises(SpaceError, match="the default of 'x'"):
        SearchSpace({"x": Real(0, 1, default=2)})


def test_another_default_is_no_other_run(tmp_path):
    path = tmp_path / "run.jsonl"
    Study({"x": Real(0, 1)}, journal=path).close()
    study = Study({"x": Real(0, 1, default=0.5)}, journal=path, if_exists="load")
    assert study.ask_one().params != {"x": 0.5}


@pytest.mark.parametrize("n", [0, 3, 6])
def test_a_part_of_a_configuration_is_completed_when_its_turn_comes(n, tmp_path):
    path = tmp_path / "run.jsonl"
    study = told(Study(GROWN, n_initial=4, journal=path), n)
    study.enqueue({"k": 7})
    study.enqueue({"x": 0.25, "k": 2})
    study.enqueue({"k": 7})
    twin = told(Study(GROWN, n_initial=4), n)
    for params in ({"k": 7}, {"x": 0.25, "k": 2}, {"k": 7}):
        twin.enqueue(params)
    study.close()
    study = Study.load(path)
    one, two, three = study.ask(3)
    assert [trial.params for trial in twin.ask(3)] == [one.params, two.params, three.params]
    assert (one.params["k"], two.params, three.params["k"]) == (7, {"x": 0.25, "k": 2}, 7)
    assert one.params != three.params
    study.close()
    assert Study.load(path).ask_one().params == twin.ask_one().params


def test_a_part_is_completed_within_optimize_and_by_workers_too():
    def ask_for(study, trial):
        if trial.id in (1, 8):
            study.enqueue({"k": 9})

    found = Study(GROWN, n_initial=4).optimize(lambda p: p["x"] ** 2, 12, callbacks=[ask_for])
    assert found.study.trials[2].params["k"] == found.study.trials[9].params["k"] == 9


def test_a_part_has_the_parents_that_it_needs():
    space = {
        "model": Categorical(["svc", "net"]),
        "layers": Integer(1, 4, when={"model": "net"}),
        "width": Integer(1, 9, when={"layers": ">= 2"}),
        "last": Integer(1, 9, when={"layers": 4}),
    }
    study = Study(space)
    study.enqueue({"last": 3})
    params = study.ask_one().params
    assert {name: params[name] for name in ("model", "layers", "last")} == {"model": "net", "layers": 4, "last": 3}
    with pytest.raises(PointError, match="Give 'layers', too"):
        study.enqueue({"width": 3})
    assert SearchSpace({**space, "last": Integer(1, 9, when={"layers": 4}, default=3)}).default == {}


# regression: it was refused where no other parameter was left to be proposed
def test_a_part_whose_parents_are_all_that_it_lacks_is_a_configuration():
    study = Study(
        SearchSpace(
            {"model": Categorical(["svc", "net"]), "layers": Integer(1, 4, when={"model": "net"}), "k": Integer(1, 9)},
            constraints=["layers < k"],
        )
    )
    study.enqueue({"layers": 3, "k": 4})
    assert study.ask_one().params == {"model": "net", "layers": 3, "k": 4}
    with pytest.raises(PointError, match="constraint 'layers < k' forbids"):
        study.enqueue({"layers": 3, "k": 3})


def test_one_configuration_with_a_list_among_its_choices_is_added():
    study = Study({"layers": Categorical({"one": [64], "two": [64, 64]}), "x": Real(0, 1)})
    study.add({"layers": [64, 64], "x": 0.5}, 1.0)
    study.add({"layers": [[64, 64], "one"], "x": [0.25, 0.75]}, [1.0, 2.0])
    assert [trial.params["layers"] for trial in study.trials] == [[64, 64], [64, 64], [64]]


def test_rows_of_a_frame_are_queued_and_what_is_missing_is_proposed():
    study = Study(GROWN)
    frame = pd.DataFrame({"x": [0.5, None], "k": [3, 4], "value": [0.1, 0.2]})
    study.enqueue(frame)
    study.enqueue(frame.iloc[0])
    one, other, again = study.ask(3)
    assert one.params == again.params == {"x": 0.5, "k": 3}
    assert other.params["k"] == 4


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"y": 1}, "must be among"),
        ({"k": 99}, "parameter 'k'"),
        ({"model": "forest", "C": 0.5}, "inactive parameters must be left out"),
        ({"x": 0.9, "model": "svc"}, "can't be completed"),
        (3, "must map names to values"),
    ],
)
def test_a_part_outside_the_space_is_refused_and_not_queued(params, says):
    parameters = {**GROWN, "model": Categorical(["svc", "forest"]), "C": Real(0, 1, when={"model": "svc"})}
    study = Study(SearchSpace(parameters, constraints=["x < 0.5"]))
    with pytest.raises(PointError, match=says):
        study.enqueue(params)
    assert study.state.queue == []


def test_a_part_of_what_is_all_known_comes_again():
    study = Study({"a": Integer(1, 2), "b": Integer(1, 2)})
    study.add({"a": [1, 1], "b": [1, 2]}, [0.1, 0.2])
    study.enqueue({"a": 1})
    assert study.ask_one().params["a"] == 1


def test_a_space_that_has_grown_takes_earlier_results():
    space = {"x": Real(-1, 1), "model": Categorical(["old", "new"]), "C": Real(0, 1, when={"model": "new"})}
    study = Study(space)
    study.add({"x": [0.1, 0.2]}, [1.0, 2.0], defaults={"model": "old", "C": 0.5})
    study.add({"x": 0.3}, 3.0, defaults={"model": "old", "C": 0.5})
    study.add(pd.DataFrame({"x": [0.4]}), [4.0], defaults={"model": "new", "C": 0.5})
    assert [trial.params.get("C") for trial in study.trials] == [None, None, None, 0.5]
    assert [trial.params["model"] for trial in study.trials] == ["old", "old", "old", "new"]
    for defaults, says in [({"x": 1}, "results lack"), ({"z": 1}, "among"), (3, "by names")]:
        with pytest.raises(PointError, match=says):
            study.add({"x": [0.1], "model": ["old"]}, [1.0], defaults=defaults)


# --- objectives ------------------------------------------------------------------------------------------------------


def test_objectives_have_names_and_values_come_by_them(tmp_path):
    path, directions = tmp_path / "run.jsonl", {"loss": "minimize", "size": "maximize"}
    found = minimize(lambda p: {"size": p["k"], "loss": p["x"] ** 2}, GROWN, 4, directions=directions, journal=path)
    study = Study.load(path)
    assert study.state.observations.objectives == found.study.state.observations.objectives == ("loss", "size")
    assert all(trial.values == (trial.params["x"] ** 2, trial.params["k"]) for trial in study.trials)
    trial = study.ask_one()
    with pytest.raises(ValueTypeError, match="came by the names loss, sise, but the objectives are loss, size"):
        study.tell(trial, {"loss": 1, "sise": 2})
    study.tell(trial, Outcome({"size": 2, "loss": 1}, attributes={"a": 1}))
    study.correct(trial, {"size": 3, "loss": 1})
    assert study.trials[-1].values == (1, 3)
    with pytest.raises(JournalError, match="objectives is error, size, was loss, size"):
        Study(GROWN, directions={"error": "minimize", "size": "maximize"}, journal=path, if_exists="load")


def test_one_objective_may_have_a_name_and_unnamed_ones_take_no_names():
    found = minimize(lambda p: {"loss": p["x"] ** 2}, GROWN, 3, directions={"loss": "minimize"})
    assert found.best_value == found.study.best_value
    with pytest.raises(ValueTypeError, match="have no names"):
        told_by_name(Study(GROWN))


def told_by_name(study):
    study.tell(study.ask_one(), {"loss": 1})


# --- options ---------------------------------------------------------------------------------------------------------


def test_noisy_is_said_to_the_default_model(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(GROWN, noisy=True, journal=path)
    assert study.classifier.noisy
    study.close()
    assert Study.load(path).classifier.noisy
    assert Study(GROWN, noisy=True, journal=path, if_exists="load").classifier.noisy
    with pytest.raises(JournalError, match="classifier is not given"):
        Study(GROWN, journal=path, if_exists="load")
    assert Study(GROWN, noisy=True, classifier=KernelPLS(noisy=True)).classifier.noisy
    assert Study(GROWN, noisy=True, directions=["minimize"] * 2).state.recipe.classifier is not None
    with pytest.raises(SettingError, match="noisy=True is for the default model"):
        Study(GROWN, noisy=True, classifier=KernelPLS())


def test_workers_are_processes_and_evaluators_have_their_own():
    found = minimize(bowl, PLANE, 4, workers=2)
    assert len(found.values) == 4
    with pytest.raises(SettingError, match="has workers of its own"):
        minimize(SerialEvaluator(bowl), PLANE, 4, workers=2)
    with pytest.raises(SettingError, match="workers >= 1"):
        minimize(bowl, PLANE, 4, workers=0)


@pytest.mark.parametrize("name", ["random", "sobol", "grid"])
def test_strategies_by_name_propose_without_a_model_and_go_on(name, tmp_path):
    path, space = tmp_path / "run.jsonl", {**GROWN, "c": Categorical(["a", "b"])}
    study = told(Study(space, strategy=name, seed=3, journal=path), 15)
    assert study.classifier.space is None  # never trained
    study.close()
    rest = [Study.load(path).ask_one().params]
    expected = [trial.params for trial in told(Study(space, strategy=name, seed=3), 16).trials]
    assert [*(trial.params for trial in study.trials), *rest] == expected
    assert minimize(lambda p: p["x"] ** 2, space, 16, strategy=name, seed=3).study.trials[15].params == expected[15]
    assert study.recommended == study.best_trial


def test_a_grid_ends_the_run_and_is_whole():
    space = {"lr": Real(1e-3, 1e-1, log=True), "k": Integer(1, 3), "m": Categorical(["a", "b"]),
             "z": Real(0, 1, when={"m": "b"})}  # fmt: skip
    found = minimize(lambda p: p["lr"], space, 1000, strategy="grid")
    assert len(found.values) == 5 * 3 * (1 + 5)
    assert len({tuple(trial.params.items()) for trial in found.study.trials}) == len(found.values)
    with pytest.raises(deepbore.errors.SpaceExhausted, match="the grid of 5 levels"):
        found.study.ask()
    with pytest.raises(SettingError, match="a grid has at most"):
        Study({f"x{i}": Real(0, 1) for i in range(20)}, strategy="grid")
    with pytest.raises(SettingError, match="strategy must be one of"):
        Study(space, strategy="tpe")


# --- what is shown, and hints ----------------------------------------------------------------------------------------


def test_reprs_are_short_and_notebooks_get_tables():
    found = minimize(lambda p: p["x"] ** 2, GROWN, 5)
    study = found.study
    assert repr(study.trials[0]).startswith("Trial(0, {'x': ")
    assert repr(study.ask_one()).endswith("pending)")
    assert repr(found).startswith("Result(best_value=")
    for each in (found, study, study.trials[0], study.space):
        assert len(repr(each)) < 200
        assert each._repr_html_().endswith("</table>")
    named = Study({"<script>": Real(0, 1)})
    assert "<script>" not in named.space._repr_html_() + named._repr_html_()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: minimize(bowl, PLANE, n_calls=3), "Here it is n_trials="),
        (lambda: Study(PLANE, sampler=None), "Here it is strategy="),
        (lambda: Study(PLANE).optimize(bowl, 3, n_jobs=2), "Here it is workers="),
        (lambda: deepbore.create_study, r"Here it is Study\(space\)"),
        (lambda: Study(PLANE).trials_dataframe, r"Here it is to_frame\(\)"),
        (lambda: Study(PLANE).best_trails, "Did you mean 'best_trial'"),
        (lambda: Study(PLANE).ask_one().suggest_float, r"Here it is Real\(low, high"),
        (lambda: minimize(bowl, PLANE, 2).x, "Here it is best_params"),
        (lambda: minimize(bowl, PLANE, 2).trials, r"Give result\.study\.trials"),
        (lambda: deepbore.Budget(1, 81), "names its unit first"),
        (
            lambda: deepbore.MedianPruner(n_warmup_steps=3),
            r"MedianPruner\(\) got .*'n_warmup_steps'. Here it is warmup",
        ),
        (lambda: deepbore.MedianPruner(n_startup_trials=3), "Did you mean 'startup_trials'"),
        (lambda: deepbore.SuccessiveHalvingPruner(reduction_factor=3), "Here it is factor="),
        (lambda: deepbore.KernelPLS(noize=True), "Did you mean 'noisy'"),
        (lambda: deepbore.NopPruner, "Here it is pruner=None"),
    ],
)
def test_names_of_other_tools_are_answered_with_ours(call, says):
    with pytest.raises((TypeError, AttributeError, DeepBoreError), match=says):
        call()


@pytest.mark.parametrize("name", ["best_params", "best_value"])
def test_the_best_is_an_error_that_says_why_while_there_is_none(name):
    study = Study(SQUARE)
    study.tell(study.ask_one(), failed=True)
    with pytest.raises(NoBestTrial, match=r"none of 1 trials has a feasible value so far. study.best_trial is None"):
        getattr(study, name)
    assert study.best_trial is None
    study.tell(study.ask_one(), 2.0)
    assert getattr(study, name) == {"best_params": study.trials[1].params, "best_value": 2.0}[name]


def test_the_best_of_what_has_no_single_best_is_an_error_that_says_where_to_look():
    result = minimize(lambda params: [params["x"], -params["x"]], SQUARE, 4, directions=["minimize", "minimize"])
    with pytest.raises(NoBestTrial, match=r"result\.pareto_front"):
        _ = result.best_params
    assert result.best_trial is None
