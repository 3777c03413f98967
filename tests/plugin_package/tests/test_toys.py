"""The parts keep their contracts, and runs are made of them."""

import pytest
from deepbore_toys.angle import Angle
from deepbore_toys.improvement import ProbabilityOfImprovement
from deepbore_toys.jobs import JobEvaluator
from deepbore_toys.objective import trade_off
from deepbore_toys.pareto import ParetoLabels
from deepbore_toys.random_share import RandomShare
from deepbore_toys.smoother import KernelSmoother
from deepbore_toys.success import BySuccess
from deepbore_toys.trust_region import TrustRegion

import deepbore
from deepbore import testing
from deepbore.strategies import ModelStrategy, Turns

SPACE = deepbore.SearchSpace({"x": deepbore.Real(0, 1), "turn": Angle()})


def test_the_classifier_keeps_its_contract():
    testing.check_classifier(KernelSmoother)


def test_the_labelling_keeps_its_contract():
    testing.check_labelling(ParetoLabels)
    testing.check_labelling(ParetoLabels, constraints=1)


def test_the_acquisition_keeps_its_contract():
    testing.check_acquisition(ProbabilityOfImprovement(), KernelSmoother)


def test_the_evaluator_keeps_its_contract():
    testing.check_evaluator(JobEvaluator)


def test_the_parameter_keeps_its_contract():
    testing.check_parameter(Angle())


def test_runs_of_them_go_on_where_they_were_killed():
    testing.check_resume(classifier=KernelSmoother, acquisition=ProbabilityOfImprovement)
    testing.check_resume(classifier=KernelSmoother, labels=ParetoLabels, objectives=2)


def by_success():
    forest = ModelStrategy(deepbore.RandomForest(trees=10))
    return BySuccess([ModelStrategy(deepbore.KernelPLS()), forest])


@pytest.mark.parametrize(
    "make",
    [
        TrustRegion,
        lambda: RandomShare(ModelStrategy(deepbore.KernelPLS()), share=0.5),
        by_success,
        lambda: Turns([ModelStrategy(deepbore.KernelPLS()), RandomShare(TrustRegion(samples=100))]),
    ],
    ids=["trust region", "random share", "by success", "in turns"],
)
def test_the_strategies_keep_their_contract(make):
    testing.check_strategy(make)


def test_a_trust_region_ends_near_the_best_point():
    space = deepbore.SearchSpace({"x": deepbore.Real(-1, 1), "y": deepbore.Real(-1, 1)})
    objective = lambda params: (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2  # noqa: E731
    result = deepbore.minimize(objective, space, 40, seed=0, strategy=TrustRegion(), progress=False)
    assert result.best_value < 1e-3


def test_a_run_of_them_all_finds_a_front():
    study = deepbore.Study(
        SPACE,
        directions=["minimize", "maximize"],
        labels=ParetoLabels(),
        classifier=KernelSmoother(),
        acquisition=ProbabilityOfImprovement(),
        seed=0,
    )
    study.optimize(JobEvaluator(trade_off), 16)
    assert len(study.trials) == 16
    assert {trial.status.name for trial in study.trials} == {"COMPLETE"}
    assert all(trial.values[1] == pytest.approx(1 - (1 - trial.params["x"]) ** 2) for trial in study.trials)
    later = [trial.constraints[0] <= 0 for trial in study.trials[10:]]
    assert sum(later) >= 4  # it has learned what is feasible


def test_two_objectives_cannot_be_graded_by_one_value():
    with pytest.raises(deepbore.errors.SettingError, match="2 direction"):
        deepbore.Study(SPACE, directions=["minimize", "maximize"], labels=deepbore.ThresholdLabels())
