"""The first pages of the site, and its versions: what they show is what there is."""

import inspect
import json
import re
import tomllib

import pytest
import yaml

import make_site
from deepbore import plots
from processes import ROOT

DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_gallery_has_every_chart():
    figures = {name for name in plots.__all__ if "Figure" in str(inspect.signature(getattr(plots, name)))}
    figures -= {"Curves"}
    shown = set(re.findall(r"^plots\.(\w+)\(", page("gallery.md"), re.MULTILINE))
    assert len(figures) > 10
    assert shown == figures | {"report"}


def test_the_lines_of_the_gallery_are_those_that_draw_its_pictures():
    script = (ROOT / "scripts" / "make_gallery.py").read_text(encoding="utf-8")
    drawn = re.findall(r"""^    "([\w-]+)": ['"](plots\..*)['"],$""", script, re.MULTILINE)
    shown = re.findall(r"\(pictures/gallery-([\w-]+)\.png\).*?```python\n(.*?)\n```", page("gallery.md"), re.DOTALL)
    assert drawn
    assert [each for each in shown if each[0] != "report"] == drawn


@pytest.mark.parametrize("name", ["index.md", "gallery.md", "evidence.md"])
def test_pictures_of_the_first_pages_are_there_and_small(name):
    pictures = re.findall(r"\(pictures/([\w-]+\.png)\)", page(name))
    assert pictures
    for picture in pictures:
        assert (DOCS / "pictures" / picture).stat().st_size < 60_000 or picture == "ground.png"


def rows_of(text):
    """The cells of the tables of a page."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_verdicts_of_the_evidence_are_those_of_the_results():
    """Of the same page of results, number of problems, and other method."""
    known = set()
    for first, problems, _, other, verdict, *_ in (row for row in rows_of(page("results.md")) if len(row) > 5):
        place = re.search(r"\((results/\S+)\)", first)
        known.add((place and place[1], problems, other.split(" ")[0], verdict))
    names = {
        "Optuna's TPE": "optuna-tpe",
        "Optuna's GP": "optuna-gp",
        "LFBO with XGBoost": "lfbo-xgb",
        "CMA-ES": "cma-es",
        "HEBO": "hebo",
    }
    said = [row for row in rows_of(page("evidence.md")) if "(results/" in row[0]]
    assert len(said) > 8
    for first, problems, other, verdict in said:
        place = re.search(r"\((results/\S+)\)", first)[1]
        assert (place, problems, names.get(other, other.lower()), verdict) in known, first


def test_addresses_of_the_site_are_those_of_the_package():
    config = re.search(r"^repo_url: (\S+)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert config[1] == PROJECT["urls"]["Source"]


def test_the_reference_begins_with_what_most_programs_need():
    nav = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), yaml.BaseLoader)["nav"]
    reference = next(part["Reference"] for part in nav if "Reference" in part)
    assert reference[0] == {"minimize and Study": "api/study.md"}
    shown = re.findall(r"^::: deepbore.study.(\w+)$", page("api/study.md"), re.MULTILINE)
    assert shown[:3] == ["minimize", "maximize", "Study"]


def test_links_of_the_changelog_lead_to_pages(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "CHANGELOG.md").write_text("See [docs/a.md](docs/a.md), [b](docs/b.md#c) and [d](https://d.org).")
    page = tmp_path / "docs" / "changelog.md"
    with make_site.changelog(tmp_path):
        assert page.read_text() == "See [a](a.md), [b](b.md#c) and [d](https://d.org)."
    assert not page.exists()


def test_versions_are_kept_and_the_newest_is_the_latest(tmp_path):
    site, folder = tmp_path / "site", tmp_path / "pages"
    site.mkdir()
    for version in ("0.9", "0.10", "0.2", "0.10"):
        (site / "index.html").write_text(version)
        make_site.publish(site, version, folder)
    versions = json.loads((folder / "versions.json").read_text())
    assert [each["version"] for each in versions] == ["0.10", "0.9", "0.2"]
    assert [each["aliases"] for each in versions] == [["latest"], [], []]
    assert (folder / "latest" / "index.html").read_text() == "0.10"
    assert (folder / "0.2" / "index.html").read_text() == "0.2"
    with pytest.raises(ValueError, match="number such as"):
        make_site.publish(site, "../elsewhere", folder)
