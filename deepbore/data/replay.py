"""What a journal says: the ledger of a run, to be shown without torch; or the observations of a study that goes on."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepbore.data.declared import Declared, budget_of, current, header_of
from deepbore.data.events import Asked, Enqueued, Fixed, Imported, Reported, Timed, event_of
from deepbore.data.journal import events_in, scan_journal
from deepbore.data.ledger import KeptNatives, Ledger
from deepbore.data.log import Line, Log, times_path
from deepbore.data.notes import lines_of, running_reports
from deepbore.data.outcome import as_cost
from deepbore.data.trial import checked_directions, checked_names
from deepbore.errors import JournalError, SpaceError, TrialError, ValueTypeError

if TYPE_CHECKING:
    from torch import Tensor

    from deepbore.data.observations import Observations
    from deepbore.space import SearchSpace


@contextmanager
def declaring(path: Path) -> Iterator[None]:
    """Raises a JournalError for any error that a damaged first line leads to."""
    try:
        yield
    except Exception as error:
        raise JournalError(f"line 1 of {path} declares no run: {type(error).__name__}: {error}") from error


@contextmanager
def replaying(path: Path, line: int) -> Iterator[None]:
    """Raises a JournalError that names the line for any error that its event leads to."""
    try:
        yield
    except Exception as error:
        raise JournalError(
            f"an event does not fit, at line {line} of {path}: {type(error).__name__}: {error}"
        ) from error


class Reading:
    """The ledger of a run while its journal is read. Events that contradict it are refused.

    Args:
        created: the first line.

    Attributes:
        ledger: what the run knows after the lines so far.
    """

    def __init__(self, created: Line):
        header = header_of(created)
        self._declared = Declared(header)
        by_preference = bool(header.get("preferences", False))
        directions = checked_directions(header["directions"], by_preference)
        self.ledger = Ledger(directions, budget_of(header), by_preference, KeptNatives(self._declared.optional))
        self.ledger.header = header
        checked_names(header.get("objectives", ()), directions)
        if "cost_limit" in header:
            as_cost(header["cost_limit"])

    def take(self, line: Line) -> None:
        """Takes in the next line."""
        event = event_of(current(line, self._declared.parameters))
        self._declared.check(event)
        event.stage(self.ledger)()


def ledger_of(path: Path, lines: Iterable[Line]) -> Ledger:
    """The ledger after all lines of a journal.

    Raises:
        JournalError: naming line and path, for an event that contradicts those before it.
    """
    numbered = iter(enumerate(lines, 1))
    _, created = next(numbered, (0, None))
    if created is None:
        raise JournalError(f"{path} holds no run. Name a journal that a study has begun.")
    with declaring(path):
        reading = Reading(created)
    for number, line in numbered:
        with replaying(path, number):
            reading.take(line)
    for timed in timed_in(times_path(path)):
        with suppress(TrialError):  # of a trial that the journal has not
            timed.stage(reading.ledger)()
    return reading.ledger


def timed_in(path: Path) -> Iterator[Timed]:
    """The events in a file of times; lines that say nothing are passed over."""
    for said in lines_of(path):
        with suppress(LookupError, TypeError, ValueError, OverflowError):
            yield Timed.of(said)


def read_record(path: Path) -> Ledger:
    """The ledger in a journal, of this version or of 0.1; its checksums are verified.

    Damaged or contradictory journals are refused as by `replay`, except for values outside of their parameters: that
    check needs the search space, and so torch.

    Raises:
        JournalError: naming line and path, for a missing, damaged or contradictory journal.
    """
    ledger = ledger_of(path, events_in(path, scan_journal(path)))
    for row in ledger.statistics.pending.tolist():
        if not ledger.reports.of(row):
            with suppress(ValueTypeError):  # of a run that takes no reports
                Reported(row, running_reports(path, row)).stage(ledger)()
    return ledger


# --- the observations of a study -------------------------------------------------------------------------------------


@dataclass
class History:
    """The observations that a journal keeps.

    Attributes:
        observations: all trials, not yet connected to the journal.
        header: what its first line says of the run: "space", "directions", "seed" and more.
        journal: the file.
        queue: points (d) that were enqueued and are still to be asked.
    """

    observations: "Observations"
    header: dict[str, Any]
    journal: Log
    queue: "list[Tensor]" = field(default_factory=list)


def replay(journal: Log, space: "SearchSpace | None" = None) -> History:
    """The history in a journal, of this version or of 0.1.

    Args:
        journal: not open yet.
        space: the one that the journal declares, to be used in place of that: a journal only names functions.

    Raises:
        JournalError: naming line and path, for a missing, damaged or contradictory journal, or one of another space.
    """
    from deepbore.data.observations import Observations  # torch

    path, ledger = journal.path, ledger_of(journal.path, journal.read())
    own = _space_of(path, ledger, space)
    with _naming_the_line(journal, own):
        observations = Observations.of(own, ledger)
        queue = [observations.space.points.encode_part(params) for params in ledger.queue]
    return History(observations, ledger.header, journal, queue)


def _space_of(path: Path, ledger: Ledger, space: "SearchSpace | None") -> "SearchSpace":
    """The space of a run: a given one, if it is the one that the journal declares."""
    from deepbore.space.search_space import SearchSpace, with_defaults_of

    with declaring(path):
        for name, each in ledger.space.items():
            if isinstance(each.get("features", {}), str):  # of YAML: a journal opens no other file
                raise SpaceError(f"parameter {name!r}: a journal has no features, only their checksum.")
        kept = SearchSpace.from_dict(ledger.header["space"])
    if space is not None and (other := _other_space(space.to_dict(), kept.to_dict())):
        raise JournalError(
            f"{path} holds a run on another space than this one: {'; '.join(other)}. Give the space of that run, or "
            "name another file."
        )
    return kept if space is None else with_defaults_of(space, kept)


@contextmanager
def _naming_the_line(journal: Log, space: "SearchSpace") -> Iterator[None]:
    """Raises a JournalError for what is outside the space, which names the first line that says so."""
    try:
        yield
    except Exception:
        for number, line in enumerate(journal.read(), 1):
            if number > 1:
                with replaying(journal.path, number):
                    _encode(line, space)
        raise


def _encode(line: Line, space: "SearchSpace") -> None:
    """Encodes the configurations of a line; raises an error for one that is outside the space."""
    from deepbore.data.columns import encoded

    event = event_of(current(line, space.names))
    if isinstance(event, Asked):
        encoded(space, [dict(event.params)])
    elif isinstance(event, Imported):
        encoded(space, event.columns or {})
    elif isinstance(event, Fixed):
        space.with_fixed(event.params)
    elif isinstance(event, Enqueued):
        space.points.encode_part(event.params)


def _without_defaults(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration of a space without the values that a new run has tried first."""

    def rest(each: Any) -> Any:
        return {name: one for name, one in each.items() if name != "default"} if isinstance(each, Mapping) else each

    return {name: rest(each) for name, each in declared.items()}


def _without_features(declared: Any) -> Any:
    """The declaration of a parameter without what its levels are like."""
    return {name: each for name, each in declared.items() if name != "features"} if isinstance(declared, dict) else {}


def _other_space(wanted: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """What differs between the declarations of two spaces, in words."""
    wanted, kept = _without_defaults(wanted), _without_defaults(kept)
    words = [f"{name!r} is new in the space" for name in wanted if name not in kept]
    words += [f"{name!r} is no longer in the space" for name in kept if name not in wanted]
    both = [name for name in wanted if name in kept and wanted[name] != kept[name]]
    described = [name for name in both if _without_features(wanted[name]) == _without_features(kept[name])]
    words += [f"the features of {name!r} are others (by their checksum), or only one has some" for name in described]
    both = [name for name in both if name not in described]
    words += [f"{name!r} in the space is {wanted[name]}, was {kept[name]}" for name in both]
    if not words and list(wanted) != list(kept):
        words = [f"the order of the space is {list(wanted)}, was {list(kept)}"]
    return words
