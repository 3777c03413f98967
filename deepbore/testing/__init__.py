"""Checks of the contracts that a part must keep, and toys to run them on; shipped, so that a plug-in can test itself.

Each raises AssertionError with the rule that is broken and the values that broke it.

from deepbore.testing import check_classifier
check_classifier(lambda: MyClassifier())
"""

from deepbore.testing.acquisitions import check_acquisition
from deepbore.testing.candidates import check_candidates
from deepbore.testing.classifiers import check_classifier
from deepbore.testing.evaluators import check_evaluator
from deepbore.testing.labels import check_labelling
from deepbore.testing.parameters import check_parameter
from deepbore.testing.posteriors import check_posterior
from deepbore.testing.problems import check_problem
from deepbore.testing.resuming import check_resume
from deepbore.testing.strategies import check_strategy
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
