"""The shipped contracts, over every export."""

import pytest

from cases import ACQUISITIONS, CANDIDATES, CLASSIFIERS, CONTINUOUS_ONLY, LABELLINGS, ONLY_FOR
from deepbore import testing
from deepbore.testing import classifiers, contracts

SLOW = {"GPClassifier", "Calibrated"}
HEADS = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CLASSIFIERS]


@pytest.mark.parametrize("space", testing.TOY_SPACES)
@pytest.mark.parametrize("name", HEADS)
def test_classifier_scores_and_learns(name, space):
    classifiers.check_shapes(CLASSIFIERS[name](), testing.TOY_SPACES[space])
    classifiers.check_learning(CLASSIFIERS[name](), testing.TOY_SPACES[space])


@pytest.mark.parametrize(
    "check",
    [
        classifiers.check_same_seed,
        classifiers.check_state_dict,
        classifiers.check_degenerate_data,
        classifiers.check_wide_spaces,
    ],
)
@pytest.mark.parametrize("name", HEADS)
def test_classifier_is_reproducible_and_robust(name, check):
    check(CLASSIFIERS[name])


@pytest.mark.parametrize("name", [name for name, make in CLASSIFIERS.items() if make().differentiable])
def test_classifier_has_the_gradients_it_declares(name):
    classifiers.check_gradient(CLASSIFIERS[name]())


@pytest.mark.parametrize("name", LABELLINGS)
def test_labelling(name):
    testing.check_labelling(LABELLINGS[name])


ONLY = [(name, ONLY_FOR[name]) for name in ONLY_FOR]
ANY = [(name, head) for name in ACQUISITIONS for head in ("DeepEnsemble", "DeepPLS") if name not in ONLY_FOR]


@pytest.mark.parametrize(("name", "classifier"), [*ANY, *ONLY])
def test_acquisition(name, classifier):
    testing.check_acquisition(ACQUISITIONS[name](), CLASSIFIERS[classifier])


@pytest.mark.parametrize("name", CANDIDATES)
def test_candidates(name):
    spaces = ("continuous",) if name in CONTINUOUS_ONLY else ("continuous", "finite", "mixed")
    testing.check_candidates(CANDIDATES[name](), CLASSIFIERS["DeepEnsemble"], spaces)


@pytest.mark.parametrize("name", [name for name in CANDIDATES if name not in CONTINUOUS_ONLY])
def test_candidates_exhaust_a_finite_space(name):
    contracts.check_exhaustion(CANDIDATES[name](), CLASSIFIERS["DeepEnsemble"])
