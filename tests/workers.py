"""Spaces for evaluations on several workers, and what came of them."""

import json
from pathlib import Path

from deepbore import Ordinal, Real, SearchSpace

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
SQUARES = {k: (k - 4) ** 2 for k in range(8)}  # of `objectives.square`


def levels(n):
    return SearchSpace({"k": Ordinal(list(range(n)))})


def outcomes(study):
    """k -> value, None for failures."""
    return {trial.params["k"]: trial.value for trial in study.trials}


def events(path, kind):
    written = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [event for event in written if event["event"] == kind]
