"""What deepbore's default was chosen among: docs/ablation.md has what came of each. None is better than the default.

former      the default as it was, what was added to it, and what one setting changes in today's
noise       what improvement is over, how far labels reach, and where the search for the evidence starts
averaging   expected improvement averaged over settings of the kernel
ties        keeping away from where the best value comes again and again
warping     parameters that are warped before the kernel sees them
heads       several heads weighed by their forecasts, and deep heads of all rows
in_context  a transformer that forecasts labels from the rows without training
deep_kernel networks of all rows as the mean, a kernel of what they leave
design      where the design begins
scales      which spaces have length scales that are expected to be alike
ends        a prior that falls towards the ends of ranges, and improvement beyond a margin
quantile    labels that are spread over more of the values, or whose scale is kept in long runs
additive    kernels that add what single parameters do to what all do together
near_axes   which axes the model of the near rows has, and when its turns begin
repeat      whether values are noisy, by the best configuration once more
elsewhere   without the proposals that leave out the branches known in detail
neglected   what keeps branches and levels from being missed
rival       without the rival whose kernel adds what each parameter does
rough       kernels of rougher functions, always or where the rows say so
rows        how many rows the model of all observations learns
evolution   an evolution strategy that takes turns beyond 200 trials
level_ascent  an ascent of the acquisition along levels, too
other_basins  turns for what lies beyond a basin that is known in detail
ground      what is due how often on training runs: neglected choices, a forest, the largest mean
thousands   evolution in turns with the default, with networks that screen its offspring and without
told        what else who knows that values are noisy could set
"""

from collections.abc import Callable

from peers.variants import (
    additive,
    averaging,
    deep_kernel,
    design,
    elsewhere,
    ends,
    evolution,
    former,
    ground,
    heads,
    in_context,
    level_ascent,
    near_axes,
    neglected,
    noise,
    other_basins,
    quantile,
    rival,
    rough,
    rows,
    scales,
    thousands,
    ties,
    told,
    warping,
)
from peers.variants.repeat import REPEATED as REPEATED, Repeat as Repeat
from peers.variants.settings import Settings, alone, believing, independent

# the earliest were measured before there was a head of the near rows, and all others before length scales were alike
EARLIEST = {name: alone(make) for module in (former, noise, averaging, ties) for name, make in module.VARIANTS.items()}
EARLIER = EARLIEST | warping.VARIANTS | heads.VARIANTS | in_context.VARIANTS
EARLIER |= dict.fromkeys(REPEATED, dict)
LATER: dict[str, Callable[[], Settings]] = {
    **{name: independent(make) for name, make in EARLIER.items()},
    **dict.fromkeys(design.FIRST, dict),
    **near_axes.VARIANTS,
    **noise.TOLD,
    **scales.VARIANTS,
    **ends.VARIANTS,
    **quantile.VARIANTS,
    **additive.VARIANTS,
    **elsewhere.VARIANTS,
}
ALL = {name: believing(make) for name, make in LATER.items()}  # measured without crashes by chance, and without a rival
ALL |= rival.VARIANTS | rows.VARIANTS | neglected.VARIANTS | rough.VARIANTS | told.VARIANTS
ALL |= level_ascent.VARIANTS | scales.WITH_LEVELS | other_basins.VARIANTS
ALL |= thousands.VARIANTS | deep_kernel.VARIANTS | evolution.VARIANTS | quantile.LONG | ground.VARIANTS | heads.LATER
FIRST = dict.fromkeys(EARLIER, design.sobol_first) | design.FIRST  # what has another first trial than the default
