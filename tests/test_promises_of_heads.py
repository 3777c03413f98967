"""Labels, heads and searches at their edges: each did something else once."""

import copy
import pickle

import pytest
import torch

from deepbore import KernelPLS, Study
from deepbore.candidates import SVGDCandidates
from deepbore.candidates.papers.svgd import Adadelta
from deepbore.classifiers import Calibrated, FourierLogistic, GPClassifier, MCDropout
from deepbore.integrations.botorch import BoTorchClassifier
from deepbore.labels import EmphasiseChanges, ImprovementLabels, ThresholdLabels, ValueGradedLabels
from test_ensembles import dropout_network
from test_found_by_reading import SQUARE, told
from test_noise import told as observed


def line(*values, noise=None):
    """Observations with these values, at points of their own."""
    return observed(torch.linspace(0.1, 0.9, len(values)).tolist(), list(values), noise)


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen_pending", [False, True])
def test_what_was_told_weighs_more_whether_it_is_good_or_bad_and_was_seen_pending_or_not(seen_pending):
    observations, labelling = line(1.0, 2.0, 3.0, 4.0), EmphasiseChanges(ThresholdLabels(0.5), boost=2)
    labelling(observations)
    rows = observations.reserve(torch.tensor([[0.5], [0.6], [0.7]], dtype=torch.float64))
    if seen_pending:
        labelling(observations)
    observations.tell(rows[0], 10.0)
    observations.tell(rows[1], 0.5)
    assert labelling(observations).weight[rows[:2]].tolist() == [2, 2]
    assert labelling(observations).weight[rows[:2]].tolist() == [1, 1]
    assert labelling(observations).weight[rows[2]] < 0.1


def test_a_label_of_improvement_that_falls_to_nothing_has_changed():
    observations, labelling = line(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), EmphasiseChanges(ImprovementLabels(0.5), boost=2)
    before = labelling(observations).z
    observations.add({"x": [0.01, 0.02]}, [-1.0, -2.0])
    after, plain = labelling(observations), ImprovementLabels(0.5)(observations)
    assert 0 < before[1] < 0.5
    assert after.z[1] == 0
    assert (after.weight / plain.weight)[[1, 4, 5, 6, 7]].tolist() == [2, 1, 1, 2, 2]


@pytest.mark.parametrize("labelling", [ImprovementLabels(0.5), ValueGradedLabels(0.5)])
def test_a_value_that_is_mostly_noise_sets_no_scale_of_labels(labelling):
    values = [1.0, 2, 3, 4, 5, 6, 7, 8]
    alone, beside = (labelling(line(*values, *more, noise=[0.1] * 8 + [10.0] * len(more))) for more in ((), (-1000.0,)))
    assert torch.allclose(beside.z[:8], alone.z)
    assert beside.best == pytest.approx(alone.best)


# --- heads -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("head", [GPClassifier(), Calibrated(GPClassifier(), min_per_class=2)])
def test_a_study_with_a_gp_is_copied_after_a_prediction(head):
    study = told(Study(SQUARE, classifier=head, seed=0, n_initial=6), 9)
    study.classifier.probability(SQUARE.sobol(3, seed=0))
    assert len(copy.deepcopy(study).trials) == 9


def test_a_study_with_dropout_of_ones_own_goes_through_pickle():
    study = told(Study(SQUARE, classifier=MCDropout(network=dropout_network, samples=4), seed=0, n_initial=4), 5)
    assert pickle.loads(pickle.dumps(study)).ask()[0].params == study.ask()[0].params


@pytest.mark.slow
@pytest.mark.parametrize("head", [FourierLogistic, GPClassifier, KernelPLS])
def test_scores_at_points_in_single_precision_can_be_drawn(head):
    study = told(Study(SQUARE, classifier=head(), seed=0, n_initial=6), 15)
    model = BoTorchClassifier(study.fit())
    points = torch.rand(300, 2, generator=torch.Generator().manual_seed(0))
    drawn = model.posterior(points).rsample(torch.Size([64]))
    assert drawn.dtype == torch.float32
    assert drawn.isfinite().all()


# --- searches --------------------------------------------------------------------------------------------------------


def test_a_first_step_of_adadelta_is_as_long_as_it_says():
    size = SVGDCandidates().step_size
    step = Adadelta(size)(torch.zeros(1, 3), torch.tensor([[1.0, -5.0, 100.0]]))
    assert torch.allclose(step.abs() / size, torch.full((1, 3), 10**0.5), rtol=0.01)
