"""Evaluations shared among ranks, whose outcomes all ranks know in order."""

import time

import pytest
from lightning.pytorch import Trainer

from deepbore.compute.distributed import Ranks
from deepbore.data.observations import Observations, Trial
from deepbore.evaluators import SerialEvaluator
from deepbore.evaluators.ranks import SharedEvaluator
from deepbore.loop import LoopController, Recipe, RunState
from deepbore.loop.quiet import quiet
from deepbore.loop.runner import Run
from plane import PLANE
from thread_ranks import on_ranks


@pytest.mark.parametrize("slow", [0, 1])
def test_ranks_share_a_batch_and_all_know_all_outcomes_in_order(slow):
    called = [[], []]

    def task(ranks):
        def objective(params):
            time.sleep(0.02 if ranks.rank == slow else 0)
            called[ranks.rank].append(params["k"])
            return params["k"] / (params["k"] != 3)

        evaluator = SharedEvaluator(SerialEvaluator(objective), ranks)
        assert evaluator.free == evaluator.workers == 2
        for k in range(5):
            evaluator.submit(Trial(k, {"k": k}))
        assert (evaluator.outstanding, evaluator.free) == (5, -3)
        rounds = [evaluator.collect() for _ in range(2)]
        assert (evaluator.outstanding, evaluator.free) == (1, 0)
        rounds.append(evaluator.collect())
        assert (evaluator.outstanding, evaluator.free) == (0, 2)
        return [
            [(trial.id, None if outcome.has_failed else outcome.values[0]) for trial, outcome in each]
            for each in rounds
        ]

    one, other = on_ranks(task)
    assert one == other == [[(0, 0.0), (1, 1.0)], [(2, 2.0), (3, None)], [(4, 4.0)]]
    assert called == [[0, 2, 4], [1, 3]]


def test_ranks_give_back_what_has_not_begun():
    def task(ranks):
        evaluator = SharedEvaluator(SerialEvaluator(lambda params: params["k"]), ranks)
        for k in range(5):
            evaluator.submit(Trial(k, {"k": k}))
        done = [trial.id for trial, _ in evaluator.collect()]
        withdrawn = [trial.id for trial in evaluator.withdraw()]
        evaluator.submit(Trial(7, {"k": 7}))
        return done, withdrawn, [trial.id for trial, _ in evaluator.collect()], evaluator.outstanding

    assert on_ranks(task) == [([0, 1], [2, 3, 4], [7], 0)] * 2


def test_an_evaluator_is_shared_once_however_often_a_run_is_set_up(monkeypatch):
    evaluator = SerialEvaluator(lambda params: params["x"])
    controller = LoopController(Run(RunState(Observations(PLANE), Recipe.resolve(PLANE)), evaluator, n_trials=5))
    monkeypatch.setattr(Ranks, "found", classmethod(lambda cls: Ranks(0, 2, None)))
    with quiet():
        trainer = Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    monkeypatch.setattr(Trainer, "world_size", 2)
    for _ in range(2):
        controller.setup(trainer, controller.state.classifier, "fit")
    assert controller.runner.evaluator.own.own is evaluator
