"""Tests with a mutant in the place of its file: in a fork of a process that has imported torch and others before."""

import contextlib
import importlib
import importlib.util
import os
import signal
import sys
import tempfile
import time
import warnings
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader

from mutants.mutation import Mutant

SLOW_IMPORTS = (
    "torch",
    "lightning",
    "botorch.acquisition",
    "gpytorch",
    "laplace",
    "scipy.stats",
    "sklearn.linear_model",
)
SLOW_IMPORTS += ("jsonargparse", "hypothesis", "pandas", "pytest")


class _Loader(SourceFileLoader):
    """The mutant's code under the name of its file; no bytecode is left."""

    def __init__(self, name: str, mutant: Mutant):
        super().__init__(name, str(mutant.path.resolve()))
        self.mutant = mutant

    def get_code(self, fullname: str) -> object:
        return compile(self.mutant.source, self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    """The module of the mutant, before all others look for it."""

    def __init__(self, mutant: Mutant):
        name = ".".join(mutant.path.with_suffix("").parts).removesuffix(".__init__")
        self.name, self.loader = name, _Loader(name, mutant)

    def find_spec(self, fullname, path, target=None):
        if fullname == self.name:
            return importlib.util.spec_from_file_location(fullname, self.loader.path, loader=self.loader)
        return None


def prepare() -> None:
    """Imports what all trials need and no mutant changes."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, os.getcwd())
    for name in SLOW_IMPORTS:
        importlib.import_module(name)


def _child(mutant: Mutant | None, args: list[str], plugins: list[object], folder: str) -> int:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
    os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    import pytest

    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *args], plugins))


def _wait(pid: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return None


def tests_pass(mutant: Mutant | None, args: list[str], plugins: list[object], seconds: float) -> bool:
    """Whether pytest passes with this mutant, or without any; not if it takes longer or kills its process."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                status = _child(mutant, args, plugins, folder)
            finally:
                os._exit(status)
        status = _wait(pid, seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what the tests have begun ends with them
        if status is None:
            os.waitpid(pid, 0)
    return status in (0, 5)  # 5: none of the tests asked for was found
