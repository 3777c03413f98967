"""What the simulated systems have in common: workers that are started anew, names whose case does not count."""

import builtins
import importlib.abc
import importlib.util
import io
import multiprocessing.context as contexts
import os
import sys
import tempfile
from functools import wraps


def guarded(function, *refusals, where=(0,)):
    """A function of os that first refuses what the simulated system refuses about its arguments in these places."""

    @wraps(function)
    def call(*args, **settings):
        for place in where:
            for refuse in refusals:
                if place < len(args):
                    refuse(args[place])
        return function(*args, **settings)

    return call


def only_spawn(refuse_others):
    """Has multiprocessing start its processes anew."""
    own = contexts.DefaultContext.get_context

    def get_context(self, method=None):
        if refuse_others and method not in (None, "spawn"):
            raise ValueError(f"cannot find context for {method!r}")
        return own(self, method)

    import multiprocessing

    contexts.DefaultContext.get_context = get_context
    contexts._default_context._default_context = contexts._concrete_contexts["spawn"]
    multiprocessing.get_context = contexts._default_context.get_context
    methods = ["spawn"] if refuse_others else ["spawn", "fork", "forkserver"]
    multiprocessing.get_all_start_methods = lambda: methods


def without(module, names):
    """Takes names from a module, if they are there."""
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)


def _refuse_proc(path):
    if isinstance(path, (str, os.PathLike)) and str(os.fspath(path)).startswith("/proc") and not _asked_by_psutil():
        raise FileNotFoundError(2, "No such file or directory", os.fspath(path))


def _asked_by_psutil():
    """Whether psutil asks, which has other means there."""
    frame = sys._getframe(3)
    for _ in range(5):
        if frame is None:
            return False
        if f"{os.sep}psutil{os.sep}" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def no_proc():
    """Hides Linux's account of its processes, but from psutil, which has other means elsewhere."""
    for name in ("open", "stat", "lstat", "listdir", "scandir", "readlink"):
        setattr(os, name, guarded(getattr(os, name), _refuse_proc))
    builtins.open = io.open = guarded(builtins.open, _refuse_proc)


def case_is_ignored():
    """Has names of the temporary folder stand for files whose names differ from them in case alone."""
    home, listed = os.path.realpath(tempfile.gettempdir()) + os.sep, os.scandir

    def on_disk(path):
        text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
        if not isinstance(text, str) or not os.path.abspath(text).startswith((home, tempfile.gettempdir())):
            return path
        folder, name = os.path.split(text)
        try:
            with listed(folder or ".") as entries:
                names = [entry.name for entry in entries]
        except OSError:
            return path
        same = next((each for each in names if each.casefold() == name.casefold()), name)
        return path if name in names else os.path.join(folder, same)

    def found(function, where=(0,)):
        @wraps(function)
        def call(*args, **settings):
            return function(*[on_disk(each) if place in where else each for place, each in enumerate(args)], **settings)

        return call

    for name in ("open", "stat", "lstat", "mkdir", "unlink", "remove", "rmdir"):
        setattr(os, name, found(getattr(os, name)))
    for name in ("replace", "rename", "link"):
        setattr(os, name, found(getattr(os, name), where=(0, 1)))
    builtins.open = io.open = found(builtins.open)


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls functions with modules that have just been imported, or in place of importing them.

    Args:
        changes: name of a module -> what is called with it; it may raise what its import raises there.
    """

    def __init__(self, changes):
        self.changes = changes
        self._looking = set()

    def find_spec(self, name, path, target=None):
        """The spec as it is, with a loader that calls the function afterwards."""
        if name not in self.changes or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.remove(name)
        if spec is None:
            return None
        own = spec.loader.exec_module

        def exec_module(module):
            own(module)
            self.changes[name](module)

        spec.loader.exec_module = exec_module
        return spec

    def install(self):
        """Puts itself before the other finders."""
        sys.meta_path.insert(0, self)
