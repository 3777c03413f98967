"""`summary_of`: a run in at most ten lines: what was found, what failed, what limits it, and what to do next.

It reads a ledger, and so needs no torch.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepbore.data.trial import Status, Trial
from deepbore.text import as_html, visible

if TYPE_CHECKING:
    from deepbore.data.ledger import Ledger

BEST = 5  # trials whose places say whether a bound limits a run
EDGE = 0.02  # of a range, which counts as its end
SHARE = 0.6  # of these trials at one end from which the bound counts as the limit
CORNERS = 0.5  # share of the latest trials with a parameter at an end, from which that is said
NEWEST = 20  # trials that these are
OFTEN = 0.3  # share of trials that fail from which that comes first
SETTLED = 0.4  # share of the trials since the best one from which a run counts as settled
NOISY = 1.0  # deviation of equal configurations over that of the best trials, from which noise is the limit
LONGEST_LINE = 100  # characters of a line


@dataclass(frozen=True)
class Summary:
    """What there is to say of a run.

    Attributes:
        lines: at most ten.
        advice: what to do next, which are the last of them.
    """

    lines: tuple[str, ...]
    advice: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        return as_html("summary", [line.partition(": ")[::2] for line in self.lines])


def summary_of(
    run: "Ledger", space: Mapping[str, Any], names: Sequence[str] = (), doubted: Sequence[int] | None = None
) -> Summary:
    """The summary of a run.

    Args:
        run: what is known of it.
        space: the declaration of its space, as `SearchSpace.to_dict` gives it.
        names: of the objectives, if they have any.
        doubted: numbers of suspicious trials; None for those that were warned of.
    """
    parameters = space.get("parameters")
    seen = _Seen(
        run, parameters if isinstance(parameters, Mapping) and "type" not in parameters else space, names, doubted
    )
    lines = [seen.found(), seen.counts(), *filter(None, [seen.failures(), seen.doubts(), seen.progress()])]
    limits = [each for each in (seen.noise(), seen.bounds(), seen.corners()) if each]
    lines += [f"limit: {said}" for said, _ in limits]
    advice = tuple(seen.advice([way for _, way in limits]))[: max(1, 10 - len(lines))]
    return Summary((*lines, *(f"next: {each}" for each in advice)), advice)


class _Seen:
    """A run as it is seen by what is said of it."""

    def __init__(self, run: "Ledger", space: Mapping[str, Any], names: Sequence[str], doubted: Sequence[int] | None):
        self.run, self.space, self.names = run, space, names
        self.trials = [trial for trial in run.trials if trial.task is None]
        self.status = Counter(trial.status for trial in self.trials)
        self.complete = [trial for trial in self.trials if trial.status is Status.COMPLETE]
        self.sign = 1 if run.directions[0] == "minimize" else -1
        self.ranked = sorted(self.complete, key=self._key) if len(run.directions) == 1 else list(run.front)
        self.doubted = [
            trial for trial in self.complete if (trial.suspicious if doubted is None else trial.id in set(doubted))
        ]

    def _key(self, trial: Trial) -> tuple[bool, float]:
        is_broken = trial.constraints is not None and any(each > 0 for each in trial.constraints)
        return is_broken, self.sign * (math.inf if trial.value is None else trial.value)

    # --- what was found ----------------------------------------------------------------------------------------------

    def found(self) -> str:
        """The best trial, or the front."""
        if len(self.run.directions) > 1:
            return f"found: {len(self.ranked)} trials that no other beats in every value"
        best = self.run.best
        if best is None or best.value is None:
            return "found: no feasible value yet" if self.complete else "found: no value yet"
        name = f"{visible(self.names[0])} " if self.names else ""
        params = ", ".join(visible(f"{name}={_short(value)}") for name, value in best.params.items())
        return _cut(f"found: {name}{best.value:.6g} in trial {best.id}: {params}")

    def counts(self) -> str:
        """How many trials there are of each status."""
        order = (Status.COMPLETE, Status.PRUNED, Status.FAILED, Status.WITHDRAWN, Status.PENDING)
        parts = [f"{n} {status}" for status in order if (n := self.status[status])]
        return f"trials: {len(self.trials)}, of which {', '.join(parts) or 'none has ended'}"

    def failures(self) -> str:
        """The reason that most failures have."""
        reasons = [_reason(trial) for trial in self.trials if trial.status is Status.FAILED]
        if not reasons:
            return ""
        ((most, n),) = Counter(reasons).most_common(1)
        return _cut(f"failed: {len(reasons)}, {n} of them with: {visible(most)}")

    def doubts(self) -> str:
        """Trials whose values the others contradict."""
        return f"doubted: trial {', '.join(str(trial.id) for trial in self.doubted[:3])}" if self.doubted else ""

    def progress(self) -> str:
        """When the best value came."""
        best = self.run.best if len(self.run.directions) == 1 else None
        ended = [trial.id for trial in self.trials if trial.status is not Status.PENDING]
        return "" if best is None else f"progress: the best came {len([id for id in ended if id > best.id])} trials ago"

    # --- what limits it ----------------------------------------------------------------------------------------------

    def noise(self) -> tuple[str, str] | None:
        """Whether equal configurations differ as much as the best ones do."""
        groups: dict[str, list[float]] = {}
        for trial in self.complete:
            if trial.value is not None:
                groups.setdefault(repr((trial.params, trial.budget)), []).append(trial.value)
        spreads = [float(np.var(values, ddof=1)) for values in groups.values() if len(values) > 1]
        told = [trial.noise**2 for trial in self.complete if trial.noise is not None]
        if len(self.run.directions) > 1 or not (spreads or told) or len(self.ranked) < 2 * BEST:
            return None
        spread = math.sqrt(float(np.mean([*spreads, *told])))
        best = [trial.value for trial in self.ranked[: 2 * BEST] if trial.value is not None]
        if spread < NOISY * float(np.std(best)) or spread == 0:
            return None
        said = f"noise: equal configurations deviate by {spread:.2g}, the best ten by {np.std(best):.2g}"
        return said, "give noisy=True, use study.recommended, and evaluate the best ones again"

    def bounds(self) -> tuple[str, str] | None:
        """Bounds on which the best trials lie."""
        found, some = [], self.ranked[:BEST]
        for name, declared in self.space.items():
            ends = [end for trial in some if (end := _end_of(declared, trial.params.get(name)))]
            if len(some) == BEST and self.ranked[0].params.get(name) is not None and ends:
                end, n = Counter(ends).most_common(1)[0]
                if n >= SHARE * BEST and _end_of(declared, self.ranked[0].params.get(name)) == end:
                    found.append((name, end, declared[end]))
        if not found:
            return None
        shown = ", ".join(visible(f"{name}={value}") for name, _, value in found)
        widen = ", ".join(visible(f"{end} of {name}") for name, end, _ in found)
        return _cut(f"bounds: the best trials lie at {shown}"), _cut(f"widen the range, if that makes sense: {widen}")

    def corners(self) -> tuple[str, str] | None:
        """Whether the newest trials lie at ends of ranges at which the best ones do not."""
        newest = [trial for trial in self.trials if trial.status is not Status.WITHDRAWN][-NEWEST:]
        if len(self.trials) < 2 * NEWEST or self.bounds():
            return None
        at = [
            any(_end_of(declared, trial.params.get(name)) for name, declared in self.space.items()) for trial in newest
        ]
        best = [
            any(_end_of(declared, t.params.get(name)) for name, declared in self.space.items())
            for t in self.ranked[:BEST]
        ]
        if sum(at) < CORNERS * len(at) or sum(best) >= SHARE * len(best):
            return None
        said = f"corners: {sum(at)} of the newest {len(at)} trials lie at an end of a range, the best ones do not"
        return said, "narrow the ranges, or say what is believed: Real(..., prior=Normal(...))"

    # --- what to do --------------------------------------------------------------------------------------------------

    def advice(self, ways: Sequence[str]) -> Iterator[str]:
        """What to do next, the most urgent first."""
        ended = len(self.trials) - self.status[Status.PENDING]
        failed = self.status[Status.FAILED]
        if self.doubted:
            row = self.doubted[0].id
            yield f"look at trial {row}; study.withdraw({row}) if its value is wrong"
        if failed and failed >= OFTEN * ended:
            yield 'mend what fails; study.trials.rerun("failed") then tries these configurations again'
        yield from ways
        if self.status[Status.PENDING]:
            yield f"{self.status[Status.PENDING]} trials have not ended: study.optimize evaluates them first"
        if (best := self.run.best if len(self.run.directions) == 1 else None) is None:
            yield "more trials" if self.ranked else "a value: see what fails, or which constraint is never met"
        elif ended - best.id < SETTLED * ended or ended < 2 * len(self.space) + 10:
            yield "more trials: the best value is still new"
        else:
            yield f"it has settled: evaluate trial {best.id} again, with other seeds, and end here"


def _end_of(declared: Any, value: Any) -> str:
    """At which end of its range a number lies: "low", "high", or empty for neither, or for what has no range."""
    if not isinstance(declared, Mapping) or "low" not in declared or isinstance(value, bool):
        return ""
    if not isinstance(value, int | float):
        return ""
    low, high, at = float(declared["low"]), float(declared["high"]), float(value)
    if declared.get("log") and low > 0 and at > 0:
        low, high, at = math.log(low), math.log(high), math.log(at)
    width = EDGE * (high - low)
    return "low" if at <= low + width else "high" if at >= high - width else ""


def _reason(trial: Trial) -> str:
    """The first line of the reason of a failure."""
    return (trial.reason or "no reason given").partition("\n")[0]


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(line: str) -> str:
    """A line that is not too long."""
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."
