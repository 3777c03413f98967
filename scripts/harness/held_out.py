"""Problems that are held out: each release has its set, and looks at it once.

The register is docs/results/held_out.json: of each set its problems, the release that it is for, the plan of its look,
which says the problems that are chosen and by which rule, and the look, once it was made. What has been looked at
before the register is in it as validation.
"""

import json
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REGISTER = Path(__file__).parents[2] / "docs" / "results" / "held_out.json"


class LookedError(Exception):
    """A second look at a set, one that was not planned, or one at the set of another release."""


def register(problems: Iterable[str], version: str, path: Path = REGISTER) -> None:
    """Enters the look that a run of these problems is, where they are held out; nothing for others.

    The same commit may go on with its look, as an interrupted run does.

    Args:
        problems: by name.
        version: of deepbore.
        path: of the register.

    Raises:
        LookedError: where a problem is of another release's set, not in the plan, or of a set that another commit has
            looked at; also where the tree differs from its commit, which would not be what is registered.
    """
    wanted = set(problems)
    kept: dict[str, Any] = json.loads(path.read_text())
    looked = {name: each for name, each in kept["sets"].items() if wanted & set(each["problems"])}
    if not looked:
        return
    commit = _git("rev-parse", "HEAD")
    for name, each in looked.items():
        if not version.startswith(each["release"]):
            raise LookedError(f"{name} is held out for release {each['release']}, and this is {version}.")
        planned = {problem for plan in each.get("plan", ()) for problem in plan["problems"]}
        if unplanned := wanted & set(each["problems"]) - planned:
            raise LookedError(
                f"{min(unplanned)} of {name} is not in the plan of its look: plan it in {path.name} first."
            )
        if each["look"] and each["look"]["commit"] != commit:
            raise LookedError(f"{name} was looked at on {each['look']['date']} by {each['look']['commit'][:7]}.")
    if _git("status", "--porcelain", "--untracked-files=no", "--", "deepbore", "scripts"):
        raise LookedError("the tree has changes: commit them, as the register names the commit that looks.")
    for each in looked.values():
        each["look"] = each["look"] or {"commit": commit, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    path.write_text(json.dumps(kept, indent=1) + "\n")


def _git(*command: str) -> str:
    done = subprocess.run(["git", "-C", REGISTER.parent, *command], check=True, capture_output=True, text=True)
    return done.stdout.strip()
