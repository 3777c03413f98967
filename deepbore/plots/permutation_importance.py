"""`importance`: how much each parameter matters to the classifier."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from deepbore.checks import whole
from deepbore.plots.predictions import MANY, judged_rows, name_of_pi, nothing_learned, probability
from deepbore.plots.style import GOOD, figure_of, new_axes, nothing_on, plain_names, thin_spines
from deepbore.space import SearchSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

SAMPLES, WORK, LEAST = 2048, 60_000, 128  # pairs drawn; so many scores in all; but at least so many pairs
SHOWN = 20


def importances(study: "Study", samples: int | None = None, seed: int = 0) -> dict[str, float]:
    """Permutation importance of each parameter for the classifier's pi, over the trials of the run.

        I_j = E[(pi(x) - pi(x with x_j redrawn))^2] / E[(pi(x) - pi(x'))^2]

    where x is a trial of the run, x' a uniform point of the space, and x_j is redrawn from x'. It is 0 for an idle
    parameter and 1 for one that matters as much as all together. Where the trials are uniform, it is the total-effect
    index of pi (Jansen, Analysis of variance designs for model output, 1999); later in a run they lie around the best,
    and it tells what keeps pi high there. Interactions count for each of their parameters, so the sum may exceed 1.
    A conditional parameter is redrawn in the trials that have it; one that switches others on brings their values.

    Args:
        study: with a trained classifier; see `Study.fit`.
        samples: pairs drawn, >= 1; None for 2048, or fewer in wide spaces.
        seed: of the drawing.

    Returns:
        name -> importance >= 0, the greatest first; all 0 if pi is constant, or nothing is learned yet.

    Raises:
        SettingError: for less than a sample, or if the classifier is not trained.
    """
    whole(1, samples=samples)
    has_nothing = nothing_learned(study) is not None  # first, as it asks for a study
    space = study.space.without_fixed  # what stands still now was learned all the same
    if has_nothing:
        return dict.fromkeys(space.names, 0.0)
    n = samples or max(LEAST, min(SAMPLES, WORK // len(space)))
    generator = torch.Generator().manual_seed(seed)
    trials = study.observations.points.cpu()[judged_rows(study.observations, MANY)]
    points = trials[torch.randint(len(trials), (n,), generator=generator)]
    donors, pi = space.sample(n, generator), probability(study, points)
    together = max(float(np.square(pi - probability(study, donors)).mean()), 1e-12)
    found = {}
    for column, name in enumerate(space.names):
        redrawn = probability(study, exchanged(space, points, donors, column, generator))
        found[name] = float(np.square(pi - redrawn).mean()) / together
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def exchanged(space: SearchSpace, points: Tensor, donors: Tensor, column: int, generator: torch.Generator) -> Tensor:
    """The points (n x d) with one parameter, where it is active, from the same row of the donors (n x d).

    A donor that does not have it is replaced by a random one that has; if none has it, the points stay as they are.
    """
    active, able = space.active(points), space.active(donors)[:, column].nonzero().squeeze(-1)
    if not len(able):
        return points
    given = donors[able[torch.randint(len(able), (len(donors),), generator=generator)]]
    given[able] = donors[able]
    changed = torch.where(active, points, given)  # what the change may switch on comes from the donor
    changed[:, column] = given[:, column]
    return torch.where(active[:, [column]], space.snap(changed), points)


def importance(study: "Study", *, axes: "Axes | None" = None) -> "Figure":
    """Bars of the `importances`, the greatest above; of 20 parameters at most.

    Args:
        study: with a trained classifier; see `Study.fit`.
        axes: where to draw; None for a new figure.

    Raises:
        SettingError: if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    if reason := nothing_learned(study):
        return nothing_on(axes, reason)
    found = list(importances(study).items())[:SHOWN]
    axes = axes or new_axes(6.0, 0.8 + 0.32 * len(found))
    values = [value for _, value in found]
    bars = axes.barh(range(len(found)), values, color=GOOD, height=0.65)
    axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=3, fontsize=8)
    axes.set_yticks(range(len(found)), plain_names([name for name, _ in found]))
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.12 * max(*values, 0.1)), xlabel=f"importance for the {name_of_pi(study)}")
    thin_spines(axes)
    return figure_of(axes)
