"""Labels of cheap fidelities: each rung by itself."""

import numpy as np
import pytest
import torch

from deepbore import Budget, Outcome, PreferenceLabels, RungLabels, Study, ValueGradedLabels
from deepbore.data.observations import Observations, Status
from deepbore.errors import SettingError
from deepbore.labels import ObjectiveLabels
from deepbore.labels.coreset import NEGLIGIBLE
from plane import LINE, SQUARE
from rungs import EPOCHS, run


@pytest.mark.slow
def test_labels_are_those_of_each_rung_by_itself():
    study = run(Study(LINE, budget=EPOCHS, seed=1), 40)
    study.tell(study.ask()[0], failed=True)
    study.ask()  # pending
    labels = RungLabels(ValueGradedLabels())(study.observations)
    budgets = study.observations.budgets
    for rung in budgets.unique():
        alone = Observations(LINE)
        for row in (budgets == rung).nonzero().squeeze(-1).tolist():
            (new,) = alone.reserve(study.observations.points[row : row + 1])
            trial = study.trials[row]
            if trial.status is not Status.PENDING:
                alone.tell(new, trial.value, failed=trial.status is Status.FAILED)
        here, n = len(alone), int(((budgets == 1) & (study.observations.status == Status.COMPLETE)).sum())
        beaten = max(
            0, n - alone.ledger.statistics.n_complete
        )  # those that stayed below, as bad as the worst of the rung
        alone.add({"x": np.linspace(0.5, 0.9, beaten)}, [float(alone.replicates.sorted_values[-1])] * beaten)
        expected = ValueGradedLabels()(alone)
        assert torch.equal(labels.z[budgets == rung], expected.z[:here])
        assert torch.equal(labels.weight[budgets == rung], expected.weight[:here])


def test_those_promoted_are_good_but_for_the_worst_of_each_rung():
    study = run(Study(LINE, budget=EPOCHS, n_initial=1000), 80)
    budgets, z = study.observations.budgets, RungLabels(ValueGradedLabels())(study.observations).z[:, 0]
    for rung in EPOCHS.rungs[1:]:
        assert z[budgets == rung].sort().values[1] >= 1 / 3  # the label of tau


def test_trials_without_a_budget_are_graded_among_themselves():
    study = Study(LINE, labels=RungLabels(ValueGradedLabels()), n_initial=4)
    values = [3.0, 0.1, 2.0, 0.3, 1.0, 0.2]
    for trial, value in zip(study.ask(6), values, strict=True):
        study.tell(trial, Outcome(value, budget=1) if value < 1 else value)
    study.ask()  # pending, and so without one
    labels = RungLabels(ValueGradedLabels())(study.observations)
    graded = labels.z[:6].view(3, 2)
    assert torch.equal(graded[:, 0].argsort(), torch.tensor([0, 1, 2]))
    assert torch.equal(graded[:, 1].argsort(), torch.tensor([1, 2, 0]))
    assert graded.max(0).values.tolist() == [1, 1]


def loss(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2


def test_the_first_trials_of_a_rung_teach_nothing_while_they_are_pending():
    study = Study(SQUARE, budget=Budget("epochs", 1, 9), n_initial=9, seed=0)
    for trial in study.ask(9):
        study.tell(trial, loss(trial.params))
    promoted = [trial for trial in study.ask(3) if trial.budget > 1]
    assert len(promoted) == 3
    labels = RungLabels(ValueGradedLabels())(study.observations)
    assert labels.weight[[trial.id for trial in promoted]].max() <= NEGLIGIBLE


@pytest.mark.parametrize("seed", range(3))
def test_proposals_go_where_the_promoted_ones_are_while_these_are_pending(seed):
    study = Study(SQUARE, budget=Budget("epochs", 1, 9), n_initial=9, seed=seed)
    told = study.ask(9)
    for trial in told:
        study.tell(trial, loss(trial.params))
    study.ask(3)
    proposed = [loss(trial.params) for trial in study.ask(3)]
    assert min(proposed) < sorted(loss(trial.params) for trial in told)[4], proposed


def line_points(*places):
    return torch.tensor(places, dtype=torch.float64)[:, None]


# regression: each of these was wrong once
def test_a_promoted_trial_alone_in_its_rung_does_not_move_the_best_label():
    observations = Observations(LINE, budget=Budget("epochs", 1, 3))
    rows = observations.reserve(line_points(0.1, 0.3, 0.5, 0.7))
    for row, (value, constraint) in zip(rows, [(0, 1), (1, -1), (2, -1), (3, -1)], strict=True):
        observations.tell(row, Outcome(value, constraints=[constraint]))
    labels = RungLabels(ValueGradedLabels())
    before = labels(observations)
    observations.reserve(observations.points[1:2], 3, resume_from=[1])
    after = labels(observations)
    assert float(after.best) == float(before.best) == float(before.z[1:].max())  # of a feasible row


def test_labels_of_each_rung_grade_what_their_base_grades():
    with pytest.raises(SettingError, match="preferences"):
        Study(LINE, labels=RungLabels(PreferenceLabels()))
    with pytest.raises(SettingError, match="grades a front"):
        RungLabels(ObjectiveLabels(1))
