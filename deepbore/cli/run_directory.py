"""What a run directory is called, and its files. Light to import."""

from itertools import count
from pathlib import Path

RUNS = Path("runs")
CONFIG, JOURNAL = "config.yaml", "journal.jsonl"


def new_run(stem: str) -> Path:
    """The next free directory for a run: runs/branin-1, runs/branin-2, ..."""
    return next(path for k in count(1) if not (path := RUNS / f"{stem}-{k}").exists())


def journal_of(run: Path) -> Path:
    """The journal of a run directory; a journal alone is its own."""
    return run / JOURNAL if run.is_dir() else run
