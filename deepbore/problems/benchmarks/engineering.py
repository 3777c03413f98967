"""Two classic problems of mechanical design under black-box constraints.

Their formulas are those of Coello Coello (2000), section 4; each constraint is satisfied if it is <= 0.

References:
    Coello Coello, Use of a self-adaptive penalty approach for engineering optimization problems, Computers in Industry
    41 (2000).
"""

from math import pi, sqrt

from deepbore.data.outcome import Outcome
from deepbore.problems.base import Problem
from deepbore.space import Integer, Params, Real, SearchSpace

PLATE = 0.0625  # inches: the thickness of rolled steel plates comes in multiples of it
LOAD, BEAM = 6000.0, 14.0  # pounds, and inches from the wall to the load
ELASTICITY, RIGIDITY = 30e6, 12e6  # psi
SHEAR_LIMIT, BENDING_LIMIT, DEFLECTION_LIMIT = 13600.0, 30000.0, 0.25  # psi, psi, inches


class PressureVessel(Problem):
    """Costs of material, forming and welding of a cylindrical vessel with hemispherical ends, minimised.

    Two whole numbers, the thickness of the shell and of the ends in sixteenths of an inch, and two lengths in inches.
    Four constraints: both must be thick enough for the radius, the volume must be at least 1,296,000 cubic inches, and
    the length at most 240 inches, as the bounds ensure. The least cost is 5850.383, for 12 and 6 sixteenths. (The
    6059.714 of the literature is the least for lengths up to 200 inches.)

    Example:
        >>> problem = PressureVessel()
        >>> outcome = problem({"shell": 12, "ends": 6, "radius": 38.8601, "length": 221.3656})
        >>> round(outcome.values[0], 1), outcome.is_feasible
        (5850.4, True)

    References:
        Sandgren, Nonlinear integer and discrete programming in mechanical design optimization, Journal of Mechanical
        Design 112 (1990). Coello Coello (2000), example 2.
    """

    optimum = 5850.38306033
    constraints = 4

    def __init__(self) -> None:
        self.space = SearchSpace(
            {
                "shell": Integer(1, 99),
                "ends": Integer(1, 99),
                "radius": Real(10.0, 200.0),
                "length": Real(10.0, 240.0),
            }
        )

    def __call__(self, params: Params) -> Outcome:
        """Cost and constraints. Raises PointError for a configuration outside the space."""
        self.space.encode([params])  # checks names and bounds
        shell, ends = params["shell"] * PLATE, params["ends"] * PLATE
        r, length = params["radius"], params["length"]
        cost = 0.6224 * shell * r * length + 1.7781 * ends * r**2 + (3.1661 * length + 19.84 * r) * shell**2
        volume = pi * r**2 * length + 4 / 3 * pi * r**3
        return Outcome(cost, constraints=[0.0193 * r - shell, 0.00954 * r - ends, 1_296_000 - volume, length - 240])


class WeldedBeam(Problem):
    """The cost of a beam that is welded to a wall and bears a load, minimised.

    Four lengths in inches: thickness and length of the weld, height and thickness of the beam. Five constraints: shear
    stress in the weld, bending stress in the beam, a weld no thicker than the beam, deflection of its end, and buckling
    load. The least cost is 1.724852 (literature).

    Example:
        >>> problem = WeldedBeam()
        >>> outcome = problem({"weld": 0.2058, "joint": 3.4706, "height": 9.0367, "beam": 0.20577})
        >>> round(outcome.values[0], 3), [c <= 1 for c in outcome.constraints]
        (1.725, [True, True, True, True, True])

    References:
        Ragsdell & Phillips, Optimal design of a class of welded structures using geometric programming, Journal of
        Engineering for Industry 98 (1976). Coello Coello (2000), example 1.
    """

    optimum = 1.724852
    constraints = 5

    def __init__(self) -> None:
        self.space = SearchSpace(
            {
                "weld": Real(0.125, 10.0),
                "joint": Real(0.1, 10.0),
                "height": Real(0.1, 10.0),
                "beam": Real(0.1, 10.0),
            }
        )

    def __call__(self, params: Params) -> Outcome:
        """Cost and constraints. Raises PointError for a configuration outside the space."""
        self.space.encode([params])  # checks names and bounds
        h, joint, t, b = (params[name] for name in ("weld", "joint", "height", "beam"))
        cost = 1.10471 * h**2 * joint + 0.04811 * t * b * (BEAM + joint)
        bending = 6 * LOAD * BEAM / (b * t**2)
        deflection = 4 * LOAD * BEAM**3 / (ELASTICITY * t**3 * b)
        slenderness = t / (2 * BEAM) * sqrt(ELASTICITY / (4 * RIGIDITY))
        buckling = 4.013 * ELASTICITY * sqrt(t**2 * b**6 / 36) / BEAM**2 * (1 - slenderness)
        constraints = [
            shear(h, joint, t) - SHEAR_LIMIT,
            bending - BENDING_LIMIT,
            h - b,
            deflection - DEFLECTION_LIMIT,
            LOAD - buckling,
        ]
        return Outcome(cost, constraints=constraints)


def shear(h: float, joint: float, t: float) -> float:
    """The shear stress in a weld of thickness h and length `joint` on a beam of height t, in psi."""
    arm = sqrt(joint**2 / 4 + ((h + t) / 2) ** 2)
    polar = 2 * sqrt(2) * h * joint * (joint**2 / 12 + ((h + t) / 2) ** 2)
    direct = LOAD / (sqrt(2) * h * joint)
    turning = LOAD * (BEAM + joint / 2) * arm / polar
    return sqrt(direct**2 + direct * turning * joint / arm + turning**2)
