"""The shape of the house: imports go one way, every export has a case, files stay readable."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import cases
import deepbore
from deepbore import acquisition, candidates, classifiers, errors, labels

PACKAGE = Path(deepbore.__file__).parent
ROOMS = [
    "errors", "runs", "threads", "ranks", "objective", "worker", "parameters", "features", "moves", "conditions",
    "space", "earlier", "journal", "observations", "frames", "thresholds", "labels", "datamodule", "classifiers",
    "acquisition",
    "candidates", "evaluators", "measures", "snapshot", "loop", "resume", "trainer", "study", "suggester", "optimize",
    "progress", "tune", "cli", "run",
]  # fmt: skip
BESIDE = {"problems", "plots", "testing", "integrations"}  # nothing within the house imports them
ALLOWED = {("run", "problems"), ("cli", "plots"), ("cli", "run"), ("cli", "study")}  # the front door opens every room


def imports(path: Path) -> set[str]:
    """Rooms of deepbore that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("deepbore."):
            found.add(node.module.split(".")[1])
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_room_imports_only_from_rooms_on_its_left(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room == "__init__" or room in BESIDE:
        return
    for other in imports(path) - {room}:
        if (room, other) not in ALLOWED:
            assert other not in BESIDE, f"{room} imports {other}"
            assert ROOMS.index(other) < ROOMS.index(room), f"{room} imports {other}"


@pytest.mark.parametrize(
    ("room", "base", "listed"),
    [
        (classifiers, classifiers.Classifier, cases.CLASSIFIERS),
        (labels, labels.Labelling, cases.LABELLINGS),
        (acquisition, acquisition.Acquisition, cases.ACQUISITIONS),
        (candidates, candidates.Candidates, cases.CANDIDATES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_export_has_a_case(room, base, listed):
    concrete = {
        name
        for name, value in vars(room).items()
        if inspect.isclass(value) and issubclass(value, base) and not inspect.isabstract(value)
    }
    assert concrete == set(listed)


def test_every_name_of_the_top_level_exists():
    for name in deepbore.__all__:
        assert getattr(deepbore, name) is not None
    assert set(deepbore.__all__) <= set(dir(deepbore))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = deepbore.no_such_name


def test_every_error_is_one_of_ours_and_one_of_pythons():
    ours = [value for value in vars(errors).values() if inspect.isclass(value) and value is not errors.DeepBoreError]
    for error in ours:
        assert issubclass(error, errors.DeepBoreError)
        assert issubclass(error, (ValueError, TypeError, RuntimeError, ImportError))


def test_files_stay_readable():
    long = {path.name: n for path in PACKAGE.rglob("*.py") if (n := len(path.read_text().splitlines())) > 300}
    assert not long


def test_import_is_light():
    heavy = "import sys, deepbore; sys.exit(bool({'torch', 'lightning', 'botorch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", heavy], check=False).returncode == 0
