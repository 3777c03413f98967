"""What pictures, and the page, promise: each of these was broken once."""

import math

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import deepbore as db
from deepbore import Categorical, Outcome, Real, SearchSpace, Study, plots
from deepbore.errors import SettingError
from deepbore.plots.page.sections import history_section, trials_table
from deepbore.plots.sources import record_of

SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def told(space, value, n=12, **settings):
    study = Study(space, seed=0, **settings)
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, value(trial.params))
    return study


def offsets(axes, label):
    """The points of the scatter with this label."""
    (found,) = (each for each in axes.collections if each.get_label() == label)
    return np.asarray(found.get_offsets())


@pytest.mark.slow
def test_what_stands_still_is_drawn_as_it_was_learned():
    study = told(SQUARE, lambda params: params["x"], 15)
    study.fit()
    matters, explains = plots.importances(study), plots.shares(study)
    lines = [plots.slices(study, parameters=["x"]), plots.pairs(study)]
    study.fix({"x": 0.5})
    assert plots.importances(study) == pytest.approx(matters)
    assert plots.shares(study) == explains
    for before, after in zip(lines, [plots.slices(study, parameters=["x"]), plots.pairs(study)], strict=True):
        (one, other) = (figure.axes[0] for figure in (before, after))
        drawn = [axes.lines[0].get_ydata() if axes.lines else axes.collections[0].get_array() for axes in (one, other)]
        assert np.allclose(*drawn)
        assert np.ptp(drawn[1]) > 0.1


@pytest.mark.slow
def test_a_category_that_stands_still_leaves_the_others_their_importance():
    space = SearchSpace({"o": Categorical(["a", "b"]), "z": Real(0, 1)})
    study = told(space, lambda params: float(params["o"] == "b"), 14)
    study.fit()
    before = plots.importances(study)
    study.fix({"o": "a"})
    assert plots.importances(study) == pytest.approx(before)


@pytest.fixture
def after_a_task():
    study = Study(SQUARE, seed=0)
    xs = np.linspace(0, 1, 40).tolist()
    study.add({"x": xs, "y": xs}, [1000 + x for x in xs], task="old")
    for _ in range(12):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"])
    study.fit()
    return study


def test_an_earlier_task_has_a_colour_of_its_own_and_no_part_in_tau(after_a_task):
    axes = plots.history(after_a_task).axes[0]
    assert len(offsets(axes, "earlier task")) == 40
    assert "infeasible" not in axes.get_legend_handles_labels()[1]
    (tau,) = (line for line in axes.lines if str(line.get_label()).startswith("tau"))
    assert tau.get_ydata()[-1] == pytest.approx(after_a_task.labels(after_a_task.observations).metrics["tau"])
    assert axes.get_ylim()[1] < 100


def test_the_page_keeps_an_earlier_task_out_of_tau_and_axis(after_a_task):
    (chart,) = history_section(record_of(after_a_task)).charts
    tau = next(trace for trace in chart.data if trace["name"].startswith("tau"))
    assert tau["y"][-1] == pytest.approx(after_a_task.labels(after_a_task.observations).metrics["tau"])
    assert chart.layout["yaxis"]["range"][1] < 100


def test_pictures_of_the_trials_are_about_this_run(after_a_task):
    drawn = plots.slices(after_a_task, parameters=["x"]).axes[0].collections[-1]
    assert len(drawn.get_offsets()) == 12


@pytest.mark.slow
@pytest.mark.parametrize("objective", [lambda p: math.sqrt(p["x"]), lambda p, trial: p["x"] + trial.id * 0])
def test_a_landscape_draws_every_objective_that_a_run_takes(objective):
    study = Study(SearchSpace({"x": Real(-1, 1)}), seed=0)
    study.optimize(objective, 12)
    study.fit()
    figure = plots.landscape(study, objective=objective)
    (curve,) = (line for line in figure.axes[0].lines if line.get_label() == "objective")
    assert np.isfinite(curve.get_ydata()[-50:]).all()


def test_parallel_coordinates_take_huge_values():
    study = Study(SQUARE, seed=0)
    for value in (1e308, -1e308, 1.0):
        (trial,) = study.ask()
        study.tell(trial, value)
    assert isinstance(plots.parallel_coordinates(study), Figure)


def test_an_attribute_that_a_trial_lacks_is_blank_and_its_column_a_number():
    study = Study(SQUARE, seed=0)
    for k in range(6):
        (trial,) = study.ask()
        study.tell(trial, Outcome.failure("lost") if k == 2 else Outcome(k, attributes={"epochs": k}))
    table = trials_table(record_of(study))
    assert table["columns"][-1] == {"name": "epochs", "number": True}
    assert [row[-1] for row in table["rows"]] == [0, 1, None, 3, 4, 5]


def test_a_front_tells_infeasible_trials_from_beaten_ones():
    study = Study(SQUARE, directions=["minimize"] * 2, seed=0)
    for values, constraint in (([0.0, 0.0], 1.0), ([1.0, 2.0], -1.0), ([2.0, 1.0], -1.0), ([3.0, 3.0], -1.0)):
        (trial,) = study.ask()
        study.tell(trial, values, constraints=[constraint])
    front = history_section(record_of(study)).charts[0]
    found = {trace["name"]: trace["trials"] for trace in front.data}
    assert found == {"beaten by another": [3], "beaten by none": [1, 2], "infeasible": [0]}


@pytest.mark.parametrize(
    "draw",
    [
        lambda study: plots.slices(study, parameters=[]),
        lambda study: plots.importances(study, samples=0),
        lambda _: plots.importances([1.0]),
        lambda _: plots.shares("x"),
        lambda _: plots.parallel_coordinates([1.0]),
    ],
)
def test_what_can_not_be_drawn_is_refused(draw):
    study = told(SQUARE, lambda params: params["x"])
    study.fit()
    with pytest.raises(SettingError):
        draw(study)


# --- heads, acquisitions and problems --------------------------------------------------------------------------------


class Exp(torch.nn.Module):
    def forward(self, x):
        return x.exp()


@pytest.mark.parametrize(
    "classifier",
    [
        lambda: db.MLPClassifier(
            network=lambda f, o: torch.nn.Sequential(torch.nn.Linear(f, 64), Exp(), torch.nn.Linear(64, 64), Exp(),
                                                     torch.nn.Linear(64, o)),
            training=db.Training(learning_rate=1.0),
        ),
        lambda: db.DeepPLS(training=db.Training(learning_rate=1e10)),
        lambda: db.HyperDeepEnsemble(training=db.Training(learning_rate=1e30)),
    ],
)  # fmt: skip
def test_a_training_that_diverges_explores_and_says_so(classifier, caplog):
    head = classifier()
    result = db.minimize(lambda params: params["x"] + params["y"], SQUARE, 14, seed=0, classifier=head)
    assert len(result.study.observations) == 14
    assert not head.ready
    assert "smaller learning rate" in caplog.text


@pytest.mark.slow
def test_a_network_begins_anew_after_it_diverged():
    head = db.MLPClassifier()
    study = Study(SQUARE, seed=0, classifier=head)
    for _ in range(11):
        (trial,) = study.ask()
        study.tell(trial, trial.params["x"])
    study.fit()
    with torch.no_grad():
        next(iter(head.net.parameters())).fill_(math.nan)
    study.fit()
    assert head.ready


def test_a_range_of_a_hyper_ensemble_is_finite():
    with pytest.raises(SettingError, match="finite"):
        db.HyperDeepEnsemble(weight_decay=(1e-6, math.nan))


def test_a_bound_of_ones_own_stays_what_it_is():
    class Pessimist(db.UpperConfidenceBound):
        def __call__(self, posterior, best):
            return posterior.mean - self.kappa * posterior.std

    head = db.DeepEnsemble()
    found = Pessimist().resolved(head)
    assert type(found) is Pessimist
    assert found.kappa == head.kappa


def test_noise_keeps_constraints_and_refuses_several_objectives():
    plain = db.problems.PressureVessel()
    noisy = db.problems.Noisy(plain, 1.0)
    params = plain.space.decode(plain.space.sobol(1, seed=0))[0]
    beneath, outcome = plain(params), noisy(params)
    assert outcome.constraints == beneath.constraints
    assert outcome.values != beneath.values
    assert noisy.constraints == plain.constraints
    with pytest.raises(SettingError, match="one objective"):
        db.problems.Noisy(db.problems.ZDT(1), 0.1)


@pytest.mark.parametrize("inequality", [(["x"], [1.0], 0.1), 1, ([0], ["a"], 0.1), ([0, 1], [1.0], 0.1)])
def test_an_inequality_that_is_none_is_refused(inequality):
    with pytest.raises(SettingError, match="indices, coefficients, bound"):
        Study(SQUARE, candidates=db.BoTorchBatch(inequality_constraints=[inequality]))


def test_the_relative_ratio_takes_points_in_single_precision():
    study = told(SQUARE, lambda params: params["x"], classifier=db.RelativeRatio())
    study.fit()
    points = SQUARE.sobol(4, seed=0)
    single, double = (study.classifier.posterior(each).mean for each in (points.float(), points))
    assert torch.allclose(single.double(), double.double(), atol=1e-5)
