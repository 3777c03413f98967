"""What docstrings and guides promise of what comes up rarely."""

from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer

from deepbore import (
    Budget,
    Calibrated,
    KernelPLS,
    Outcome,
    PreferenceLabels,
    Real,
    RungLabels,
    SearchSpace,
    Study,
    ValueGradedLabels,
)
from deepbore.cli.inspect import summary
from deepbore.cli.main import main
from deepbore.data.history import replay
from deepbore.data.journal import Journal
from deepbore.data.lines import written
from deepbore.data.observations import Observations
from deepbore.data.outcomes import Status
from deepbore.data.record import read_record
from deepbore.errors import JournalError, SettingError, TrialError, ValueTypeError
from deepbore.labels import ObjectiveLabels
from deepbore.labels.coreset import NEGLIGIBLE

LINE = SearchSpace({"x": Real(0, 1)})
EPOCHS = Budget("epochs", 1, 9)


def line_points(*places):
    return torch.tensor(places, dtype=torch.float64)[:, None]


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)


# --- labels ----------------------------------------------------------------------------------------------------------


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


def test_trials_compared_too_long_ago_are_unknown_and_not_bad():
    observations = Observations(LINE, "maximize", by_preference=True)
    observations.reserve(line_points(*np.linspace(0, 1, 8)))
    observations.prefer([(7, other) for other in range(7)])
    observations.prefer([(k % 6, (k + 1) % 6) for k in range(1000)])
    weight = PreferenceLabels()(observations).weight
    assert weight[6:].max() <= NEGLIGIBLE
    assert weight[:6].tolist() == [1] * 6


def test_labels_of_each_rung_grade_what_their_base_grades():
    with pytest.raises(SettingError, match="preferences"):
        Study(LINE, labels=RungLabels(PreferenceLabels()))
    with pytest.raises(SettingError, match="grades a front"):
        RungLabels(ObjectiveLabels(1))


@pytest.mark.slow
def test_folds_keep_this_run_s_rows_beside_those_of_earlier_tasks(monkeypatch):
    folds = {}
    learned = Calibrated._learn_folds

    def spy(self, batch, rows):
        of_this_run = self._fold(batch, rows)[batch.n_earlier :].tolist()
        for row, fold in enumerate(of_this_run):
            folds.setdefault(row, set()).add(fold)
        return learned(self, batch, rows)

    monkeypatch.setattr(Calibrated, "_learn_folds", spy)
    study = Study(LINE, classifier=Calibrated(KernelPLS()), n_initial=5, seed=0)
    x = np.random.default_rng(0).random(300)
    study.add({"x": x}, (x - 0.3) ** 2, task="old")
    go_on(study, 9)
    assert folds == {row: {row % 3} for row in range(8)}


# --- what is recommended, and best -----------------------------------------------------------------------------------


def test_a_recommendation_hears_of_comparisons_between_trials_that_were_compared_before():
    study = Study(LINE, seed=0, preferences=True, n_initial=4)
    trials = study.ask(4)
    for i, one in enumerate(trials):
        for other in trials[i + 1 :]:
            study.prefer(one, other)
    assert study.recommended.id == 0
    for _ in range(20):
        for other in trials[:3]:
            study.prefer(trials[3], other)
    assert study.recommended.id == study.best_trial.id == 3


@pytest.mark.parametrize("n_initial", [1, 20])
def test_with_a_budget_all_speak_of_the_same_trial(n_initial):
    study = Study(LINE, budget=EPOCHS, n_initial=n_initial)
    study.add({"x": [0.1, 0.2]}, [0.1, 0.5], budgets=[1, 9])
    assert study.best_trial.id == 1
    assert study.recommended.id == 1
    assert [trial.id for trial in study.pareto_front] == [1]


def test_without_a_feasible_trial_the_front_is_empty():
    study = Study(LINE)
    (trial,) = study.ask()
    study.tell(trial, 1.0, constraints=[1.0])
    assert study.pareto_front == []


def test_promoted_trials_count_once_in_the_design():
    study = Study(LINE, budget=EPOCHS, n_initial=6)
    go_on(study, 6)  # two of them again
    assert study.observations.n_distinct < 6
    assert study._state.n_missing > 0
    assert study.recommended == study.best_trial


def test_with_a_budget_the_least_violation_comes_first_while_nothing_is_feasible():
    found = []
    for budget in (None, EPOCHS):
        study = Study(LINE, budget=budget)
        for trial, violation in zip(study.ask(3), [3.0, 1.0, 2.0], strict=True):
            study.tell(trial, 0.0, constraints=[violation])
        found.append(study.observations.best_rows(3).tolist())
    assert found == [[1, 2, 0]] * 2


def test_of_equal_values_the_first_trial_is_the_best_whatever_the_order_of_telling(tmp_path):
    study = Study(LINE, journal=tmp_path / "run.jsonl")
    first, second = study.ask(2)
    study.tell(second, 1.0)
    study.tell(first, 1.0)
    assert study.best_trial.id == read_record(tmp_path / "run.jsonl").best.id == 0


# --- at the door -----------------------------------------------------------------------------------------------------


def test_an_outcome_is_complete_or_failed():
    with pytest.raises(ValueTypeError, match=r"Status\.COMPLETE or Status\.FAILED"):
        Outcome(1.0, status=Status.PENDING)


@pytest.mark.parametrize("odd", [{"noise": True}, {"budgets": 1j}])
def test_what_is_no_column_of_numbers_is_shown(odd):
    with pytest.raises(ValueTypeError, match=r"must be numbers, but got (True|1j)"):
        Study(LINE).add({"x": [0.1, 0.2]}, [1.0, 2.0], **odd)


def test_a_report_is_of_a_trial_of_this_study():
    study, other = Study(LINE, budget=EPOCHS, seed=0), Study(LINE, budget=EPOCHS, seed=5)
    (trial,), _ = other.ask(), study.ask()
    with pytest.raises(TrialError, match="told to the run that gave it"):
        study.report(trial, 1.0, step=1)


@pytest.mark.parametrize("precision", ["64-true", "bf16-true"])
def test_a_trainer_of_another_precision_is_refused_before_anything_is_evaluated(precision):
    study = Study(LINE)
    with pytest.raises(SettingError, match="full precision"):
        study.optimize(lambda p: p["x"], 3, trainer=Trainer(accelerator="cpu", max_epochs=-1, precision=precision))
    assert not study.trials


RUN = {"event": "created", "version": 2, "id": "a", "space": LINE.to_dict(), "directions": ["minimize"], "seed": 0}
ASKED = [{"event": "asked", "trial": row, "params": {"x": 0.1 + row / 10}} for row in range(2)]


@pytest.mark.parametrize(
    "events",
    [
        [
            RUN,
            *ASKED,
            {"event": "told", "trial": 0, "value": 1.0, "constraints": [1.0, 2.0]},
            {"event": "told", "trial": 1, "value": 1.0, "constraints": [1.0]},
        ],
        [{**RUN, "budget": EPOCHS.to_dict()}, {**ASKED[0], "budget": 5}],
    ],
    ids=["constraints", "rung"],
)
def test_a_record_says_what_a_replay_says_of_a_contradictory_journal(tmp_path, events):
    path, crc, lines = Path(tmp_path / "run.jsonl"), 0, b""
    for event in events:
        line, crc = written(event, 2, crc)
        lines += line
    path.write_bytes(lines)
    said = []
    for look in (read_record, lambda path: replay(Journal(path))):
        with pytest.raises(JournalError) as error:
            look(path)
        said.append(str(error.value))
    assert said[0] == said[1]


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_a_page_is_written_whatever_stands_in_a_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = Study(LINE, journal="run.jsonl")
    for trial, reason in zip(study.ask(2), [None, "can't read a\udcff.png"], strict=True):  # no name in UTF-8
        study.tell(trial, 1.0 if reason is None else Outcome.failure(reason))
    study.close()
    assert main(["report", "run.jsonl", "--quick"]) == 0
    assert "can't read a?.png" in (tmp_path / "run.html").read_text().replace("&#x27;", "'").replace("&#39;", "'")


def test_why_there_is_no_best_value_is_told_as_it_is():
    several = Study(LINE, directions=["minimize", "minimize"])
    (trial,) = several.ask()
    several.tell(trial, [1.0, 2.0], constraints=[1.0])
    assert summary(several.observations) == "no feasible value yet (1 trials)"
    earlier = Study(LINE)
    earlier.add({"x": [0.1, 0.2]}, [1.0, 2.0], task="old")
    assert summary(earlier.observations) == "no value yet (2 trials)"
