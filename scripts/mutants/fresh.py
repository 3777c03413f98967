"""Tests with a mutant imported in the place of its file, in a fork that has not imported deepbore before."""

import importlib
import importlib.util
import os
import sys
import warnings
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader

from mutants.forks import forked
from mutants.mutation import Mutant

SLOW_IMPORTS = ("torch", "lightning", "botorch.acquisition", "gpytorch", "laplace", "scipy.stats")
SLOW_IMPORTS += ("sklearn.linear_model", "jsonargparse", "hypothesis", "pandas", "pytest")
NO_TEST = 5  # pytest's exit status


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
        self.name = ".".join(mutant.path.with_suffix("").parts).removesuffix(".__init__")
        self.loader = _Loader(self.name, mutant)

    def find_spec(self, fullname, path, target=None):
        if fullname == self.name:
            return importlib.util.spec_from_file_location(fullname, self.loader.path, loader=self.loader)
        return None


def prepare() -> None:
    """Imports what all forks need and no mutant changes."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, os.getcwd())
    for name in SLOW_IMPORTS:
        importlib.import_module(name)


def run_pytest(args: list[str], *plugins: object) -> int:
    """The exit status of pytest, up to the first failure."""
    import pytest

    options = ["-x", "-q", "-s", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--disable-warnings"]
    return int(pytest.main([*options, *args], plugins))


def notices(mutant: Mutant, files: list[str], seconds: float) -> bool:
    """Whether a test of these files fails or takes too long."""

    def run() -> int:
        sys.meta_path.insert(0, _Finder(mutant))
        return run_pytest(files)

    return bool(files) and forked(run, seconds) not in (0, NO_TEST)
