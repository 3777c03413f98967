"""`replay`: the observations that a journal keeps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from deepbore.data.added import Added
from deepbore.data.events import budget_of, declaring, header_of, outcome_of, playing
from deepbore.data.journal import Event, Journal
from deepbore.data.observations import Observations
from deepbore.data.preferences import Pair
from deepbore.errors import JournalError
from deepbore.space import SearchSpace


@dataclass
class History:
    """What a journal says.

    Attributes:
        observations: all trials, not yet connected to the journal.
        header: what its first line says of the run: "space", "directions", "seed" and more.
        journal: the file.
        queue: points (d) that were enqueued and are still to be asked.
    """

    observations: Observations
    header: dict[str, Any]
    journal: Journal
    queue: list[Tensor] = field(default_factory=list)


def replay(journal: Journal, space: SearchSpace | None = None) -> History:
    """The history in a journal, of this version or of 0.1.

    Args:
        journal: not open yet.
        space: the one that the journal declares, to be used in place of that: a journal only names functions.

    Raises:
        JournalError: naming line and path, for a missing, damaged or contradictory journal, or one of another space.
    """
    events = enumerate(journal.read(), 1)
    line, created = next(events)
    with declaring(journal.path):
        header = header_of(created)
        budget, by_preference = budget_of(header), header.get("preferences", False)
        kept = SearchSpace.from_dict(header["space"])
        observations = Observations(kept, header["directions"], budget=budget, by_preference=by_preference)
    if space is not None:
        if other := _other_space(space.to_dict(), observations.space.to_dict()):
            raise JournalError(
                f"{journal.path} holds a run on another space than this one: {'; '.join(other)}. Give the space of "
                "that run, or name another file."
            )
        observations = Observations(space, header["directions"], budget=budget, by_preference=by_preference)
    player = _Player(history := History(observations, header, journal))
    for line, event in events:
        with playing(journal.path, line):
            player.play(event)
    with playing(journal.path, line):
        player.finish()
    return history


def _other_space(wanted: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """What differs between the declarations of two spaces, in words."""
    words = [f"{name!r} is new in the space" for name in wanted if name not in kept]
    words += [f"{name!r} is no longer in the space" for name in kept if name not in wanted]
    both = [name for name in wanted if name in kept and wanted[name] != kept[name]]
    words += [f"{name!r} in the space is {wanted[name]}, was {kept[name]}" for name in both]
    if not words and list(wanted) != list(kept):
        words = [f"the order of the space is {list(wanted)}, was {list(kept)}"]
    return words


class _Player:
    """Lets events happen again: rows that were added in a row at once, as a million rows need one sorting, and so all
    comparisons, which need one fit.
    """

    def __init__(self, history: History):
        self.history, self.observations = history, history.observations
        self._together: list[Added] = []
        self._pairs: list[Pair] = []

    def play(self, event: Event) -> None:
        """Lets one event happen."""
        if event["event"] == "added":
            self._collect(Added.of_event(self.observations.space, self.observations.k, event))
        else:
            self.append_added()
            self._apply(event)

    def finish(self) -> None:
        """Lets happen what has been collected."""
        self.append_added()
        pairs, self._pairs = self._pairs, []
        if pairs:
            self.observations.prefer(pairs)

    def append_added(self) -> None:
        """Appends what has been collected."""
        together, self._together = self._together, []
        if together:
            self.observations.append(Added.joined(together))

    def _collect(self, added: Added) -> None:
        if self._together and self._together[0].kind != added.kind:
            self.append_added()
        self._together.append(added)

    def _apply(self, event: Event) -> None:
        match event["event"]:
            case "asked" if event["trial"] == len(self.observations):
                self._ask(event)
            case "told" | "failed":
                self.finish()
                self.observations.tell(event["trial"], outcome_of(event))
            case "preferred":
                self._pairs.append((event["better"], event["worse"]))
            case "annotated":
                self.observations.annotate(event["trial"], event["attributes"])
            case "fixed":
                self.observations.fix(event["params"])
            case "enqueued":
                self.history.queue.append(self.observations.space.encode([event["params"]])[0])
            case _:
                raise JournalError(f"{event} can't come here.")

    def _ask(self, event: Event) -> None:
        points, queue = self.observations.space.encode([event["params"]]), self.history.queue
        resumed = event.get("resume_from")
        self.observations.reserve(points, event.get("budget"), None if resumed is None else [resumed])
        if queue and resumed is None and points[0].equal(queue[0]):
            del queue[0]
