"""The log-normal prior of a kernel's length scales, amplitude and lambda."""

import math

import numpy as np

from deepbore.space import SearchSpace

# mean and standard deviation of the logarithm
LENGTH_SCALE, LEVEL_LENGTH_SCALE, AMPLITUDE = (-0.8, 1.0), (-0.1, 1.0), (0.0, 2.0)
ALIKE = 0.75  # prior correlation of the logarithms of any two length scales in wide spaces
LAMBDA, LEVEL_LAMBDA = (-7.0, 2.0), (-6.0, 3.0)  # between levels a smooth kernel leaves more unexplained


def prior_of(
    space: SearchSpace, length_scale: tuple[float, float] = LENGTH_SCALE, regularisation: tuple[float, float] = LAMBDA
) -> np.ndarray:
    """Mean and standard deviation of the logarithms of d length scales, the amplitude and lambda ((d + 2) x 2).

    Args:
        space: of d parameters.
        length_scale: of real parameters.
        regularisation: where there are real parameters.
    """
    d = len(space)
    scales = [length_scale if p.is_continuous else LEVEL_LENGTH_SCALE for p in space.parameters.values()]
    prior = np.array([*scales, AMPLITUDE, regularisation if space.continuous_columns else LEVEL_LAMBDA])
    prior[:d, 0] += 0.5 * math.log(d)  # distances grow with the square root of d
    return prior


def correlated(d: int) -> np.ndarray:
    """The precision of theta's prior, in units of its deviations, of d length scales that are expected to be alike."""
    precision = np.eye(d + 2)
    precision[:d, :d] = np.linalg.inv(ALIKE + (1 - ALIKE) * np.eye(d))
    return precision


def penalty(theta: np.ndarray, prior: np.ndarray, precision: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the logarithm of the prior's density, up to a constant, and its gradient in theta (d + 2).

    Args:
        theta: logarithms, d + 2.
        prior: their means and standard deviations, (d + 2) x 2.
        precision: in units of the deviations, (d + 2) x (d + 2).
    """
    score = (theta - prior[:, 0]) / prior[:, 1]
    pull = precision @ score
    return float(score @ pull / 2), pull / prior[:, 1]
