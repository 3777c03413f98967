"""Reliability diagrams against scikit-learn and torchmetrics."""

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve
from torchmetrics.functional.classification import binary_calibration_error

from deepbore import ThresholdLabels, plots as pictures
from deepbore.errors import SettingError
from deepbore.plots import records
from deepbore.plots.calibration_chart import Reliability
from drawn_studies import CUBE, told, trained


@pytest.fixture(scope="module")
def study():
    return trained()


def test_reliability_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    pi = rng.random(500) ** 3
    z = (rng.random(500) < pi).astype(float)
    found = Reliability.of(pi, z, bins=7)
    theirs_z, theirs_pi = calibration_curve(z, pi, n_bins=7)
    assert found.counts.sum() == 500
    assert np.allclose(found.mean_pi[found.counts > 0], theirs_pi)
    assert np.allclose(found.mean_z[found.counts > 0], theirs_z)


def test_the_calibration_error_agrees_with_torchmetrics():
    study = told(CUBE, np.random.default_rng(0).random(60).tolist(), pending=5, labels=ThresholdLabels(0.4))
    study.fit(epochs=2)
    (axes,) = pictures.calibration(study).axes
    means = records.calibration(study).layers[-1]
    z = torch.tensor([trial.value for trial in study.trials[:60]])
    z = (z <= z.sort().values[23]).long()  # the 24 best of 60
    expected = float(
        binary_calibration_error(study.classifier.probability(study.observations.points[:60]), z, n_bins=10)
    )
    assert f"error {expected:.3f}" in axes.get_legend().get_texts()[1].get_text()
    assert sum(int(words.split()[0]) for words in means.said) == 60
    assert (means.arms[0] <= means.y).all()


def test_bad_bins_are_refused(study):
    with pytest.raises(SettingError, match="bins=0"):
        pictures.calibration(study, bins=0)
