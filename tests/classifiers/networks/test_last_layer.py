"""Bayesian last layers against linear regression at the evidence's maximum."""

import math

import numpy as np
import pytest
import torch

from deepbore.classifiers.networks.last_layer import fit_last_layer


def evidence_by_hand(phi, z, alpha, beta):
    n = len(z)
    covariance = np.eye(n) / beta + phi @ phi.T / alpha
    _sign, logdet = np.linalg.slogdet(covariance)
    return -0.5 * (n * math.log(2 * math.pi) + logdet + z @ np.linalg.solve(covariance, z))


def test_the_last_layer_is_bayesian_linear_regression_at_the_evidences_maximum():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(40, 5))
    z = phi @ rng.normal(size=5) + 0.3 * rng.normal(size=40)
    layer = fit_last_layer(torch.tensor(phi)[None], torch.tensor(z), torch.ones(40), rounds=200)
    beta = float(layer.noise[0]) ** -2
    covariance = (layer.root[0] @ layer.root[0].T).numpy()
    precision = np.linalg.inv(covariance)
    alpha = precision[0, 0] - beta * (phi.T @ phi)[0, 0]
    assert np.allclose(precision, alpha * np.eye(5) + beta * phi.T @ phi)
    assert np.allclose(layer.mean[0], beta * covariance @ phi.T @ z)
    best = evidence_by_hand(phi, z, alpha, beta)
    assert float(layer.evidence[0]) == pytest.approx(best)
    for factor in (0.8, 1.25):
        assert evidence_by_hand(phi, z, alpha * factor, beta) < best
        assert evidence_by_hand(phi, z, alpha, beta * factor) < best
