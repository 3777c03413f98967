#!/usr/bin/env python
"""Runs the notebooks of docs/tutorials and writes the pages of the site from them, with what they print and draw.

    python scripts/tutorials.py                     # all; some minutes
    python scripts/tutorials.py first_study         # one
    python scripts/tutorials.py --check             # runs nothing; exit 1 if a page has other code than its notebook

The notebooks are kept without outputs. Needs ipykernel and nbclient. A tool of the site would tie the pages to
it; Markdown is read by all of them, and by GitHub.
"""

import argparse
import base64
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

ROOT = Path(__file__).parents[1]
TUTORIALS = ROOT / "docs" / "tutorials"
PICTURES = ROOT / "docs" / "pictures"
LANGUAGES = {"py": "python", "yaml": "yaml"}
HEAD = "*This page is a notebook: [{name}.ipynb]({name}.ipynb).{needs}*"
NEEDS = {
    "first_study": " It needs `deepbore[plots]`.",
    "lightning_pruning": " It needs `deepbore[plots]`.",
    "several_machines": " It needs `deepbore[optuna]` and `dask[distributed]`.",
    "library": " It needs `deepbore[frames]`.",
}
WAIT = 1200  # seconds for a cell, on a machine with other work


def notebooks() -> list[Path]:
    """The notebooks, by name."""
    return sorted(TUTORIALS.glob("*.ipynb"))


def executed(path: Path, folder: Path, extra: str = "") -> Any:
    """A notebook with its outputs.

    Args:
        path: of the notebook.
        folder: in which its kernel runs.
        extra: code of one more cell at its end; empty for none.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
    """
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    if extra:
        notebook.cells.append(nbformat.v4.new_code_cell(extra))  # type: ignore[no-untyped-call]
    settings = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}  # of this deepbore
    settings["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=WAIT, resources=resources).execute(env=os.environ | settings)
    return notebook


# --- from a notebook to a page ---------------------------------------------------------------------------------------


def code_of(source: str) -> str:
    """The code of a cell as a block of Markdown; a cell that writes a file is that file."""
    written = re.match(r"%%writefile (\S+)\n", source)
    if written is not None:
        language = LANGUAGES[written[1].rpartition(".")[2]]
        return f"`{written[1]}`:\n\n```{language}\n{source[written.end() :]}\n```"
    language = "console" if source.startswith("!") else "python"
    shown = re.sub(r"^!", "$ ", source, flags=re.MULTILINE)
    return f"```{language}\n{shown}\n```"


def text_of(output: Any) -> str:
    """What an output says; empty for pictures and what goes to the standard error."""
    if output.output_type == "stream":
        return str(output.text) if output.name == "stdout" else ""
    return "" if "image/png" in output.data else str(output.data.get("text/plain", ""))


def shown_of(cell: Any, name: str, number: int) -> list[str]:
    """What a cell prints and draws, as blocks; its picture is written to docs/pictures."""
    said = "".join(map(text_of, cell.outputs)).rstrip()
    blocks = [f"```text\n{said}\n```"] if said and not cell.source.startswith("%%") else []
    for output in cell.outputs:
        drawn = output.get("data", {}).get("image/png")
        if drawn is not None:
            target = PICTURES / f"tutorial-{name}-{number}.png".replace("_", "-")
            keep(base64.b64decode(drawn), target)
            blocks.append(f"![What the line above draws](../pictures/{target.name})")
    return blocks


def keep(picture: bytes, target: Path) -> None:
    """Writes a picture with few colours."""
    from PIL import Image

    target.write_bytes(picture)
    with Image.open(target) as image:
        image.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)


def page_of(notebook: Any, name: str) -> str:
    """The Markdown of an executed notebook."""
    blocks: list[str] = []
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            blocks.append(cell.source)
        else:
            blocks += [code_of(cell.source), *shown_of(cell, name, number)]
    blocks.insert(1, HEAD.format(name=name, needs=NEEDS.get(name, "")))
    return "\n\n".join(blocks) + "\n"


def is_current(path: Path) -> bool:
    """Whether the page of a notebook has its text and code."""
    page = path.with_suffix(".md").read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells  # type: ignore[no-untyped-call]
    parts = [cell.source if cell.cell_type == "markdown" else code_of(cell.source) for cell in cells]
    return [part for part in parts if part not in page] == []


def main() -> int:
    """Runs and writes what is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    chosen = [path for path in notebooks() if not given.names or path.stem in given.names]
    if given.check:
        return int(not all(map(is_current, chosen)))
    for path in chosen:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder))
        path.with_suffix(".md").write_text(page_of(notebook, path.stem), encoding="utf-8")
        print(path.stem)
    return 0


if __name__ == "__main__":
    sys.exit(main())
