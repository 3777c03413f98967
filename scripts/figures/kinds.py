"""What a figure is: a race of methods, or a demonstration; and the claims that are tested of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from matplotlib.figure import Figure as Picture

Numbers = dict[str, Any]  # what a demonstration keeps of a seed, as JSON


@dataclass(frozen=True)
class Panel:
    """One set of axes: methods that are compared on a problem.

    Attributes:
        title: over the axes.
        problem: by the harness's name.
        methods: by the harness's names, in the order of the table.
        trials: evaluations by default, where they are not those of the race.
    """

    title: str
    problem: str
    methods: tuple[str, ...]
    trials: int | None = None


@dataclass(frozen=True)
class Claim:
    """That a method is better than another on a problem of a race, as the paper says or shows.

    Attributes:
        problem, first, second: `first` is claimed to be ahead of `second`.
        at: after so many evaluations; None for the mean over all of them, "at any time".
        level: that neither is ahead, in the place of `first`.
    """

    problem: str
    first: str
    second: str
    at: int | None = None
    level: bool = False


@dataclass(frozen=True)
class Finding:
    """A claim and what became of it.

    Attributes:
        claim: in words.
        verdict: "reproduced", "refuted", "undecided", "not contradicted", or "no runs".
        evidence: the numbers behind it.
    """

    claim: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Figure:
    """A figure of a paper.

    Attributes:
        name: of the command line.
        paper: which paper, and which figure of it.
        caption: what it shows, in our words.
        reports: what the paper reports there, in our words.
        departures: how this differs from what the paper did.
        explanation: of what is not reproduced, as far as one was found.
    """

    name: str
    paper: str
    caption: str
    reports: str
    departures: str = ""
    explanation: str = field(default="", kw_only=True)


@dataclass(frozen=True, kw_only=True)
class Race(Figure):
    """Methods on problems over seeds.

    Attributes:
        panels: what is compared with what.
        trials, seeds: the size by default; what is smaller than the paper's fits hours on one core.
        paper_trials, paper_seeds: the paper's, in words where panels differ; None where it does not say.
        few: methods with fewer seeds by default, as each run takes long: name -> seeds.
        workers: evaluations of a round.
        metric: "regret", "value", or "cumulative regret".
        checkpoints: evaluations at which the table has a column, besides the last.
        claims: that are tested.
    """

    panels: tuple[Panel, ...]
    trials: int
    seeds: int = 20
    paper_trials: int | str | None
    paper_seeds: int | str | None
    few: Mapping[str, int] = field(default_factory=dict)
    workers: int = 1
    metric: Literal["regret", "value", "cumulative regret"] = "regret"
    checkpoints: tuple[int, ...] = (25, 50, 100, 200)
    claims: tuple[Claim, ...] = ()

    @property
    def pairs(self) -> dict[tuple[str, str], int]:
        """Each pair of a problem and a method, and its evaluations by default."""
        return {
            (panel.problem, method): panel.trials or self.trials for panel in self.panels for method in panel.methods
        }


@dataclass(frozen=True, kw_only=True)
class Demonstration(Figure):
    """A picture with numbers of a seed.

    Attributes:
        compute: from a seed and a size to what is kept of it; of a module, as other processes import it.
        draw: from what was kept of all seeds, by seed, to the picture.
        findings: from the same to the claims and what became of them.
        table: from the same to Markdown.
        size: what `--trials` stands for, by default; 0 if it has no meaning here.
        seeds: by default.
        tiny: the size of a smoke test.
    """

    compute: Callable[[int, int], Numbers]
    draw: Callable[[Mapping[int, Numbers]], Picture]
    findings: Callable[[Mapping[int, Numbers]], Sequence[Finding]]
    table: Callable[[Mapping[int, Numbers]], str]
    size: int = 0
    seeds: int = 5
    tiny: int = 0
