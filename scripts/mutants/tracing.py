"""Which tests run which lines of a room, and how long each test takes."""

import ast
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import coverage
import pytest

from mutants.mutation import Mutant


class Tracing:
    """A plugin of pytest that writes the tests of each line, and the seconds of each test, to a file."""

    def __init__(self, files: list[Path], target: Path):
        self.files, self.target = [str(path.resolve()) for path in files], target
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(data_file=None, config_file=False, include=self.files)

    def pytest_sessionstart(self) -> None:
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        begun = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - begun
        return result

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {path: data.contexts_by_lineno(path) for path in self.files}
        self.target.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


class Trace:
    """What `Tracing` wrote: the tests of a mutant."""

    def __init__(self, path: Path):
        read = json.loads(path.read_text())
        self.seconds: dict[str, float] = read["seconds"]
        self.lines: dict[str, dict[str, list[str]]] = read["lines"]

    def tests(self, mutant: Mutant) -> set[str]:
        """Tests that run the changed statement; all if it runs at import."""
        statement = statement_in_function(mutant.path, mutant.line)
        if statement is None:
            return set(self.seconds)
        lines = self.lines[str(mutant.path.resolve())]
        return {test for line in statement for test in lines.get(str(line), []) if test}

    def files(self, mutant: Mutant) -> list[str]:
        """Test files with a test of the mutant."""
        return sorted({test.split("::")[0] for test in self.tests(mutant)})

    def limit(self, tests: Iterable[str]) -> float:
        """Seconds after which tests of a mutant are taken for an endless loop."""
        return 10 + 4 * sum(self.seconds.get(test, 1.0) for test in tests)


def statement_in_function(path: Path, line: int) -> range | None:
    """Lines of the statement at a line, without the statements in it; None outside of functions' bodies."""
    statements = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.stmt)]
    around = [node for node in statements if _first(node) <= line <= node.end_lineno]
    if not any(isinstance(node, ast.FunctionDef) and _first(node.body[0]) <= line for node in around):
        return None
    inner = max(around, key=_first)
    parts = [_first(node) for node in ast.walk(inner) if isinstance(node, ast.stmt) and node is not inner]
    return range(_first(inner), min(parts, default=inner.end_lineno + 1))


def _first(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
