"""What the page says of reported values, budgets, several objectives, and trials that do not count."""

import pytest

from deepbore import Budget, Study, TrialPruned
from deepbore.loop.metrics import hypervolume_so_far
from deepbore.plots.objectives_chart import hypervolumes
from deepbore.plots.page.curves import curves_section, history_section, trade_off_sections
from deepbore.plots.sources import record_of
from plane import SQUARE


def traces(section, chart=0):
    """The traces of a chart by name."""
    return {trace["name"]: trace for trace in section.charts[chart].data if "name" in trace}


def test_what_trials_report_is_drawn_as_curves():
    study = Study(SQUARE, seed=0)

    def curve(params, trial):
        for step in range(5):
            trial.report(params["x"] + 1 / (1 + step), step=step)
            if trial.id == 2 and step == 2:
                raise TrialPruned
        return params["x"] + 0.2

    study.optimize(curve, 6, progress=False)
    record = record_of(study)
    found = traces(curves_section(record))
    best = record.trials[record.best.id]
    assert found["best"]["x"] == [0, 1, 2, 3, 4, None]
    assert found["best"]["y"][:-1] == pytest.approx(list(best.reports.values()))
    assert found["pruned"]["trials"] == [2] * 4
    (cross,) = (trace for trace in curves_section(record).charts[0].data if trace["marker"].get("symbol") == "x")
    assert (cross["x"], cross["y"]) == ([2], [found["pruned"]["y"][2]])
    assert traces(history_section(record))["pruned (last report)"]["trials"] == [2]
    assert curves_section(record_of(Study(SQUARE))) is None


def test_each_rung_has_a_colour():
    study = Study(SQUARE, seed=0, budget=Budget("epochs", 1, 9), n_initial=3)
    study.optimize(lambda params, trial: params["x"] + 1 / trial.budget, 12, progress=False)
    record = record_of(study)
    found = traces(history_section(record))
    spent = {trial.budget for trial in record.trials}
    assert {f"{budget:g} epochs" for budget in spent} <= found.keys()
    assert len({found[f"{budget:g} epochs"]["marker"]["color"] for budget in spent}) == len(spent) > 1


def test_the_hypervolume_over_time_is_that_of_the_run():
    study = Study(SQUARE, seed=0, directions=["minimize", "maximize"])
    for _ in range(14):
        (trial,) = study.ask()
        study.tell(trial, [trial.params["x"] ** 2, trial.params["y"] - trial.params["x"]])
        _, volumes = hypervolumes(record_of(study))
    assert volumes[-1] == pytest.approx(hypervolume_so_far(study.observations)["hypervolume"])
    assert volumes == sorted(volumes)


def test_objectives_are_called_by_their_names():
    study = Study(SQUARE, directions={"loss": "minimize", "size <b>": "minimize"})
    study.add({"x": [0.0, 0.1, 0.2, 0.3], "y": [0.5] * 4}, [[1.0 * k, 5.0 - k] for k in range(4)])
    front, each = trade_off_sections(record_of(study))
    assert front.charts[0].layout["yaxis"]["title"]["text"] == "size &lt;b&gt; (minimize)"
    assert [chart.layout["yaxis"]["title"]["text"] for chart in each.charts] == ["loss", "size &lt;b&gt;"]
    assert [chart.data[-1]["y"] for chart in each.charts] == [[0, 1, 2, 3], [5, 4, 3, 2]]


def test_withdrawn_and_suspicious_trials_are_shown():
    study = Study(SQUARE, seed=0)
    study.optimize(lambda params: params["x"], 6, progress=False)
    study.withdraw(2, "wrong")
    study.annotate(4, {"suspicious": "far better than all others"})
    found = traces(history_section(record_of(study)))
    assert found["withdrawn"]["trials"] == [2]
    assert found["suspicious"]["trials"] == [4]


def test_withdrawn_trials_of_several_objectives_are_marked():
    study = Study(SQUARE, seed=0, directions=["minimize", "maximize"])
    study.optimize(lambda params: [params["x"], 1 + params["y"]], 4, progress=False)
    x, y = study.trials[1].values
    study.withdraw(1, "wrong")
    front, each = trade_off_sections(record_of(study))
    marked = [front.charts[0].data[-1], each.charts[0].data[-1], each.charts[1].data[-1]]
    assert [trace["name"] for trace in marked] == ["withdrawn"] * 3
    assert [trace["trials"] for trace in marked] == [[1]] * 3
    assert (marked[0]["x"], marked[0]["y"]) == ([x], [y])
    for trace, chart, value in zip(marked[1:], each.charts, (x, y), strict=True):
        low, high = chart.layout["yaxis"]["range"]
        assert trace["y"] == [min(max(value, low), high)]  # at the edge, if it lies beyond it
