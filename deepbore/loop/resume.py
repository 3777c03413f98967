"""How a run goes on: its trials from the journal, weights and random numbers from the snapshot beside it."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.data.journal import Event, Journal
from deepbore.data.observations import Observations
from deepbore.errors import JournalError
from deepbore.loop.controller import LoopController
from deepbore.loop.snapshot import Snapshot, beside
from deepbore.space import SearchSpace

REHEARSALS = 10  # epochs of training on the journal's trials, where the weights are lost
log = logging.getLogger(__name__)


@dataclass
class History:
    """What a journal says.

    Attributes:
        observations: all trials, not yet connected to the journal.
        seed: of the run.
        journal: the file.
        queue: points that were enqueued and are still to be asked, 1 x d each.
    """

    observations: Observations
    seed: int
    journal: Journal
    queue: list[Tensor] = field(default_factory=list)


def replay(journal: Journal) -> History:
    """The history in a journal.

    Raises:
        JournalError: for a missing, damaged or contradictory journal.
    """
    events = enumerate(journal.read(), 1)
    _, created = next(events)
    try:
        seed = created["seed"]
        if not isinstance(seed, int):
            raise TypeError(f"the seed must be a whole number, but got {seed!r}.")
        space = SearchSpace.from_dict(created["space"])
        history = History(Observations(space, created["direction"]), seed, journal)
    except Exception as error:  # whatever a damaged line leads to
        raise JournalError(f"line 1 of {journal.path} declares no study: {type(error).__name__}: {error}") from error
    for line, kind, group in _grouped(events):
        try:
            _apply(history, kind, group)
        except Exception as error:
            raise JournalError(
                f"an event does not fit, at line {line} of {journal.path}: {type(error).__name__}: {error}"
            ) from error
    return history


def _grouped(events: Iterator[tuple[int, Event]]) -> Iterator[tuple[int, str, list[Event]]]:
    """Events with the first one's line, what was added together taken together: a million rows need one sorting."""
    key: Any
    for key, group in groupby(events, lambda pair: "added" if pair[1]["event"] == "added" else pair[0]):
        lines = list(group)
        yield lines[0][0], str(lines[0][1]["event"]), [event for _, event in lines] if key == "added" else [lines[0][1]]


def _apply(history: History, kind: str, events: Sequence[Event]) -> None:
    event, observations = events[0], history.observations
    match kind:
        case "asked" if event["trial"] == len(observations):
            point = observations.space.encode([event["params"]])
            observations.reserve(point)
            history.queue = history.queue[1:] if history.queue and point.equal(history.queue[0]) else history.queue
        case "told":
            observations.tell(event["trial"], event["value"])
        case "failed":
            observations.tell(event["trial"], failed=True)
        case "added":
            _add(observations, events)
        case "enqueued":
            history.queue.append(observations.space.encode([event["params"]]))
        case _:
            raise JournalError(f"{event} can't come here.")


def _add(observations: Observations, events: Sequence[Event]) -> None:
    names = observations.space.names
    columns = {name: [event["params"].get(name) for event in events] for name in names}
    observations.add(columns, [float("nan") if event["value"] is None else event["value"] for event in events])


def take_up(history: History, loop: LoopController, classifier: Classifier) -> None:
    """Brings a loop with the history's observations, and its classifier, where they stood when the journal ended.

    Without a snapshot that fits, a run beyond its design lets the classifier learn anew for some epochs, and says so.
    """
    loop.queue, loop.unfinished = list(history.queue), history.observations.pending_rows.tolist()
    try:
        snapshot = Snapshot.load(history.journal.path)
        asked = history.observations.n_asked
        written = asked - snapshot.asked
        if not 0 <= written <= len(snapshot.points):
            raise JournalError(f"it knows of {snapshot.asked} trials, the journal of {asked}")
        if snapshot.weights is not None:
            assert loop.data.labels is not None
            classifier.bind(loop.data.space, loop.data.labels.outputs)
        snapshot.give(loop.generator, classifier)
        lost = [point[None] for point in snapshot.points[written:]]
        loop.queue = [*lost, *(point for point in loop.queue if not any(point.equal(each) for each in lost))]
    except JournalError as error:
        loop.generator.manual_seed(loop.seed + history.observations.n_asked)
        if history.observations.n_asked:
            loop.rehearsals = REHEARSALS
            log.warning(
                "%s can't be used: %s. The classifier learns anew from the %d trials of the journal, so the next "
                "proposals may differ from those of a run without interruption.",
                *(beside(history.journal.path), error, len(history.observations)),
            )
