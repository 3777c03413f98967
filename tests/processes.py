"""Whether processes have ended."""

import time
from pathlib import Path


def is_gone(pid, within=5.0):
    """Whether a process has ended; one that its parent hasn't waited for yet has, too."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False
