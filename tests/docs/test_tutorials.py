"""The tutorials: notebooks without outputs, which run, and whose pages have their code."""

import nbformat
import pytest
import yaml

import tutorials
from processes import ROOT

NOTEBOOKS = {path.stem: path for path in tutorials.notebooks()}
SPENT = "import os\nprint(sum(os.times()[:4]))"
SECONDS = 60  # of CPU at most, processes that the notebook starts included


def test_there_are_six_and_each_is_in_the_menu():
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)["nav"]
    menu = next(part["Tutorials"] for part in nav if "Tutorials" in part)
    pages = [place for entry in menu for place in entry.values()]
    assert sorted(pages) == [f"tutorials/{name}.md" for name in sorted(NOTEBOOKS)]
    assert len(pages) == 6


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_kept_without_outputs(name):
    notebook = nbformat.read(NOTEBOOKS[name], as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_its_page_has_its_text_and_code(name):
    assert tutorials.is_current(NOTEBOOKS[name]), f"run: python scripts/tutorials.py {name}"


def test_a_page_that_has_other_code_is_noticed(tmp_path):
    cell = nbformat.v4.new_code_cell("print(1)")
    path = tmp_path / "one.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# One"), cell]), path)
    path.with_suffix(".md").write_text("# One\n\n```python\nprint(1)\n```\n")
    assert tutorials.is_current(path)
    path.with_suffix(".md").write_text("# One\n\n```python\nprint(2)\n```\n")
    assert not tutorials.is_current(path)


def test_files_and_commands_are_shown_as_such():
    assert tutorials.code_of("%%writefile a.yaml\nb: 1") == "`a.yaml`:\n\n```yaml\nb: 1\n```"
    assert tutorials.code_of("!deepbore list runs") == "```console\n$ deepbore list runs\n```"


@pytest.mark.slow
@pytest.mark.timeout(1500)  # on a machine with other work a minute of CPU may take long
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_within_a_minute_of_cpu(name, tmp_path):
    notebook = tutorials.executed(NOTEBOOKS[name], tmp_path, extra=SPENT)
    assert 0 < float(notebook.cells[-1].outputs[0].text) < SECONDS
    said = [
        text for cell in notebook.cells if cell.cell_type == "code" for text in map(tutorials.text_of, cell.outputs)
    ]
    assert "".join(said)
    assert not [text for text in said if "Traceback" in text or "error:" in text]
