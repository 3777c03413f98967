"""How a run goes on: its trials from the journal, everything else from the snapshot beside it."""

import logging
from collections.abc import Sequence

from torch import Tensor

from deepbore.data.replay import History
from deepbore.errors import JournalError
from deepbore.loop.snapshot import DAMAGED, load, snapshot_path
from deepbore.loop.state import RunState

REHEARSALS = 10  # epochs of training on the journal's trials, where the weights are lost
log = logging.getLogger(__name__)


def restore(state: RunState, history: History) -> None:
    """Brings a state with the history's observations where it stood when the journal ended.

    Without a snapshot that fits, a run beyond its design lets the classifier learn anew for some epochs, and says so.

    Args:
        state: of the run, new but for the observations.
        history: what the journal says.
    """
    state.unfinished = history.observations.pending_rows.tolist()
    try:
        _take(state, history)
    except JournalError as error:
        state.queue = list(history.queue)
        state.generator.manual_seed(state.seed + history.observations.n_asked)
        if history.observations.n_asked:
            state.rehearsals = REHEARSALS
            log.warning(
                "%s can't be used: %s. The classifier learns anew from the %d trials of the journal, so the next "
                "proposals may differ from those of a run without interruption.",
                *(snapshot_path(history.journal.path), error, len(history.observations)),
            )


def _take(state: RunState, history: History) -> None:
    """Takes over the snapshot.

    Raises:
        JournalError: if there is none that fits.
    """
    kept = load(history.journal)
    if differences := state.recipe.differences(kept["recipe"]):
        raise JournalError(f"the settings differ: {'; '.join(differences)}")
    asked = history.observations.n_asked
    written = asked - kept["state"]["asked"]
    if not 0 <= written <= len(kept["points"]):
        raise JournalError(f"it knows of {kept['state']['asked']} trials, the journal of {asked}")
    try:
        state.load_state_dict(kept["state"])
    except DAMAGED as error:
        raise JournalError(f"it does not fit: {error}") from error
    lost, promoted = list(kept["points"][written:]), kept.get("promoted")
    if promoted:  # they come again as promotions; an older snapshot says only that they do
        state.promised = [] if promoted is True else [*promoted[written:], *state.promised]
        lost = []
    waiting = [*lost, *state.queue]  # proposals that were lost before, too, which no journal knows
    state.queue = [*waiting, *without(history.queue, waiting)]


def without(queue: Sequence[Tensor], points: Sequence[Tensor]) -> list[Tensor]:
    """A queue less some points, each taken out once."""
    left = list(queue)
    for point in points:
        at = next((place for place, each in enumerate(left) if each.equal(point)), None)
        if at is not None:
            del left[at]
    return left
