"""The page of several runs: the best value of each over its trials, and a table."""

import re

import pytest

from deepbore.cli.main import main
from pages import data_of, opened
from written_runs import append_lines, write_run


@pytest.fixture
def runs(tmp_path):
    """Three runs: the second is the best, the third has no value."""
    folders = [
        write_run(tmp_path / name, values)
        for name, values in (("wide <b>", [3.0, None, 1.0]), ("deep", [5.0, 4.0, 0.5]), ("new", ["pending"]))
    ]
    append_lines(folders[0], 3)
    return [str(folder) for folder in folders]


def test_several_runs_stand_on_one_page(runs, tmp_path, capsys):
    page = tmp_path / "all.html"
    assert main(["report", *runs, "--output", str(page)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text()
    (chart,) = data_of(text)["charts"]
    best = {trace["name"]: (trace["x"], trace["y"]) for trace in chart["data"]}
    assert best == {"deep": ([1, 2, 3], [5, 4, 0.5]), "wide &lt;b&gt;": ([1, 3], [3, 1])}
    head, *rows = re.findall(r"<tr>(.*?)</tr>", text[text.index('<table class="runs">') :])
    assert re.findall("<th>(.*?)</th>", head)[:5] == ["run", "best", "in trial", "trials", "failed"]
    assert [re.findall("<td>(.*?)</td>", row)[:5] for row in rows] == [
        ["deep", "0.5", "2", "3", "0"],
        ["wide &lt;b&gt;", "1", "2", "3", "1"],
        ["new", "–", "–", "1", "0"],
    ]
    assert "<b>wide" not in text


def test_runs_that_can_not_be_compared_are_refused(runs, tmp_path, capsys):
    other = write_run(tmp_path / "other", [1.0], directions=("maximize",))
    assert main(["report", *runs, str(other), "--output", str(tmp_path / "all.html")]) == 2
    assert "runs must have one direction" in capsys.readouterr().err
    assert not (tmp_path / "all.html").exists()


@pytest.mark.slow
def test_it_works_in_a_browser(browser, runs, tmp_path):
    page = tmp_path / "all.html"
    assert main(["report", *runs, "--output", str(page)]) == 0
    for width, scheme in ((1300, "light"), (390, "dark")):
        tab, said = opened(browser, page, width, scheme)
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        assert tab.locator(".runs tr").count() == 4
        assert said == []
        tab.close()
