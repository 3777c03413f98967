"""What studies, runs and spaces promise: each of these was broken once."""

import ast
import logging
import math
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer

from deepbore import (
    Budget,
    ExecutorEvaluator,
    GreedyBatch,
    Integer,
    LocalSearch,
    Outcome,
    PreferenceLabels,
    Real,
    SearchSpace,
    Study,
    TargetReached,
    minimize,
)
from deepbore.errors import JournalError
from deepbore.loop import lightning
from deepbore.testing import TOY_SPACES
from trainers import QUIET

LINE = SearchSpace({"x": Real(0, 1)})


# --- the caller's own modes ------------------------------------------------------------------------------------------


@pytest.fixture
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def precise(params):
    """Values that are all the same in single precision."""
    return float((torch.tensor(params["x"]) - 0.3).square() * 1e-9 + 1.0)


def test_an_objective_is_evaluated_in_the_default_dtype_of_the_caller(double):
    asked, run = Study(LINE, seed=0), Study(LINE, seed=0)
    for _ in range(12):
        (trial,) = asked.ask()
        asked.tell(trial, precise(trial.params))
    run.optimize(precise, 12)
    assert [trial.value for trial in run.trials] == [trial.value for trial in asked.trials]
    assert torch.get_default_dtype() == torch.float64


def modes(*_):
    device = torch.empty(0).device.type
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"), device


@pytest.mark.parametrize(
    "mode",
    [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16), lambda: torch.device("meta")],
)
def test_objective_and_callbacks_see_the_modes_of_the_caller(mode):
    seen = []

    def objective(params):
        seen.append(modes())
        return params["x"]

    with mode():
        own = modes()
        Study(LINE, seed=0).optimize(objective, 12, callbacks=[lambda *_: seen.append(modes())])
        assert modes() == own
    assert set(seen) == {own}


def test_two_runs_in_two_threads_leave_the_default_dtype_as_it_was(double):
    gate = threading.Event()
    first = threading.Thread(target=lambda: Study(LINE).optimize(lambda _: float(gate.wait(5)), 1))

    def second(params):
        gate.set()
        first.join()  # which has begun before, and ends before
        return params["x"]

    first.start()
    Study(LINE).optimize(second, 1)
    assert torch.get_default_dtype() == torch.float64


def test_what_an_objective_says_of_its_own_training_is_heard(caplog, monkeypatch):
    own = logging.getLogger("lightning.pytorch")
    monkeypatch.setattr(own, "propagate", True)  # which hangs on who had handlers when it was imported

    def objective(params):
        own.warning("of an objective")
        with warnings.catch_warnings(record=True) as caught:
            warnings.warn_explicit("mine", UserWarning, "trainer.py", 1, module="lightning.pytorch.trainer")
        return float(len(caught))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        study = Study(LINE, seed=0)
        study.optimize(objective, 1, callbacks=[lambda *_: own.warning("of a callback")])
    assert study.trials[0].value == 1
    assert [record.message for record in caplog.records] == ["of an objective", "of a callback"]


def test_what_an_objective_warns_of_is_said_once():
    def objective(params):
        warnings.warn("the same each time", UserWarning, stacklevel=1)
        return params["x"]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        Study(LINE, seed=0).optimize(objective, 12)
    assert len([each for each in caught if each.category is UserWarning]) == 1


# --- budgets ---------------------------------------------------------------------------------------------------------


def test_a_step_is_at_its_rung_however_the_rung_is_rounded():
    study = Study(LINE, budget=Budget("share", 0.1, 0.9), n_initial=3, seed=0)
    for trial in study.ask(3):
        for step in (0.1, 0.3, 0.9):
            if not study.report(trial, 1 - step - trial.id / 100, step=step):
                break
    told = {trial.budget: trial.value for trial in study.trials if trial.params == study.trials[2].params}
    assert list(told.values()) == pytest.approx([0.88, 0.68])


def test_an_outcome_may_say_its_budget_in_few_digits():
    study = Study(LINE, budget=Budget("share", 0.1, 0.9), n_initial=3, seed=0)
    study.optimize(lambda params, trial: Outcome(params["x"], budget=round(trial.budget, 6)), 12)
    assert not study.observations.n_failed
    assert {trial.budget for trial in study.trials} <= set(study.observations.budget.rungs)


# --- journals --------------------------------------------------------------------------------------------------------


def test_parameters_may_be_called_as_the_lists_of_a_declaration(tmp_path):
    space = SearchSpace(
        {"constraints": Integer(1, 9), "fixed": Integer(1, 9), "b": Integer(1, 9)},
        constraints=["constraints < b"],
        fixed={"b": 7},
    )
    assert SearchSpace.from_dict(space.to_dict()) == space
    study = Study(space, seed=0, journal=tmp_path / "run.jsonl")
    study.optimize(lambda params: params["constraints"], 5)
    study.close()
    assert Study.load(tmp_path / "run.jsonl").space == space
    assert Study.load(tmp_path / "run.jsonl", space=space).best_trial == study.best_trial


def told(path, n=12):
    study = Study(LINE, seed=0, journal=path)
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)
    return study


@pytest.mark.slow
def test_a_first_ask_that_is_interrupted_leaves_queue_and_snapshot_to_the_next(tmp_path, monkeypatch):
    for name in ("one", "other"):
        study = told(tmp_path / name)
        study.enqueue({"x": 0.123})
        study.close()
    one, other = (Study.load(tmp_path / name) for name in ("one", "other"))
    with monkeypatch.context() as patch:
        patch.setattr(torch, "load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.ask()
    proposals = [[study.ask()[0].params for _ in range(3)] for study in (one, other)]
    assert proposals[0] == proposals[1]
    assert proposals[0][0] == {"x": 0.123}


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_a_snapshot_that_can_not_be_read_is_said(tmp_path, caplog):
    told(tmp_path / "run").close()
    (tmp_path / "run.ckpt").unlink()
    (tmp_path / "run.ckpt").mkdir()
    with pytest.raises(JournalError, match="can't be read"):  # nor written
        Study.load(tmp_path / "run").ask()
    assert "learns anew" in caplog.text


def test_numbers_of_numpy_are_settings_that_a_journal_keeps(tmp_path):
    settings = {"budget": Budget("epochs", np.int64(1), np.int64(81)), "journal": tmp_path / "run"}
    study = Study(LINE, candidates=GreedyBatch(LocalSearch(samples=np.int64(50), focus=np.float32(0.5))), **settings)
    study.ask()
    study.close()
    again = Study.load(tmp_path / "run")
    assert again.recipe.candidates.base.samples == 50
    assert again.observations.budget == Budget("epochs", 1, 81)


def test_a_study_of_preferences_keeps_its_labels_with_another_gamma(tmp_path):
    study = Study(LINE, n_initial=2, preferences=True, journal=tmp_path / "run")
    study.prefer(*study.ask(2))
    study.close()
    assert isinstance(Study.load(tmp_path / "run", gamma=0.3).labels, PreferenceLabels)


@pytest.mark.slow
def test_a_resumed_run_logs_the_brier_score_of_one_without_interruption(tmp_path):
    def trainer():
        return Trainer(accelerator="cpu", **QUIET)

    def objective(params):
        return (params["x"] - 0.3) ** 2

    scores = {}
    for name, parts in (("whole", [14]), ("parts", [13, 1])):
        for n in parts:
            study = Study(LINE, seed=0, journal=tmp_path / name, if_exists="load")
            own = trainer()
            study.optimize(objective, n, trainer=own)
            scores[name] = own.callback_metrics["brier_score"]
            study.close()
    assert scores["parts"] == scores["whole"]


def test_what_several_objectives_have_written_is_read_beside_a_parameter_called_value(tmp_path):
    space = SearchSpace({"value": Real(0, 1), "y": Real(0, 1)})
    study, again = (Study(space, directions=["minimize"] * 2, seed=0) for _ in range(2))
    for trial in study.ask(3):
        study.tell(trial, [1, 2])
    study.to_frame().to_csv(tmp_path / "told.csv", index=False)
    again.add_csv(tmp_path / "told.csv")
    assert [trial.values for trial in again.trials] == [(1, 2)] * 3


# --- how runs end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end", [{"timeout": 0.2}, {"callbacks": [lambda study, _: study.stop()]}, {"stop_when": TargetReached(2.0)}]
)
def test_nothing_begins_after_a_parallel_run_is_over(end):
    began = []

    def objective(params):
        began.append(time.monotonic())
        time.sleep(0.3)
        return params["x"]

    with ThreadPoolExecutor(1) as pool:
        Study(LINE, seed=0).optimize(ExecutorEvaluator(objective, pool), 10, batch_size=5, **end)
    assert len(began) == 1


def test_an_interrupt_that_lightning_stumbles_over_is_an_interrupt():
    def stumbling():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("Please call iter(combined_loader) first.")  # noqa: B904  # as Lightning does

    with pytest.raises(KeyboardInterrupt), lightning._interruptible():
        stumbling()
    with pytest.raises(RuntimeError, match="mine"), lightning._interruptible():
        raise RuntimeError("mine")


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_an_expression_knows_letters_that_python_reads_as_others():
    micro = "\N{MICRO SIGN}"
    assert ast.parse(micro).body[0].value.id != micro
    space = SearchSpace({micro: Integer(1, 9), "b": Integer(1, 9)}, constraints=[f"{micro} < b"])
    assert all(params[micro] < params["b"] for params in space.decode(space.sobol(50, seed=0)))


def test_toy_spaces_come_back_from_their_declaration():
    for space in TOY_SPACES.values():
        assert SearchSpace.from_dict(space.to_dict()) == space


def test_minimize_runs_in_the_default_dtype_of_the_caller(double):
    assert math.isclose(minimize(precise, LINE, 12, seed=0).best_params["x"], 0.3, abs_tol=0.05)
