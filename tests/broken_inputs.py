"""Evaluators, parameters and problems that each break one rule, and the words of the check that catches them."""

import math
from dataclasses import dataclass, replace

import torch

from deepbore import Ordinal, Outcome, Real, SerialEvaluator
from deepbore.evaluators import Finished
from deepbore.problems import Branin
from deepbore.space.parameters.priors import TruncatedNormal
from deepbore.testing import evaluators, problems, space

# --- evaluators ------------------------------------------------------------------------------------------------------


class Loses(SerialEvaluator):
    def collect(self):
        return [one for one in super().collect() if one.trial.id != 3]


class Twice(SerialEvaluator):
    def collect(self):
        return 2 * super().collect()


class MixesUp(SerialEvaluator):
    def collect(self):
        return [Finished(replace(one.trial, id=5 - one.trial.id), one.outcome) for one in super().collect()]


class NeverFails(SerialEvaluator):
    def collect(self):
        return [Finished(one.trial, replace(one.outcome, status=0, values=1.0)) for one in super().collect()]


class GivesNoReason(SerialEvaluator):
    def collect(self):
        return [Finished(one.trial, replace(one.outcome, reason=None)) for one in super().collect()]


class HandsOverTheTrial(SerialEvaluator):
    def collect(self):
        for trial in self._queue:
            self.objective(trial.params) if "x" in trial.params else None
        return [Finished(one.trial, replace(one.outcome, values=3.0, status=0)) for one in super().collect()]


class CountsNothing(SerialEvaluator):
    def collect(self):
        finished = []
        while super().outstanding:
            finished += super().collect()
        return finished

    @property
    def outstanding(self):
        return min(1, super().outstanding)


class AlwaysFree(SerialEvaluator):
    free = 1


class KeepsAll(SerialEvaluator):
    def close(self):
        pass


class NeverReady(SerialEvaluator):
    def collect(self):
        return []


EVALUATORS = [
    (Loses, evaluators.check_outcomes, r"collected once each, but got \[0, 1, 2, 4, 5\]"),
    (Twice, evaluators.check_outcomes, "collected once each"),
    (MixesUp, evaluators.check_outcomes, r"trial 5 must come with its values \(25.0,\), but came with \(0.0,\)"),
    (NeverReady, evaluators.check_outcomes, "6 trials must be over after 1000 collects, but 0 are"),
    (NeverFails, evaluators.check_failures, "fails with KeyError must fail its trial"),
    (GivesNoReason, evaluators.check_failures, "reason of a failure must say 'KeyError', but says"),
    (HandsOverTheTrial, evaluators.check_untouched_params, "configuration must stay, but is {} afterwards"),
    (CountsNothing, evaluators.check_counts, "3 submitted trials must be outstanding, but 1 are"),
    (AlwaysFree, evaluators.check_counts, "a worker must be busy, but 1 are free"),
    (KeepsAll, evaluators.check_counts, "close must drop what is outstanding, but 3 are left"),
]

# --- parameters ------------------------------------------------------------------------------------------------------

COLUMN = torch.linspace(0, 1, space.N, dtype=torch.float64)


@dataclass(frozen=True)
class Line(Real):
    """A sound parameter, to be broken."""

    low: float = 0.0
    high: float = 2.0
    kind = "line"


class BeyondItsEnd(Line):
    def from_uniform(self, u):
        return 2 * u


class Unnormalised(Line):
    def log_prior(self, column):
        return column


class DrawsElsewhere(Line):
    belief = TruncatedNormal(0.9, 0.1)

    def log_prior(self, column):
        return torch.zeros_like(column)


class Shifted(Line):
    def decode(self, column):
        return [min(value + 0.01, 2.0) for value in super().decode(column)]


class ReadsAnother(Line):
    def read(self, text):
        return super().read(text) + 1


class TakesAnything(Line):
    def encode(self, values):
        return super().encode([value if isinstance(value, float) else 0.0 for value in values])


class FliesOff(Line):
    def moved(self, column, u, v, steps):
        return column + 10


class ReadsNothing(Line):
    """Has the kind of another parameter, which is what it is read back as."""


@dataclass(frozen=True)
class Grades(Ordinal):
    """Another one, with levels."""

    choices: tuple[int, ...] = (1, 2, 4, 8)
    kind = "grades"


class AllAlike(Grades):
    def identity(self, column):
        return torch.zeros_like(column)


class OneLevel(Grades):
    levels = 1


class StaysThere(Grades):
    def moved(self, column, u, v, steps):
        return column


class Backwards(Grades):
    def from_level(self, level):
        return 3 - level


class Glaring(Line):
    kind = "glaring"

    def readings(self):
        return [replace(reading, read=bright) for reading in super().readings()]


def bright(column, at):
    return 100 * column


def whole(make):
    space.check_parameter(make())


def natives(make):
    space.check_native_values(make(), make().from_uniform(COLUMN))


def levels(make):
    space.check_levels(make(), make().from_uniform(COLUMN))


def moves(make):
    space.check_moves(make(), make().from_uniform(COLUMN))


def beliefs(make):
    space.check_beliefs(make())


def plain_data(make):
    space.check_plain_data(make())


def space_of(make):
    space.check_space_of(make())


PARAMETERS = [
    (BeyondItsEnd, whole, r"from_uniform must stay within \[0, upper\] = \[0, 1.0\], but reaches \[0, 2\]"),
    (Unnormalised, beliefs, "the density of log_prior must be 1 on average over random entries, but is 1.7"),
    (DrawsElsewhere, beliefs, "believed entries must have the mean of log_prior, 0.5, but have 0.8"),
    (Shifted, natives, r"decode\(encode\(value\)\) must be the value, but 0.01 becomes 0.02"),
    (ReadsAnother, natives, r"read\('0.0'\) must be 0.0, but is 1.0"),
    (TakesAnything, natives, "encode of what is no value must raise PointError"),
    (AllAlike, natives, "identity must tell 4 different values apart, but gives 1"),
    (OneLevel, levels, "there must be at least 2 levels, but levels is 1"),
    (Backwards, levels, r"to_level\(from_level\(k\)\) must be k, but they are up to 3 apart"),
    (FliesOff, moves, "moved must stay within"),
    (StaysThere, moves, "a move must go to another level, but 50 of 50 stay"),
    (ReadsNothing, plain_data, r"must give the parameter ReadsNothing.*, but gives Line"),
    (Glaring, space_of, r"readings must be in \[-1, 1\], but are in \[0"),
]

# --- problems --------------------------------------------------------------------------------------------------------


class BetterThanBest(Branin):
    optimum = 1e6


class TwoValues(Branin):
    def __call__(self, params):
        return Outcome([1.0, 2.0])


class TakesItApart(Branin):
    def __call__(self, params):
        value = super().__call__(params)
        params.clear()
        return value


class StaysHere(Branin):
    def __init__(self):
        super().__init__()
        self.noise = lambda: math.nan


class Sideways(Branin):
    directions = ("sideways",)


class Homeless(Branin):
    def __init__(self):
        self.space = {"x": (0, 1)}


PROBLEMS = [
    (BetterThanBest, "no value must be better than the optimum 1000000.0"),
    (TwoValues, r"1 directions need as many values, but got \(1.0, 2.0\)"),
    (TakesItApart, "a call must leave its configuration as it is"),
    (StaysHere, "must go through pickle"),
    (Sideways, r"directions must be from \['maximize', 'minimize'\], but are \('sideways',\)"),
    (Homeless, "space must be a SearchSpace"),
]


def problem(make):
    problems.check_problem(make())


CASES = [*EVALUATORS, *PARAMETERS, *((toy, problem, says) for toy, says in PROBLEMS)]
SOUND = [
    (SerialEvaluator, evaluators.check_evaluator),
    *((make, check) for make in (Line, Grades) for check in (whole, natives, levels, moves, plain_data, space_of)),
    (Branin, problem),
]
