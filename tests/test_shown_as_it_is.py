"""What pictures and tables show: feasible trials, this run's values, and parameters that can be told apart."""

import numpy as np
import pytest

from commands import deepbore
from deepbore import Categorical, Integer, Outcome, Real, SearchSpace, Study, plots
from deepbore.cli.run_directory import Run
from deepbore.data.replay import read_record
from deepbore.plots.names import short_names
from deepbore.plots.page.learned import Learned, learned_sections
from deepbore.plots.page.parallel_chart import Scale, parallel_section
from deepbore.plots.predictions import probability, values_of
from deepbore.plots.style import INFEASIBLE
from deepbore.plots.translation import Translation

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
STEM = "model.init_args.optimizer.init_args."
DOTTED = SearchSpace({STEM + name: Real(0, 1) for name in ("lr", "weight_decay", "momentum")})


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A study in which infeasible trials have better values than the best feasible one, and its journal."""
    path = tmp_path_factory.mktemp("limited") / "run.jsonl"
    study = Study(PLANE, seed=0, direction="maximize", journal=path)
    study.optimize(lambda p: Outcome(p["x"] - p["y"], constraints=[p["x"] - 0.3, 0.6 - p["y"]]), 20, progress=False)
    study.fit()
    study.close()
    return study, path


@pytest.fixture(scope="module")
def dotted():
    study = Study(DOTTED, seed=0)
    study.optimize(lambda p: sum(k * (value - 0.4) ** 2 for k, value in enumerate(p.values(), 1)), 15, progress=False)
    study.fit()
    return study


# --- what counts -----------------------------------------------------------------------------------------------------


def test_values_of_infeasible_trials_are_predicted_as_they_are(limited):
    study, _ = limited
    values, feasible = values_of(study), study.observations.feasible.numpy()
    assert values[~feasible].max() > values[feasible].max() + 0.3
    predicted = Translation.of(study)(probability(study, study.observations.points))
    assert np.abs(predicted - values).max() < 0.1


def test_the_greenest_line_is_the_best_feasible_trial(limited):
    study, path = limited
    (chart,) = parallel_section(read_record(path)).charts
    drawn = {trace["line"]["color"]: set(trace["trials"]) for trace in chart.data}
    assert study.best_trial.id in list(drawn.values())[-1]
    assert drawn[INFEASIBLE] == {trial.id for trial in study.trials if max(trial.constraints) > 0}


def test_lines_of_infeasible_trials_have_their_colour_and_no_say_in_the_scale(limited):
    study, _ = limited
    (axes,) = plots.parallel_coordinates(study).axes
    lines = max(axes.collections, key=lambda each: len(each.get_colors()))
    pink = [tuple(colour[:3]) == pytest.approx((0xD0 / 255, 0x8A / 255, 0x9A / 255)) for colour in lines.get_colors()]
    count = sum(max(trial.constraints) > 0 for trial in study.trials)
    assert pink == [True] * count + [False] * (len(study.trials) - count)  # below all others
    ends = [path.vertices[-1, 1] for path in lines.get_paths()]
    assert ends[-1] == pytest.approx(1)  # the best feasible one is at the end of the axis


def test_values_of_another_task_do_not_stretch_the_page():
    study = Study(PLANE, seed=0)
    x = np.linspace(0, 1, 20)
    study.add({"x": x, "y": x}, 3000 * x + 1000, task="another")
    study.optimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], 12, progress=False)
    study.fit()
    assert Learned(study).shown.high < 10


def test_several_objectives_have_no_best_line(tmp_path):
    study = Study(PLANE, directions=["minimize", "maximize"], seed=0, journal=tmp_path / "run.jsonl")
    study.optimize(lambda p: [p["x"], p["y"]], 6, progress=False)
    for shown in (study, read_record(tmp_path / "run.jsonl")):
        (axes,) = plots.history(shown).axes
        assert axes.get_ylabel() == "value 0"
        assert "best so far" not in axes.get_legend_handles_labels()[1]


@pytest.mark.parametrize(
    ("values", "optimum", "is_drawn"),
    [
        ([10.0**-k for k in range(10)], 0.0, False),
        ([10.0**-k for k in range(10)], 1e-12, True),
        ([1, 2, 1.5, 1.4, 1.3, 1.25, 1.2, 1.1, 2, 1e9], 0.0, True),
        ([1, 2, 3], 2.5, True),
    ],
)
def test_the_optimum_is_named_where_it_is_drawn(values, optimum, is_drawn):
    (axes,) = plots.history(values, optimum=optimum).axes
    assert ("optimum" in axes.get_legend_handles_labels()[1]) is is_drawn
    low, high = axes.get_ylim()
    assert bool(low < optimum < high) is is_drawn


# --- names -----------------------------------------------------------------------------------------------------------


def test_short_names_differ_and_show_where_dotted_ones_do():
    assert short_names([*DOTTED.names, "lr"], 16) == ["…er.init_args.lr", "…gs.weight_decay", "…t_args.momentum", "lr"]
    assert short_names(["a long choice of this", "a long choice of that"], 10) == ["a long ch… (0)", "a long ch… (1)"]


def test_pictures_of_dotted_names_tell_parameters_apart(dotted):
    def texts(axes):
        return [text.get_text() for text in axes.texts if "…" in text.get_text()]

    assert len({axes.get_xlabel() for axes in plots.slices(dotted).axes if axes.get_xlabel()}) == 3
    assert len(set(texts(plots.parallel_coordinates(dotted).axes[0]))) == 3
    assert len({label.get_text() for label in plots.importance(dotted).axes[0].get_yticklabels()}) == 3


def test_the_page_has_a_bar_and_an_axis_for_each_parameter(dotted):
    sections = {section.title.split(":")[0]: section for section in learned_sections(dotted)}
    names = sections["Importance"].charts[0].data[0]["y"]
    assert len(set(names)) == 3
    assert sections["Importance"].charts[0].data[1]["y"] == names
    assert len({chart.layout["xaxis"]["title"]["text"] for chart in sections["Slices"].charts}) == 3


def test_choices_that_begin_alike_have_different_ticks():
    choices = ["torch.optim.Adam", "torch.optim.AdamW", "torch.optim.SGD"]
    assert len({label for _, label in Scale.of({"type": "categorical", "choices": choices}, []).ticks}) == 3
    study = Study(SearchSpace({"optimizer": Categorical(choices), "x": Real(0, 1)}), seed=0)
    study.optimize(lambda p: p["x"] + (p["optimizer"] == choices[1]), 12, progress=False)
    study.fit()
    ticks = [[label.get_text() for label in axes.get_xticklabels()] for axes in plots.slices(study).axes]
    assert any(len(set(labels)) == 3 and all("…" in label for label in labels) for labels in ticks)


@pytest.mark.parametrize("parameter", [Integer(1, 8), Integer(0, 100, step=20), Real(0, 1), Real(0, 0.3, step=0.1)])
def test_ticks_of_the_page_are_values_that_a_parameter_can_have(parameter):
    for _, label in Scale.of(parameter.to_dict(), []).ticks:
        value = float(label)
        native = int(value) if isinstance(parameter, Integer) else value
        assert value == native
        assert parameter.decode(parameter.encode([native])) == [pytest.approx(native)]


# --- runs beside each other ------------------------------------------------------------------------------------------


def told(path, values, n_initial):
    study = Study(PLANE, seed=0, journal=path, n_initial=n_initial)
    for trial, value in zip(study.ask(len(values) + 1), values, strict=False):
        study.tell(trial, value)
    study.close()


def test_runs_are_ranked_though_some_have_no_value_yet(tmp_path):
    told(tmp_path / "worst.jsonl", [3.0] * 4, 20)
    told(tmp_path / "failing.jsonl", [float("nan")] * 4, 21)
    told(tmp_path / "best.jsonl", [1.0] * 4, 22)
    told(tmp_path / "begun.jsonl", [], 23)
    names = ["worst.jsonl", "failing.jsonl", "begun.jsonl", "best.jsonl"]
    done = deepbore("compare", *names, cwd=tmp_path)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:5]] == ["best", "worst", "failing", "begun"]


def test_a_repetition_that_has_just_begun_hides_no_others(tmp_path):
    for seed, values in enumerate([[4.0] * 12, [2.0] * 12, [3.0] * 12, []]):
        told(tmp_path / f"rep-{seed}.jsonl", values, 20)
    done = deepbore("compare", *(f"rep-{seed}.jsonl" for seed in range(4)), cwd=tmp_path)
    assert done.stdout.splitlines()[1].split() == ["rep", "4", "0", "to", "12", "3", "2", "4", "3"]


def test_journals_of_any_name_have_pictures_of_their_own(tmp_path):
    for name in ("lr0.01", "lr0.001", "exp.seed0.jsonl"):
        told(tmp_path / name, [1.0, 2.0], 20)
    runs = [Run(tmp_path / name) for name in ("lr0.01", "lr0.001", "exp.seed0.jsonl")]
    assert [run.name for run in runs] == ["lr0.01", "lr0.001", "exp.seed0"]
    assert [run.beside("history.png").name for run in runs] == ["lr0.01.png", "lr0.001.png", "exp.seed0.png"]
