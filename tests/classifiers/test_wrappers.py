"""Classifiers around others: at budgets, and on the box of a space."""

import math

import pytest
import torch

import deepbore
from deepbore import AtBudgets, KernelPLS, MLPClassifier, Real, Relaxed, RungLabels, SearchSpace, Study, Training
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations, ValueGradedLabels
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import LINE
from rungs import EPOCHS, run


def test_the_classifier_answers_for_the_highest_budget():
    observations = Observations(LINE, budget=EPOCHS)
    x = torch.linspace(0, 1, 21)
    for budget in EPOCHS.rungs:  # good is what is small at the lowest, and what is large at the highest
        slope = math.log(budget, 27)
        observations.add({"x": x.tolist()}, ((x - slope) ** 2).tolist(), budgets=budget)
    head = fit(AtBudgets(KernelPLS(), EPOCHS), LabelledObservations(observations, RungLabels(ValueGradedLabels())))
    expected = head.probability(LINE.encode([{"x": 0.0}, {"x": 1.0}]))
    assert expected[1] > 0.8
    assert expected[0] < 0.3


def test_the_classifier_knows_budgets_by_their_logarithm():
    class Recording(KernelPLS):
        def fit(self, batch):
            self.spent = batch.points[:, -1]
            return super().fit(batch)

    observations = Observations(LINE, budget=EPOCHS)
    observations.add({"x": [0.1, 0.3, 0.5, 0.7, 0.9]}, [3.0, 2.0, 1.0, 4.0, 5.0], budgets=[1, 3, 9, 27, math.nan])
    head = AtBudgets(Recording(), EPOCHS)
    fit(head, LabelledObservations(observations, RungLabels(ValueGradedLabels())), epochs=1)
    assert head.base.spent.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])


def test_parameters_may_be_called_budget():
    space = SearchSpace({"budget": Real(0, 1), "budget_": Real(0, 1)})
    study = Study(space, budget=EPOCHS, n_initial=3)
    run(study, 8, lambda params, trial: params["budget"] / trial.budget)
    assert study.classifier.base.space.names == ["budget", "budget_", "budget__"]


def test_a_relaxed_head_keeps_its_base_and_refuses_a_bound_one():
    base = MLPClassifier(training=Training(steps=5))
    head = fit(Relaxed(base), toy_data(TOY_SPACES["finite"]), epochs=1)
    assert (head.link, head.capabilities, head.base) == (base.link, base.capabilities, base)
    with pytest.raises(SettingError, match="the base learns another space, but it is bound already"):
        Relaxed(base)
    assert deepbore.Relaxed is Relaxed
