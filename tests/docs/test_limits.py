"""No limit is silent: each limit of the package stands in docs/limits.md, with its value and what happens at it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE, PAGE = ROOT / "deepbore", ROOT / "docs" / "limits.md"
ROW = re.compile(r"^\| `([\w/]+)` `([A-Z_0-9]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)
NAMED = re.compile(
    r"(^|_)(LONGEST|LARGEST|MOST|MAX|LATEST|PATIENCE|WAIT|AWAY|LATE|GRACE|LOCKED|LIMIT|ENUMERABLE|EXHAUSTIVE|COUNTABLE|"
    r"CONSIDERED|ROWS|SHOWN|TRIES|ROUNDS|KEPT|POOL|CAP|CEILING|TIMEOUT|LEAST_TIME|WORK|SEARCH)(_|$)"
)
SAID = re.compile(r"\bat most\b|\bnewest\b|\bmaximum of\b|\bno more than\b")
NUMERICS = {  # numbers of formulas, which limit nothing that a user has
    ("classifiers/earlier_tasks.py", "MAX_WEIGHT"),
    ("classifiers/networks/laplace_torch.py", "ROUNDS"),
    ("classifiers/wrappers.py", "MOST_CERTAIN"),
    ("plots/style.py", "LARGEST"),
    ("strategies/cma_es.py", "MOST"),
    ("strategies/evolution.py", "MOST_SHARE"),
    ("space/parameters/base.py", "LARGEST_STEP"),
    ("space/parameters/numeric.py", "FEW_ROWS"),
}
BESIDE = {"problems", "testing"}  # benchmarks, and checks of one's own parts


def number(node):
    """The number that an expression of plain numbers is; None for any other."""
    try:
        value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
    except Exception:
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def constants(source):
    """Name -> number and comment, of the constants at the top of a module."""
    lines, found = source.splitlines(), {}
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]
            for name, value in pairs:
                if isinstance(name, ast.Name) and name.id.isupper() and (known := number(value)) is not None:
                    found[name.id] = known, lines[node.lineno - 1].partition("#")[2]
    return found


def limits_in(source):
    """Name -> number, of those constants that limit something, by their name or by what is said of them."""
    return {name: value for name, (value, said) in constants(source).items() if NAMED.search(name) or SAID.search(said)}


def of_the_package():
    """(file, name) -> number, of all limits."""
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    kept = [path for path in sorted(files) if path.parts[0] not in BESIDE]
    return {
        (path.as_posix(), name): value
        for path in kept
        for name, value in limits_in((PACKAGE / path).read_text(encoding="utf-8")).items()
    }


def on_the_page():
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    return {(f"{file}.py", name): (value, what, then) for file, name, value, what, then in rows}


def test_each_limit_is_on_the_page_and_no_other():
    there, here = of_the_package(), on_the_page()
    unsaid = sorted(there.keys() - here.keys() - NUMERICS)
    assert not unsaid, f"docs/limits.md says nothing of {unsaid}: say what happens there, and that users see it"
    all_constants = {
        (file, name) for file, _ in here for name in constants((PACKAGE / file).read_text(encoding="utf-8"))
    }
    assert here.keys() <= all_constants


@pytest.mark.parametrize("place", sorted(on_the_page()), ids="-".join)
def test_the_page_has_its_value_and_says_what_happens(place):
    file, name = place
    value, what, then = on_the_page()[place]
    assert number(ast.parse(value.strip(), mode="eval").body) == constants((PACKAGE / file).read_text())[name][0]
    assert len(what) > 5
    assert len(then) > 5


def test_a_new_silent_limit_is_found():
    source = (
        "import math\nMOST_ROWS = 10\nPART, TIMEOUT = 3, 2.5\nDRAWN: int = 2**5  # at most\nFLAG = True\nEPS = 1e-9\n"
    )
    assert limits_in(source) == {"MOST_ROWS": 10, "TIMEOUT": 2.5, "DRAWN": 32}


@pytest.mark.parametrize("kept", [0, 1])
def test_no_text_is_cut_by_a_number_in_the_middle_of_a_function(kept):
    """Slices by a plain number of a hundred or more are limits without a name."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in BESIDE:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Slice):
                ends = [each for each in (node.lower, node.upper)[kept : kept + 1] if each is not None]
                found += [(path.name, node.lineno) for each in ends if abs(number(each) or 0) >= 100]
    assert not found
