"""Sentences that a reader of English as a second language can follow: at most thirty words."""

import ast
import re
from pathlib import Path

import pytest

import deepbore

PACKAGE = Path(deepbore.__file__).parent
ROOT = PACKAGE.parent
LONG = 30  # words
LEFT = {  # pages with longer sentences, and how many: pages of evidence above all. No page gets more
    "ablation.md": 118, "compared.md": 15, "results.md": 2, "start.md": 1, "theory.md": 25,
}  # fmt: skip
BANNED = (
    "whoever looks on",
    "somebody",
    "none of the study's",
)  # one plainer word each: observers, a user, not part of


def long_sentences(text: str) -> list[str]:
    """Sentences of more than thirty words; code counts as a word, and formulas with powers as none."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])", r"\1", text)
    sentences = re.split(r"(?<=[.!?:;])\s+(?=[A-Z\"'(`*]|code)", " ".join(text.split()))
    return [each for each in sentences if len(re.findall(r"[\w'’\-/.]+", each)) > LONG and "^" not in each]


def paragraphs(page: str) -> list[str]:
    """The running text of a page: without code, tables, formulas and headlines; each point of a list by itself."""
    page = re.sub(r"```.*?```|<!--.*?-->|\$\$.*?\$\$", "", page, flags=re.DOTALL)
    found: list[str] = []
    for block in re.split(r"\n\s*\n", page):
        lines: list[str] = []
        for line in block.split("\n"):
            if re.match(r"[|#]", line) or (line.startswith("    ") and not lines):
                continue
            point = re.match(r"\s*([-*]|\d+\.)\s", line)
            if point is not None:
                found.append(" ".join(lines))
                lines = []
            lines.append(line if point is None else line[point.end() :])
        found.append(" ".join(lines))
    return found


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_has_no_more_long_sentences_than_before(page):
    found = [each for part in paragraphs(page.read_text(encoding="utf-8")) for each in long_sentences(part)]
    most = LEFT.get(page.name, 0)
    assert len(found) <= most, "\n\n".join(found)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_docstring_begins_with_sentences_that_can_be_read(path):
    text = path.read_text(encoding="utf-8")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    said = [said.split("\n\n")[0] for node in nodes if (said := ast.get_docstring(node))]
    assert [each for part in said for each in long_sentences(part)] == []
    assert [word for word in BANNED if word in text] == []


def test_a_long_sentence_is_seen_and_a_link_is_no_sentence():
    assert long_sentences("One word after another. W" + "ord " * 31) == ["W" + ("ord " * 31).strip()]
    assert long_sentences("[a](https://" + "word-" * 40 + ") is `" + "word " * 40 + "`, both short.") == []
    assert paragraphs("# Title\n\ntext\n\n- one\n- two\n\n| a | b |\n") == ["", "text", "", "one", "two", ""]
