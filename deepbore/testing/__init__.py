"""Contracts that a plug-in must keep, and toys to test them on; shipped, so that a plug-in can test itself.

from deepbore.testing import check_classifier
check_classifier(lambda: MyClassifier())
"""

from deepbore.testing.classifiers import check_classifier
from deepbore.testing.contracts import check_acquisition, check_candidates, check_labelling
from deepbore.testing.posteriors import check_posterior
from deepbore.testing.toys import TOY_SPACES, fit, toy_data, toy_objective

__all__ = [
    "TOY_SPACES",
    "check_acquisition",
    "check_candidates",
    "check_classifier",
    "check_labelling",
    "check_posterior",
    "fit",
    "toy_data",
    "toy_objective",
]
