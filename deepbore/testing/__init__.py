"""Checks of the contracts of all parts, and toys to run them on; shipped for the tests of your own parts.

Each raises AssertionError with the violated rule and the values that violate it.

from deepbore.testing import check_classifier
check_classifier(lambda: MyClassifier())
"""

from deepbore.testing.acquisition import check_acquisition
from deepbore.testing.candidates import check_candidates
from deepbore.testing.classifiers import check_classifier, check_posterior
from deepbore.testing.evaluators import check_evaluator
from deepbore.testing.labels import check_labelling
from deepbore.testing.problems import check_problem
from deepbore.testing.space import check_parameter
from deepbore.testing.strategies import check_strategy
from deepbore.testing.study import check_resume
from deepbore.testing.toys import TOY_SPACES, fit, toy_data, toy_objective, toy_outcomes

__all__ = [
    "TOY_SPACES",
    "check_acquisition",
    "check_candidates",
    "check_classifier",
    "check_evaluator",
    "check_labelling",
    "check_parameter",
    "check_posterior",
    "check_problem",
    "check_resume",
    "check_strategy",
    "fit",
    "toy_data",
    "toy_objective",
    "toy_outcomes",
]
