"""scripts/mutants: what is changed, and whether tests notice."""

from pathlib import Path

import pytest

pytest.importorskip("mutmut")
from mutants.__main__ import equivalents
from mutants.mutation import sampled_mutants
from mutants.tracing import statement_in_function

SOURCE = '''
def least(values, limit: float = 1.0):
    """The least value."""
    if limit < 0:
        raise ValueError(f"limit must not be below {0}")
    print(values,
          limit)
    return min(values, default=limit)
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "least.py"
    path.write_text(SOURCE)
    return path


def test_conditions_numbers_calls_and_names_are_changed_but_no_texts(file):
    assert {(mutant.line, mutant.after) for mutant in sampled_mutants([file], None, 0)} == {
        (2, "def least(values, limit: float = 2.0):"),
        (4, "if limit <= 0:"),
        (4, "if limit < 1:"),
        (4, "if not (limit < 0):"),
        (6, "pass"),
        (8, "return max(values, default=limit)"),
        (8, "return min(values, )"),
    }


def test_a_sample_depends_on_its_seed_only(file):
    first = sampled_mutants([file], 3, seed=1)
    assert len(first) == 3
    assert first == sampled_mutants([file], 3, seed=1)
    assert first != sampled_mutants([file], 3, seed=2)


def test_the_statement_at_a_line_leaves_out_those_within(file):
    assert statement_in_function(file, 2) is None
    assert statement_in_function(file, 4) == range(4, 5)
    assert statement_in_function(file, 7) == range(6, 8)


def test_the_list_of_equivalents_is_read_and_names_files_that_are_there():
    text = Path("scripts/mutants/equivalent.txt").read_text()
    assert all(Path(path).exists() for path, _, _ in equivalents(text))
    assert equivalents("a.py\n- x\n+ y\n= none sees it\n") == {("a.py", "x", "y")}
    with pytest.raises(ValueError, match="reason"):
        equivalents("a.py\n- x\n+ y\n")
