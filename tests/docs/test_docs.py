"""The documentation: it builds, its links lead somewhere, its code runs, and what it shows is what there is."""

import gc
import inspect
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from pydoc import ErrorDuringImport, locate

import numpy as np
import pytest
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import CSVLogger
from mkdocstrings import Inventory
from sklearn.svm import SVC

import deepbore
from cases import CLASSIFIERS
from deepbore import plots
from deepbore.acquisition import UpperConfidenceBound
from deepbore.classifiers import Calibrated, Link, Relaxed
from deepbore.cli import fit_help, main as cli, share, tune
from deepbore.errors import MissingPackage
from deepbore.integrations.sklearn import DeepBoreSearchCV
from deepbore.loop import Recipe
from deepbore.testing import TOY_SPACES
from processes import ENV, ROOT

DOCS = ROOT / "docs"

PACKAGE = Path(deepbore.__file__).parent

PAGES = {path.name: path for path in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]}

OFFLINE = """
import socket, sys
sys.path.append({scripts!r})

def refuse(*_, **__):
    raise OSError("the documentation must build without a network")

socket.socket.connect = socket.getaddrinfo = refuse
import make_site
make_site.main([])
""".format(scripts=str(ROOT / "scripts"))

BLOCK = re.compile(r"(?:<!-- not run: (?P<reason>.+?) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)```", re.DOTALL)


def of_the_gallery():
    """Small runs in place of those that scripts/make_gallery.py makes."""
    space = {"lr": deepbore.Real(1e-4, 1, log=True), "width": deepbore.Integer(4, 128, log=True)}
    study = deepbore.Study(space, seed=0)

    def train(params, trial):
        for epoch in range(3):
            trial.report(params["lr"] + params["width"] / 100 + 1 / (1 + epoch), step=epoch)
        return params["lr"] + params["width"] / 100

    study.optimize(train, 12, progress=False)
    study.fit()
    several = deepbore.Study(space, seed=0, directions=["minimize", "maximize"])
    several.optimize(lambda params: (params["lr"], float(params["width"])), 5, progress=False)
    groups = [plots.Curves("deepbore", [np.array([3.0, 2.0, 1.0]), np.array([2.0, 1.0, 1.0])])]
    return {"plots": plots, "study": study, "branin": study, "several": several, "groups": groups}


def of_the_readme():
    return {"train_and_validate": lambda **params: params["lr"] * params["units"]}


GIVEN = {"README.md": of_the_readme, "gallery.md": of_the_gallery}  # the reader's own


def blocks(page, language):
    """The code blocks of a page in a language, but for those that are marked as not run, or are files themselves."""
    found = [block for block in BLOCK.finditer(PAGES[page].read_text()) if block["language"] == language]
    return [block["code"] for block in found if not block["reason"] and "--8<--" not in block["code"]]


def built(folder):
    """The finished process of a strict build of a copy of the documentation; its site is in build/site."""
    command = [sys.executable, "-c", OFFLINE]
    return subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True, timeout=600, check=False)


def copied(folder):
    """A folder with what the site is built from."""
    for name in ("deepbore", "examples", "tests", "scripts"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(DOCS, folder / "docs")
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site."""
    folder = copied(tmp_path_factory.mktemp("site"))
    done = built(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


class Fetched(HTMLParser):
    """Notes what a browser fetches for a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        if tag != "a":
            self.found += [value for name, value in attrs if name in ("src", "href", "srcset", "data") and value]


# --- the site --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pages_fetch_nothing_from_the_network(site):
    for page in site.rglob("*.html"):
        parser = Fetched()
        parser.feed(page.read_text())
        assert parser.found
        assert not [link for link in parser.found if "//" in link], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", sheet.read_text()), sheet


@pytest.mark.slow
def test_everything_public_is_in_the_reference(site):
    names = set(Inventory.parse_sphinx((site / "objects.inv").open("rb")))
    ends = {name.rpartition(".")[2] for name in names}
    modules = {name for name in deepbore.__all__ if inspect.ismodule(getattr(deepbore, name))}
    assert set(deepbore.__all__) - modules <= ends
    assert {"deepbore.errors.SettingError", "deepbore.plots.slices", "deepbore.loop.RunState"} <= names
    assert {"deepbore.study.Study.ask", "deepbore.study.Study.best_trial"} <= names  # its own, and what it inherits


@pytest.mark.slow
def test_examples_in_docstrings_are_shown_as_code(site):
    shown = "".join(page.read_text() for page in (site / "api").rglob("*.html"))
    outside = re.sub(r"<pre.*?</pre>", "", shown, flags=re.DOTALL)
    assert shown.count("&gt;&gt;&gt;") > 50
    assert "&gt;&gt;&gt;" not in outside
    assert "Example::" not in outside
    assert "<blockquote" not in outside


@pytest.mark.slow
def test_a_broken_link_fails_the_build(tmp_path):
    copied(tmp_path)
    with (tmp_path / "docs" / "index.md").open("a") as file:
        file.write("\n[nowhere](nowhere.md) [no heading](how.md#no-heading) [nothing][deepbore.Nothing]\n")
    done = built(tmp_path)
    assert done.returncode != 0
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    assert said.count("Warning:") == 3
    for link in ("nowhere.md", "no-heading", "deepbore.Nothing"):
        assert link in said


def test_pictures_are_small():
    pictures = list((DOCS / "pictures").iterdir())
    assert pictures
    assert all(picture.stat().st_size < 100_000 for picture in pictures)


# --- what the pages say ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """Twice, as a script is: with what the first time has left."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(DOCS / "reactions", tmp_path / "reactions")  # the files that its reader has downloaded
    for _ in range(2):
        names = GIVEN.get(page, dict)()
        for code in blocks(page, "python"):
            exec(compile(code, page, "exec"), names)
        names.clear()
        gc.collect()  # the end of the script: its studies leave their journals


MY_MODULE = """import torch


def objective(params):
    return params["lr"]


class Wide(torch.nn.Sequential):
    def __init__(self, features, outputs):
        super().__init__(torch.nn.Linear(features, 32), torch.nn.SiLU(), torch.nn.Linear(32, outputs))
"""


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")])
def test_the_configurations_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "my_module", raising=False)
    (tmp_path / "my_module.py").write_text(MY_MODULE)
    for number, code in enumerate(blocks(page, "yaml")):
        (tmp_path / "mine.yaml").write_text(code)
        small = ["--loop.n_trials", "12", "--evaluation.workers", "1", "--run", str(number)]
        assert cli.main(["fit", "--config", "mine.yaml", *small]) == 0
        assert (tmp_path / str(number) / "journal.jsonl").exists()


def test_the_command_line_is_shown_as_it_is():
    page = PAGES["cli.md"].read_text()
    for text in (cli.HELP, fit_help.HELP, tune.HELP, share.LEAD):
        assert "\n".join(f"    {line}".rstrip() for line in text.strip().splitlines()) in page


def test_the_house_has_every_room_in_the_order_of_the_imports():
    page = PAGES["house.md"].read_text()
    rooms = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, re.MULTILINE)
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert set(rooms) == there - {"__init__", "__main__", "checks", "parts"}  # the last two are old names
    shown = re.search(r"^    text, names < errors, lazy, validation.*?(?=\n\n)", page, re.MULTILINE | re.DOTALL)[0]
    assert re.findall(r"\w+", shown.replace("beside them", "")) == rooms
    assert "\n".join(line.strip() for line in shown.splitlines()) in "\n".join(
        line.strip() for line in deepbore.__doc__.splitlines()
    )


def rows_of_table(page, heading):
    """The cells of the first table below a heading, code marks taken off."""
    below = PAGES[page].read_text().split(heading, 1)[1]
    table = re.search(r"^\|.*?(?=\n\n)", below, re.MULTILINE | re.DOTALL)[0]
    rows = table.replace("`", "").splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def default_parts(head):
    """The default labels and acquisition of a head, as the table writes them."""
    recipe = Recipe.resolve(TOY_SPACES["mixed"], 1, classifier=head)
    kappa = f"{recipe.acquisition.kappa:g}" if isinstance(recipe.acquisition, UpperConfidenceBound) else ""
    gamma = "1/3" if recipe.labels.gamma == 1 / 3 else recipe.labels.gamma
    labels = f"{type(recipe.labels).__name__}({gamma})"
    return [labels, f"{type(recipe.acquisition).__name__}({kappa})"]


def test_what_every_head_is_and_has_by_default_is_in_the_tables():
    heads = {name: CLASSIFIERS[name]() for name in CLASSIFIERS}
    scores_of = {"labels": Link.IDENTITY, "logits": Link.LOGIT, "probits": Link.PROBIT}
    described = {row[0]: row for row in rows_of_table("classifiers.md", "# Choosing a classifier")}
    assert described.keys() == heads.keys()
    wrappers = {name for name, row in described.items() if row[2] == "as its base"}
    for name in heads.keys() - wrappers:
        _, _, scores, posterior, gradients, _ = described[name]
        assert scores_of[scores] is heads[name].link
        assert ("mean only" not in posterior) == ("std" in heads[name].capabilities)
        assert ("members" in posterior) == ("members" in heads[name].capabilities)
        assert (gradients == "yes") == heads[name].differentiable
    shown = {}
    for names, *parts in rows_of_table("classifiers.md", "## The default labels and acquisition of each classifier"):
        shown |= dict.fromkeys(names.split(", "), parts)
    assert shown == {name: default_parts(heads[name]) for name in heads.keys() - wrappers}
    for name, (labels, acquisition) in shown.items():
        assert default_parts(Relaxed(CLASSIFIERS[name]())) == [labels, acquisition]
        bound = f"UpperConfidenceBound({heads[name].kappa:g})" if "std" in heads[name].capabilities else acquisition
        assert default_parts(Calibrated(CLASSIFIERS[name]())) == [labels, bound]


def test_every_extra_is_explained():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\| `deepbore\[(\w+)\]` \|", PAGES["start.md"].read_text())) == set(declared)


def test_every_example_is_shown():
    shown = set(re.findall(r'--8<-- "examples/(\S+)"', PAGES["examples.md"].read_text()))
    assert shown == {str(path.relative_to(ROOT / "examples")) for path in (ROOT / "examples").rglob("*.*")}


def test_code_of_a_page_that_is_that_of_an_example_is_the_same():
    """GitHub shows no snippets, so the guide has the code itself."""
    shown = [block for block in BLOCK.finditer(PAGES["guide.md"].read_text()) if block["language"] == "python"]
    assert len(shown) == 6
    for block in shown:
        path, _, section = block["reason"].removeprefix("this is ").partition(":")
        text = (ROOT / path).read_text()
        if section:
            marks = rf"# --8<-- \[start:{section}\]\n(.*?)^ *# --8<-- \[end:{section}\]"
            text = textwrap.dedent(re.search(marks, text, re.DOTALL | re.MULTILINE)[1]).strip("\n") + "\n"
        assert block["code"] == text


def test_each_feature_that_there_is_works(tmp_path, monkeypatch):
    """The code in the table of features, line by line; a dotted name is that of something; a command is known."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "earlier.csv").write_text("lr,units,value\n0.001,64,0.5\n")
    rows = [row for row in rows_of_table("coming_from.md", "## What there is") if not row[0].startswith("**")]
    text = PAGES["coming_from.md"].read_text()
    assert f"expect, {len(rows)} things" in text
    assert {row[1] for row in rows} == {"yes", "no", "in part"}
    names = features()
    ran = 0
    for line in text.split("## What there is", 1)[1].split("## Optuna", 1)[0].splitlines():
        for code in re.findall(r"`([^`]+)`", line) if "| yes |" in line else ():
            if code.startswith(("deepbore ", "optuna-dashboard ")):
                assert code.split()[0] != "deepbore" or f"deepbore {code.split()[1]}" in cli.HELP
            elif re.fullmatch(r"deepbore\.[\w.]+|\w+", code):
                assert code in {"DeepBoreSampler", "Leader"} or locate(code) is not None, code
            else:
                eval(code, names)
                ran += 1
    assert ran > 30


def rate(params):
    return params["lr"]


def features():
    """What the code in the table of features speaks of."""

    @dataclass
    class Settings:
        flag: bool = True

    space = deepbore.SearchSpace({"lr": deepbore.Real(1e-5, 1e-1, log=True), "units": deepbore.Integer(16, 512)})
    study = deepbore.Study(space, seed=0)
    study.optimize(rate, 12)
    front = deepbore.Study(space, directions=["minimize", "minimize"])
    given = {"space": space, "study": study, "front": front, "f": rate, "Settings": Settings}
    parts = {"Trainer": Trainer, "CSVLogger": CSVLogger, "SVC": SVC, "DeepBoreSearchCV": DeepBoreSearchCV}
    ours = {name: getattr(deepbore, name) for name in dir(deepbore)}
    return {**ours, **given, **parts, "pool": ThreadPoolExecutor(1)}


@pytest.mark.parametrize("page", PAGES)
def test_names_and_files_that_a_page_mentions_exist(page):
    text = re.sub(r"https?://\S+", "", PAGES[page].read_text())
    for path in re.findall(r"\b((?:examples|scripts|configs)/\w+(?:\.\w+)?)", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"\b((?:deepbore|optuna|botorch)(?:\.[A-Za-z]\w*)+)\b(?!\.md)", text):
        try:
            found = locate(name)
        except ErrorDuringImport as error:
            found = error.value if isinstance(error.value, MissingPackage) else None  # of an extra that is missing
        assert found is not None, name


# regression: the site cuts lines of code
# there are no URLs, and the README's pictures are shown in the repository and not on an index
def test_c15_lines_of_code_wrap_where_they_have_no_room():
    config, sheet = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "stylesheets" / "wide.css").read_text()
    assert "stylesheets/wide.css" in config
    assert "white-space: pre-wrap" in sheet


@pytest.mark.slow
def test_the_first_example_prints_what_the_readme_says():
    readme = PAGES["README.md"].read_text()
    said = re.search(r"\n    (mean error .*)\n", readme)[1]
    command = [sys.executable, "-c", blocks("README.md", "python")[0]]
    done = subprocess.run(command, cwd=ROOT, env=ENV, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.strip() == said, done.stderr
