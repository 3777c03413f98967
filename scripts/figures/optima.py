"""The best possible value of each problem of a race, kept in a file, so that a page needs neither torch nor tables."""

import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path

Optima = dict[str, float | None]  # in the sign that is minimised; None where nobody knows


def optima(problems: Iterable[str], kept: Path) -> Optima:
    """What the file says, and of other problems what deepbore says."""
    known = read(kept)
    return {name: known[name] if name in known else _asked(name) for name in sorted(set(problems))}


def read(kept: Path) -> Optima:
    return dict(json.loads(kept.read_text())) if kept.exists() else {}


def write(found: Optima, kept: Path) -> None:
    """Keeps what was found, beside what the file has."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(read(kept) | found, indent=0, sort_keys=True) + "\n")


def _asked(name: str) -> float | None:
    from deepbore.problems.suites import problem

    try:
        made = problem(name)
    except Exception as error:  # a file or a package that is missing: values are compared all the same
        print(f"no optimum is known of {name}: {error}", file=sys.stderr)
        return None
    known = made.optimum is not None and math.isfinite(made.optimum)
    return float(-made.optimum if made.direction == "maximize" else made.optimum) if known else None
