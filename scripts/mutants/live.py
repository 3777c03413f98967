"""Tests with the code of a mutant given to functions that are there already: forks of a process that has all tests."""

import gc
from collections.abc import Callable, Collection, Iterator
from types import CodeType, FunctionType

import pytest

from mutants.forks import forked
from mutants.mutation import Mutant
from mutants.tracing import Trace

NO_FUNCTION = 77  # exit status: the change is in none of the functions that are there


def _functions(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _functions(const)


def give_code(mutant: Mutant) -> bool:
    """Whether there are functions that the mutant changes, to which its code is given."""
    path = str(mutant.path.resolve())
    old, new = (list(_functions(compile(source, path, "exec"))) for source in (mutant.path.read_text(), mutant.source))
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        return False
    codes = {(a.co_qualname, a.co_firstlineno): b for a, b in zip(old, new, strict=True) if a != b}
    found = False
    for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        code = function.__code__
        if code.co_filename == path and (changed := codes.get((code.co_qualname, code.co_firstlineno))):
            if changed.co_freevars != code.co_freevars:
                return False
            function.__code__ = changed
            found = True
    return found


class Live:
    """A plugin of pytest: once tests are collected, each mutant is tried in a fork, and no test runs here.

    Tests that run the changed line are tried first, then their files: a fixture that runs it may be shared there.
    """

    def __init__(self, mutants: list[Mutant], trace: Trace, report: Callable[[Mutant, bool], None]):
        self.mutants, self.trace, self.report = mutants, trace, report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        every = self.quick_first(session, self.trace.seconds)
        if forked(lambda: self.child(session, every, None), self.trace.limit(self.trace.seconds)):
            raise pytest.UsageError("a test fails without a mutant when quick ones run first")
        for mutant in self.mutants:
            status = self.tried(session, mutant)
            if status != NO_FUNCTION:
                self.report(mutant, status != 0)
        return True

    def tried(self, session: pytest.Session, mutant: Mutant) -> int | None:
        """Exit status of the tests of a mutant; 0 if there are none."""
        files = self.trace.files(mutant)
        first = self.quick_first(session, self.trace.tests(mutant))
        status: int | None = 0
        for items in (first, [item for item in session.items if item.nodeid.split("::")[0] in files]):
            if status == 0 and items:
                limit = self.trace.limit(item.nodeid for item in items)
                status = forked(lambda items=items: self.child(session, items, mutant), limit)
        return status

    def quick_first(self, session: pytest.Session, tests: Collection[str]) -> list[pytest.Item]:
        return sorted((i for i in session.items if i.nodeid in tests), key=lambda i: self.trace.seconds[i.nodeid])

    @staticmethod
    def child(session: pytest.Session, items: list[pytest.Item], mutant: Mutant | None) -> int:
        if mutant is not None and not give_code(mutant):
            return NO_FUNCTION
        for item, following in zip(items, [*items[1:], None], strict=True):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return 1
        return 0
