"""What the forecasts of earlier tasks are used for: where a design looks, and how much a task weighs."""

import torch

from deepbore import Study
from test_earlier_tasks import PLANE, bowl, earlier, new, own, table


def elsewhere(params):
    """A bowl whose best point is none of the other one's."""
    return (params["x"] + 0.7) ** 2 + (params["y"] - 0.6) ** 2 + (params["c"] != "a")


def test_the_design_begins_with_the_best_of_all_tasks_together_and_then_of_each_in_turn():
    study = Study(PLANE, seed=0)
    study.add(*table(), task="one")
    study.add(*table(seed=2, of=elsewhere), task="other")
    asked = PLANE.encode([trial.params for trial in study.ask(6)])[::2]
    with torch.no_grad():
        chosen = earlier(study).forecasts(asked)
        others = earlier(study).forecasts(torch.cat([study.observations.points, PLANE.sobol(1000, seed=0)]))
    assert float(chosen[0].mean()) >= others.mean(-1).max() - 1e-3
    assert float(chosen[1, 0]) >= others[:, 0].max() - 1e-3
    assert float(chosen[2, 1]) >= others[:, 1].max() - 1e-3
    assert chosen[1, 1] < chosen[0].mean() > chosen[2, 0]


def test_what_a_task_weighs_does_not_hang_on_pending_trials():
    study = new("old")
    study.add(*table(12, seed=9))
    weights = [earlier(study).weights(study._state.data.labelled())]
    trials = study.ask(4)
    weights.append(earlier(study).weights(study._state.data.labelled()))
    assert torch.equal(*weights)
    assert float(weights[0]) > 0.1
    for trial in trials:
        study.tell(trial, -bowl(trial.params))
    assert float(earlier(study).weights(study._state.data.labelled())) < float(weights[0])
    assert len(own(study)) == 16
