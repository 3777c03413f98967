"""Distributions that are known, and a head that only averages."""

import numpy as np
import torch
from scipy import stats

from deepbore import Categorical, KernelPLS, Real, SearchSpace
from deepbore.data.observations import Observations
from deepbore.labels import LabelledObservations
from deepbore.labels.grade import graded_by_value
from deepbore.testing import fit


def told(values):
    """Observations of one parameter without order: {choice: its values, one an evaluation}.

    Evaluations of one configuration are averaged before they are labelled. So each has a configuration of its own, by
    another parameter that differs by nothing that a kernel could see.
    """
    observations = Observations(SearchSpace({"x": Categorical([*values, "another"]), "evaluation": Real(0, 1e9)}))
    for choice, outcomes in values.items():
        observations.add({"x": [choice] * len(outcomes), "evaluation": [*range(len(outcomes))]}, list(outcomes))
    return observations


def averages(values, labels):
    """What least squares learns of each choice where no choice says anything of another: {choice: fitted score}."""
    classifier, points = learned(values, labels)
    return dict(zip(values, classifier.posterior(points).mean.tolist(), strict=True))


def learned(values, labels):
    """A `KernelPLS` that does not smooth, and one point for each choice."""
    observations = told(values)
    head = KernelPLS("rbf", length_scale=0.1, regularisation=1e-5, rows=10_000)
    classifier = fit(head, LabelledObservations(observations, labels), epochs=1)
    first = np.cumsum([0, *map(len, values.values())])[:-1]
    return classifier, observations.points[torch.from_numpy(first)]


def expected_improvement(mean, std, tau):
    """E[max(tau - Y, 0)] of a Gaussian (BORE eq. 3)."""
    u = (tau - mean) / std
    return std * (u * stats.norm.cdf(u) + stats.norm.pdf(u))


def grades(values, best, tau, tail=0.0):
    return graded_by_value(torch.as_tensor(np.array(values, dtype=float)), best, tau, tail).numpy()
