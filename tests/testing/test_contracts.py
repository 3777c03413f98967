"""The shipped checks, over every export. That each check can fail is shown in `test_broken_toys.py`."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from cases import (
    ACQUISITIONS,
    CANDIDATES,
    CLASSIFIERS,
    CONTINUOUS_ONLY,
    LABELLINGS,
    ONLY_FOR,
    PARAMETERS,
    PROBLEMS,
    SEARCHES_ONLY,
    STRATEGIES,
)
from deepbore import Calibrated, ExecutorEvaluator, KernelPLS, ProcessEvaluator, SerialEvaluator, testing
from deepbore.labels import NonDominationLabels, ObjectiveLabels, PreferenceLabels, ThresholdLabels, ValueGradedLabels
from deepbore.testing import candidates, check_classifier, check_labelling, classifiers

SLOW = {"GPClassifier", "Calibrated"}

HEADS = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CLASSIFIERS]


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_classifier_learns_little_from_rows_of_little_weight(name):
    classifiers.check_weights(CLASSIFIERS[name]())


@pytest.mark.parametrize("name", LABELLINGS)
def test_labelling(name):
    testing.check_labelling(LABELLINGS[name])


SUITED = [(name, ONLY_FOR[name]) for name in ONLY_FOR]

ANY = [(name, head) for name in ACQUISITIONS for head in ("DeepEnsemble", "LaplaceGGN") if name not in ONLY_FOR]


@pytest.mark.parametrize(("name", "classifier"), [*ANY, *SUITED])
def test_acquisition(name, classifier):
    testing.check_acquisition(ACQUISITIONS[name](), CLASSIFIERS[classifier])


@pytest.mark.slow
@pytest.mark.parametrize("name", CANDIDATES)
def test_candidates(name):
    spaces = ("continuous",) if name in CONTINUOUS_ONLY else tuple(testing.TOY_SPACES)
    head = CLASSIFIERS[SEARCHES_ONLY.get(name, "DeepEnsemble")]
    assert candidates.spaces_for(CANDIDATES[name](), head) == spaces
    testing.check_candidates(CANDIDATES[name](), head)


@pytest.mark.slow
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategy(name):
    testing.check_strategy(STRATEGIES[name])


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter(name):
    testing.check_parameter(PARAMETERS[name])


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem(name):
    testing.check_problem(PROBLEMS[name]())


def test_serial_and_thread_evaluators():
    testing.check_evaluator(SerialEvaluator)
    with ThreadPoolExecutor(2) as threads:
        testing.check_evaluator(lambda objective: ExecutorEvaluator(objective, threads))


@pytest.mark.slow
def test_process_evaluator():
    testing.check_evaluator(lambda objective: ProcessEvaluator(objective, workers=1))


@pytest.mark.slow
def test_a_run_of_defaults_goes_on():
    testing.check_resume()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_run_goes_on_with_every_classifier(name):
    testing.check_resume(classifier=CLASSIFIERS[name], space=testing.TOY_SPACES["mixed"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, make in LABELLINGS.items() if make().objectives in (None, 1)])
def test_a_run_goes_on_with_every_labelling(name):
    testing.check_resume(labels=LABELLINGS[name], space=testing.TOY_SPACES["mixed"])


@pytest.mark.slow
@pytest.mark.parametrize("name", CANDIDATES)
def test_a_run_goes_on_with_every_search(name):
    space = testing.TOY_SPACES["continuous"]
    head = CLASSIFIERS[SEARCHES_ONLY.get(name, "DeepEnsemble")]
    testing.check_resume(candidates=CANDIDATES[name], classifier=head, space=space)


@pytest.mark.slow
def test_a_map_that_bends_passes_the_checks():
    check_classifier(lambda: Calibrated(KernelPLS()))


@pytest.mark.parametrize(
    "labels", [ValueGradedLabels, ThresholdLabels, NonDominationLabels, lambda: ObjectiveLabels(2)]
)
def test_labels_whose_constraints_have_grades_pass_the_checks(labels):
    check_labelling(labels, constraints=2)


class Turned(ValueGradedLabels):
    """Grades of constraints the wrong way round."""

    def __call__(self, observations):
        labels = super().__call__(observations)
        return labels if labels.constraints is None else replace(labels, constraints=1 - labels.constraints)


def test_grades_the_wrong_way_round_are_found():
    with pytest.raises(AssertionError, match="must be 1/2 or more where these are kept"):
        check_labelling(Turned, constraints=1)


def test_a_labelling_of_comparisons_is_told_that_it_is_none_of_values():
    with pytest.raises(AssertionError, match="grades comparisons"):
        check_labelling(PreferenceLabels)
