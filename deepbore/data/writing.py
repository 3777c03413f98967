"""What a journal is told, but for earlier results (`deepbore.data.added`); `deepbore.data.events` reads it."""

import math
from collections.abc import Mapping
from typing import Any

from deepbore.data.lines import Event
from deepbore.data.outcomes import Outcome
from deepbore.data.preferences import Pair


def asked(row: int, params: Mapping[str, Any], budget: float | None, resume_from: int | None) -> Event:
    """What the journal says of a trial that is asked for; only what is there."""
    spends = {"budget": budget, "resume_from": resume_from}
    return {"event": "asked", "trial": row, "params": dict(params)} | {
        name: each for name, each in spends.items() if each is not None
    }


def told(row: int, outcome: Outcome) -> Event:
    """What the journal says of an outcome; only what is there."""
    if outcome.has_failed:
        event: Event = {"event": "failed", "trial": row}
    elif len(outcome.values) == 1:
        event = {"event": "told", "trial": row, "value": outcome.values[0]}
    else:
        event = {"event": "told", "trial": row, "values": list(outcome.values)}
    if all(map(math.isfinite, outcome.constraints)):
        event["constraints"] = list(outcome.constraints)
    rest = {
        "budget": outcome.budget,
        "noise": outcome.noise,
        "reason": outcome.reason,
        "attributes": outcome.attributes,
    }
    return {name: each for name, each in {**event, **rest}.items() if each not in (None, "", [], {})}


def preferred(pair: Pair) -> Event:
    """What the journal says of a comparison."""
    return {"event": "preferred", "better": pair[0], "worse": pair[1]}


def enqueued(params: Mapping[str, Any]) -> Event:
    """What the journal says of a configuration that is to be tried next."""
    return {"event": "enqueued", "params": dict(params)}


def fixed(params: Mapping[str, Any]) -> Event:
    """What the journal says of parameters that stand still from now on."""
    return {"event": "fixed", "params": dict(params)}


def annotated(row: int, attributes: Mapping[str, Any]) -> Event:
    """What the journal says of notes on a trial."""
    return {"event": "annotated", "trial": row, "attributes": dict(attributes)}
