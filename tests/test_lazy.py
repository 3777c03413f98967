"""Names that are imported when they are first used."""

import importlib
import sys

import pytest


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of one lazy name, `thing`, in a module with the given text."""

    def make(module):
        folder = tmp_path / "lazily"
        folder.mkdir()
        folder.joinpath("__init__.py").write_text(
            "from deepbore.lazy import attach\n__getattr__, __dir__, __all__ = attach(__name__, __file__)\n"
        )
        folder.joinpath("__init__.pyi").write_text("from .module import thing as thing\n")
        folder.joinpath("module.py").write_text(module)
        return importlib.import_module("lazily")

    monkeypatch.syspath_prepend(tmp_path)
    yield make
    for name in [name for name in sys.modules if name.partition(".")[0] == "lazily"]:
        del sys.modules[name]


def test_a_name_is_imported_when_it_is_used(package):
    made = package("thing = 3")
    assert dir(made) == ["thing"]
    assert "lazily.module" not in sys.modules
    assert made.thing == 3


def test_a_name_that_is_not_there_is_no_attribute(package):
    assert not hasattr(package("thing = 3"), "other")


def test_a_mistake_in_what_is_imported_is_said(package):
    package("import math\nthing = math.sine")
    with pytest.raises(ImportError, match=r"lazily\.thing cannot be imported: module 'math' has no attribute 'sine'"):
        from lazily import thing  # noqa: F401


def test_other_errors_are_as_they_are(package):
    made = package("raise RuntimeError('no memory')")
    with pytest.raises(RuntimeError, match=r"^no memory$"):
        made.thing  # noqa: B018
