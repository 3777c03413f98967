"""Checks of the contract of a labelling."""

from collections.abc import Callable

import torch
from torch import Tensor

from deepbore.data.observations import Observations
from deepbore.data.outcome import Status
from deepbore.labels import Labelling, Labels
from deepbore.testing.require import require, require_equal, require_shape
from deepbore.testing.toys import toy_observations, toy_outcomes

Make = Callable[[], Labelling]
N = 40  # evaluated rows of the toy observations
LIGHT = 1e-3  # the most that a pending row may weigh, as a share of the greatest weight


def check_labelling(make: Make, objectives: int | None = None, constraints: int = 0) -> None:
    """Runs all checks of a labelling.

    Args:
        make: gives a new labelling.
        objectives: k >= 1, number of objective values; None for the number that it declares, or 1.
        constraints: number of constraints; with some, infeasible rows must have the label 0, or the constraints grades
            of their own.

    Raises:
        AssertionError: with the violated rule and the values.

    Example:
        >>> from deepbore import ThresholdLabels
        >>> check_labelling(ThresholdLabels)
    """
    require(not make().by_preference, "what is checked is a labelling of values, but this one grades comparisons")
    objectives = objectives or make().objectives or 1
    observations = toy_outcomes(objectives, constraints)
    check_label_shapes(make(), observations)
    check_label_order(make(), observations)
    check_rows_without_value(make(), observations)
    check_direction(make, objectives, constraints)
    check_nothing_to_label(make(), objectives)
    check_label_state(make, objectives, constraints)


def check_label_shapes(labelling: Labelling, observations: Observations) -> None:
    """z is n x outputs in [0, 1], weights are positive, best is in [0, 1], and metrics are numbers."""
    n = len(observations)
    labels = labelling(observations)
    require_shape(labels.z, (n, labelling.outputs), "z")
    low, high = float(labels.z.min()), float(labels.z.max())
    require(low >= 0 and high <= 1, f"labels must be in [0, 1], but are in [{low:.3g}, {high:.3g}]")
    require_shape(labels.weight, (n,), "the weights")
    require(labels.weight.min() > 0, f"weights must be > 0, but the least is {float(labels.weight.min()):.3g}")
    _require_best(labels, labelling)
    require(labels.separable, f"{N} different outcomes and a failure must be separable, but are said not to be")
    for name, value in labels.metrics.items():
        require(isinstance(value, float), f"metrics must be floats, but {name} is {value!r}")


def check_label_order(labelling: Labelling, observations: Observations) -> None:
    """A dominating outcome has no smaller label than the dominated one; the best label is above 0."""
    z = labelling(observations).z[:N].double()
    values = observations.values[:N]
    better = _dominates(values) & observations.feasible[:N, None]
    wrong = (better[..., None] & (z[:, None] < z[None] - 1e-6)).any(-1).nonzero()
    if len(wrong):
        i, j = wrong[0].tolist()
        one, other = values[i].tolist(), values[j].tolist()
        raise AssertionError(
            f"the better an outcome the greater its label, but to minimise, {one} has the label {z[i].tolist()} and "
            f"{other} has {z[j].tolist()}"
        )
    require(z.max() > 0, "the best outcome must have a label above 0, but all labels are 0")


def check_rows_without_value(labelling: Labelling, observations: Observations) -> None:
    """Failed and pending rows have label 0; pending ones weigh next to nothing (`lighten_pending`), and are named.

    Infeasible rows have label 0, too, unless constraints have grades of their own.
    """
    labels = labelling(observations)
    pending, failed = observations.status == Status.PENDING, observations.status == Status.FAILED
    violated = (observations.status == Status.COMPLETE) & ~observations.feasible
    if labels.constraints is not None:
        _require_grades(labels, observations)
        violated = torch.zeros_like(violated)
    for rows, what in ((failed, "a failed"), (pending, "a pending"), (violated, "an infeasible")):
        highest = float(labels.z[rows].max()) if bool(rows.any()) else 0.0
        require(highest == 0, f"{what} row must have the label 0, but one has {highest:.3g}")
    heaviest, greatest = float(labels.weight[pending].max()), float(labels.weight.max())
    require(
        heaviest <= LIGHT * greatest,
        f"pending rows must weigh next to nothing (`lighten_pending`), but one weighs {heaviest:.3g} of {greatest:.3g}",
    )
    require(
        labels.pending is None or labels.pending.equal(pending),
        "Labels.pending must be None or the rows that are not told, as observations.pending",
    )


def check_direction(make: Make, objectives: int, constraints: int) -> None:
    """A study that maximises gives the labels of one that minimises the negated values."""
    minimised = make()(toy_outcomes(objectives, constraints))
    maximised = make()(toy_outcomes(objectives, constraints, direction="maximize"))
    what = "labels must be made from `observations.values`, which are to be minimised whatever the direction"
    require_equal(maximised.z, minimised.z, what)


def check_nothing_to_label(labelling: Labelling, objectives: int) -> None:
    """No rows, or only pending ones, give labels that are not separable."""
    observations = toy_observations(objectives)
    empty = labelling(observations)
    require_shape(empty.z, (0, labelling.outputs), "z of no rows")
    require(not empty.separable, "no rows must not be separable")
    observations.reserve(observations.space.points.sample(2, torch.Generator().manual_seed(5)))
    pending = labelling(observations)
    require_shape(pending.z, (2, labelling.outputs), "z of two pending rows")
    require(not pending.separable, "two pending rows must not be separable")


def check_label_state(make: Make, objectives: int, constraints: int) -> None:
    """A new labelling with the old one's state dict gives the old one's next labels."""
    early, late = toy_outcomes(objectives, constraints, n=N // 2), toy_outcomes(objectives, constraints)
    old, new = make(), make()
    old(early)
    new.load_state_dict(old.state_dict())
    one, other = old(late), new(late)
    what = "a labelling that has taken up the state dict of another must go on as that one does"
    require_equal(other.z, one.z, f"{what}: labels must be equal")
    require_equal(other.weight, one.weight, f"{what}: weights must be equal")


def _dominates(values: Tensor) -> Tensor:
    """n x n: whether row i is at least as good as row j in every value (n x k, to minimise)."""
    return (values[:, None] <= values[None]).all(-1)


def _require_grades(labels: Labels, observations: Observations) -> None:
    """Grades of constraints are n x c in [0, 1], and >= 1/2 exactly where a constraint is satisfied."""
    assert labels.constraints is not None
    n, c = observations.constraints.shape
    require(
        len(labels.constraints) == n, f"{n} rows need grades of constraints, but {len(labels.constraints)} have some"
    )
    known = observations.status == Status.COMPLETE
    grades, kept = labels.constraints[known], observations.constraints[known] <= 0
    require_shape(grades, (len(kept), c), "the grades of complete rows")
    low, high = float(grades.min()), float(grades.max())
    require(low >= 0 and high <= 1, f"grades of constraints must be in [0, 1], but are in [{low:.3g}, {high:.3g}]")
    require(
        bool(((grades >= 0.5) == kept).all()),
        "grades of constraints must be 1/2 or more where these are kept, and less where not, but one is otherwise",
    )


def _require_best(labels: Labels, labelling: Labelling) -> None:
    """`best` is in (0, 1]; of a labelling that grades a front, so are the labels of the front, after a reference."""
    best = torch.as_tensor(labels.best)
    best = best[1:] if labelling.grades_front else best
    require(best.min() > 0 and best.max() <= 1, f"the best label must be in (0, 1], but is {labels.best}")
    if labelling.grades_front:
        require_shape(best, (len(best), labelling.outputs), "the labels of the front")
    else:
        require(isinstance(labels.best, float), f"the best label must be a float, but is {labels.best!r}")
