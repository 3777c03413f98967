"""Vessels and beams under constraints: nothing beats the known optimum."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from deepbore.problems import PressureVessel, WeldedBeam


@pytest.mark.slow
def test_no_vessel_costs_less_than_the_optimum():
    vessel = PressureVessel()
    costs = []
    for shell, ends in itertools.product(range(1, 30), repeat=2):
        thickest = min(0.0625 * shell / 0.0193, 0.0625 * ends / 0.00954)  # radius that both plates bear
        for radius in np.linspace(0.8, 1, 41) * thickest:
            length = (1_296_000 - 4 / 3 * np.pi * radius**3) / (np.pi * radius**2)
            if radius >= 10 and 10 <= length <= 240:
                params = {"shell": shell, "ends": ends, "radius": float(radius), "length": float(length)}
                outcome = vessel(params)
                assert max(outcome.constraints) < 1e-6
                costs.append(outcome.values[0])
    assert min(costs) == pytest.approx(vessel.optimum, rel=1e-11)


def test_no_beam_costs_less_than_the_optimum():
    beam = WeldedBeam()
    bounds = [(parameter.low, parameter.high) for parameter in beam.space.parameters.values()]

    def evaluated(x):
        return beam(dict(zip(beam.space.parameters, np.clip(x, *np.transpose(bounds)).tolist(), strict=True)))

    kept = {"type": "ineq", "fun": lambda x: -np.array(evaluated(x).constraints) / [1e4, 1e4, 1, 1, 1e4]}
    starts = ([0.3, 3.0, 8.0, 0.3], [1.0, 5.0, 5.0, 1.0], [0.2, 5.0, 9.0, 0.5])
    ends = [minimize(lambda x: evaluated(x).values[0], start, bounds=bounds, constraints=kept) for start in starts]
    assert min(end.fun for end in ends if end.success) == pytest.approx(beam.optimum, rel=1e-5)
