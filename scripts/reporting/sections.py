"""The parts of a report: runs of one suite, dimension, half and number of workers, compared at each checkpoint."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from reporting.comparison import Comparison
from reporting.facts import NOISY, Fact, dimension_of, place_of, suite_of
from reporting.regrets import Scale
from reporting.rows import Run

CHECKPOINTS = (25, 50, 100, 200, 400, 1000, 5000)
ROUNDS = (2, 3, 5, 10)  # after which large batches are compared
SHORT = 200  # evaluations: runs are planned for so many or fewer, or for many more
LOOK = "look "  # before the release that has its one look at a half
HALVES = ("development", "held_out", "all")  # and those of looks


@dataclass(frozen=True, order=True)
class Section:
    """Runs that belong into one table: of one suite, dimension (0: any), half and number of workers."""

    place: int
    suite: str
    dimension: int
    half: str
    workers: int

    @property
    def noisy(self) -> bool:
        return self.suite in NOISY

    @property
    def is_look(self) -> bool:
        """Whether it was held out for one look of a release."""
        return self.half.startswith(LOOK)

    @property
    def checkpoints(self) -> tuple[int, ...]:
        """Numbers of evaluations at which methods are compared; of batches larger than the first, whole rounds."""
        return CHECKPOINTS if self.workers < CHECKPOINTS[0] else tuple(self.workers * rounds for rounds in ROUNDS)

    @property
    def suite_title(self) -> str:
        return f"{self.suite}, {self.dimension}-D" if self.dimension else self.suite

    @property
    def half_title(self) -> str:
        return half_title(self.half) + (f", {self.workers} workers" if self.workers > 1 else "")

    @property
    def title(self) -> str:
        return f"{self.suite_title}: {self.half_title}"


class Comparisons:
    """All comparisons of a report, each made once.

    Args:
        runs: to be compared.
        facts, scales: of their problems.

    Attributes:
        runs: of each section, in the order of a report.
    """

    def __init__(self, runs: Iterable[Run], facts: dict[str, Fact], scales: dict[str, Scale]):
        self.scales = scales
        found: dict[Section, list[Run]] = defaultdict(list)
        for (problem, workers), ran in _by_problem(runs).items():
            suite, half = suite_of(problem), facts[problem].half
            found[Section(place_of(suite), suite, dimension_of(problem) or 0, half, workers)].extend(ran)
        self.runs = {section: found[section] for section in sorted(found)}
        self._made: dict[tuple[Section, int, bool], Comparison] = {}

    def at(self, section: Section, k: int, recommended: bool = False) -> Comparison:
        """The methods of a section after k evaluations."""
        key = section, k, recommended
        if key not in self._made:
            self._made[key] = Comparison(self.runs[section], k, self.scales, recommended)
        return self._made[key]

    def of(self, section: Section, recommended: bool = False) -> list[Comparison]:
        """Those at the checkpoints at which at least two methods have runs."""
        every = [self.at(section, k, recommended) for k in section.checkpoints]
        return [comparison for comparison in every if len(comparison.methods) > 1]

    def summary(self, section: Section, k: int) -> Comparison:
        """The one for a single figure: on noisy problems of what methods recommend, once they say so."""
        return self.at(section, k, section.noisy and any(run.recommended for run in self.runs[section]))

    def pooled(self) -> "Comparisons":
        """The same runs with all dimensions and both halves of a suite together, without what is held out."""
        other = Comparisons((), {}, self.scales)
        for section, runs in self.runs.items():
            if section.is_look:
                continue
            other.runs.setdefault(replace(section, dimension=0, half="all"), []).extend(runs)
        return other


def half_title(half: str) -> str:
    """A half in words."""
    if half.startswith(LOOK):
        return f"held out for {half.removeprefix(LOOK)}, one look"
    return {"all": "all problems", "held_out": "validation"}.get(half, half)


def _by_problem(runs: Iterable[Run]) -> dict[tuple[str, int], list[Run]]:
    found: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for run in runs:
        found[run.problem, run.workers].append(run)
    return found
