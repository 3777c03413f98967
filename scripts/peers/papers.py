"""The papers' recipes: a method `paper:NAME` for each file of configs/papers, `-` in its name for `_`.

A file is read as `deepbore fit` reads it, and all of its study is kept: model, labels, acquisition, candidates, and the
size of the initial design where it says one. Problem, seed, and how long the run goes are the benchmark's.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from deepbore.cli.config import RunCLI
from deepbore.loop.quiet import quiet
from peers.variants.settings import Settings

CONFIGS = Path(__file__).parents[2] / "configs" / "papers"
ANY_PROBLEM = "deepbore.problems.Branin"  # in place of the file's own, whose data may not be here


def settings(config: Path) -> Settings:
    """New parts of a study, as a configuration describes them.

    Raises:
        SettingError, ArgumentError: for a file that `deepbore fit` would refuse.
    """
    with quiet():
        read = RunCLI(["--config", str(config), "--problem", ANY_PROBLEM])
    loop = read.loop
    given = {"classifier": read.model, "labels": read.labels, "acquisition": loop.acquisition}
    given |= {"candidates": loop.candidates, "n_initial": loop.n_initial}
    return {name: part for name, part in given.items() if part is not None}


def methods(folder: Path = CONFIGS) -> dict[str, Callable[[], Settings]]:
    """The methods that a folder of configurations describes."""
    files = sorted(folder.glob("*.yaml"))
    return {f"paper:{path.stem.replace('_', '-')}": partial(settings, path) for path in files}
