"""The page of a run: what is on it, that it is safe to open, keeps up with the run, and works in a browser."""

import csv
import fcntl
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from deepbore import Categorical, Integer, Outcome, Real, Study, plots
from deepbore.cli.main import main
from deepbore.data.replay import read_record
from deepbore.plots.page.curves import history_section
from deepbore.plots.page.learned import Learned, learned_sections
from deepbore.plots.parallel_chart import DeclaredScale
from deepbore.plots.sources import record_of
from pages import data_of, opened
from plane import LINE, SQUARE
from written_runs import VALUES, append_lines, write_run


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "mine", VALUES)


def reported(run):
    """The page that the command line writes."""
    assert main(["report", str(run), "--quick"]) == 0
    return (run / "report.html").read_text()


def test_the_page_has_what_the_journal_says(run):
    append_lines(run, 4)
    page = reported(run)
    for title in ("History", "Best configuration", "Parallel coordinates", "Failures", "Timeline of workers", "Trials"):
        assert f"<h2>{title}</h2>" in page
    assert "n_trials: 4" in page
    assert "out of memory" in page  # the traceback
    data = data_of(page)
    assert [row[:3] for row in data["table"]["rows"]][:2] == [[0, 3.0, "complete"], [1, None, "failed"]]
    assert data["table"]["best"] == 2
    assert data["every"] is None
    assert len(page) < 1_700_000


def test_what_the_user_has_written_is_escaped(run):
    page = reported(run)
    assert "<b>adam</b>" not in page
    assert "GB <script>" not in page
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\'' in page
    assert "&lt;b&gt;adam" in json.dumps(data_of(page)["about"])  # plotly reads some HTML, too


def test_a_run_of_failures_or_of_nothing_has_a_page(tmp_path):
    for name, values in {"failed": [None, None], "empty": [], "pending": ["pending"]}.items():
        assert "History" in reported(write_run(tmp_path / name, values))


def test_a_page_of_several_values_shows_the_front(tmp_path):
    page = reported(write_run(tmp_path, [(1.0, 5.0), (2.0, 6.0), (3.0, 1.0)], directions=["minimize", "maximize"]))
    assert "beaten by none" in page
    assert [column["name"] for column in data_of(page)["table"]["columns"]][:3] == ["trial", "value 0", "value 1"]


def test_a_running_run_is_watched_until_it_ends(tmp_path):
    """The page is written anew for each event, shows itself anew while the run goes on, and not after it."""
    run = write_run(tmp_path / "mine", [4.0, 2.5, 2.0, "pending"])
    command = [sys.executable, "-m", "deepbore.cli", "watch", str(run), "--quick", "--every", "0.2"]
    page = run / "report.html"
    with (run / "journal.jsonl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        watcher = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        seen = wait_for(lambda: page.exists() and data_of(page.read_text()))
        assert (seen["every"], len(seen["table"]["rows"])) == (0.2, 4)
        write_run(run, [4.0, 2.5, 2.0, 1.0, 0.5])
        wait_for(lambda: len(data_of(page.read_text())["table"]["rows"]) == 5)
    assert watcher.wait(60) == 0
    assert data_of(page.read_text())["every"] is None
    assert os.path.getsize(page) > 1_000_000


def wait_for(condition, seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(condition)


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_works_in_a_browser(browser, run):
    """No errors, no requests, the table sorts, the pointer shows a configuration, and nothing is too wide."""
    append_lines(run, 4)
    reported(run)
    tab = browser.new_page(viewport={"width": 1300, "height": 900})
    tab.set_default_timeout(120_000)
    said, asked = [], []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(f"file://{run}/report.html")
    tab.wait_for_selector(".js-plotly-plot .scatterlayer .point")
    words = under_the_pointer(tab)
    assert "trial" in words
    assert "lr:" in words
    column = "[...document.querySelectorAll('#trials tbody tr td:first-child')].map((cell) => cell.textContent)"
    assert tab.evaluate(column) == ["2", "3", "0", "1"]  # by value, the failure last
    tab.evaluate("document.querySelector('#trials th:nth-child(2) button').click()")
    assert tab.evaluate(column) == ["0", "3", "2", "1"]
    tab.evaluate("document.querySelector('#trials th:nth-child(1) button').click()")
    assert tab.evaluate(column) == ["0", "1", "2", "3"]
    tab.evaluate("window.scrollTo(0, document.documentElement.scrollHeight)")
    tab.wait_for_timeout(500)
    tab.set_viewport_size({"width": 400, "height": 900})
    tab.wait_for_timeout(500)
    assert tab.evaluate("document.documentElement.scrollWidth") == 400
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.slow
def test_every_chart_is_drawn_on_a_phone_and_the_names_of_axes_are_within_it(browser, tmp_path):
    study = Study({"lr": Real(1e-5, 0.1, log=True), "units": Integer(16, 512), "kind": Categorical(["a", "b"])}, seed=0)
    study.optimize(lambda params: params["lr"] * params["units"], 12, progress=False)
    study.fit()
    (tmp_path / "report.html").write_text(plots.report(study))
    tab, said = opened(browser, tmp_path / "report.html", 375)
    for place in tab.query_selector_all("[data-chart]"):
        place.scroll_into_view_if_needed()
        tab.wait_for_timeout(300)
    assert tab.evaluate("document.querySelectorAll('[data-chart]:not(.js-plotly-plot)').length") == 0
    outside = (
        "[...document.querySelectorAll('.xtitle')].filter((each) => { const name = each.getBoundingClientRect(), "
        "chart = each.closest('[data-chart]').getBoundingClientRect(); return name.right > chart.right + 1 "
        "|| name.left < chart.left - 1 || name.bottom > chart.bottom + 1; }).map((each) => each.textContent)"
    )
    assert tab.evaluate(outside) == []
    assert said == []
    tab.close()


@pytest.mark.slow
def test_paper_is_white_and_holds_all_charts_and_the_whole_table(browser, tmp_path):
    path = write_run(tmp_path / "many", [float(k) for k in range(60)])
    reported(path)
    tab, said = opened(browser, path / "report.html", 1300, "dark")
    ink = "getComputedStyle(document.querySelector('.xtitle')).fill"
    widest = "Math.max(...[...document.querySelectorAll('.main-svg')].map((each) => each.clientWidth))"
    night = tab.evaluate(ink)
    tab.emulate_media(media="print")
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate(ink) == "rgb(51, 51, 51)" != night
    assert tab.evaluate(widest) <= 700
    assert tab.evaluate("document.querySelector('.scroll.high').clientHeight > 1000")
    assert tab.evaluate("getComputedStyle(document.getElementById('filter').parentElement).display") == "none"
    tab.emulate_media(media="screen")
    tab.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate(ink) == night
    tab.wait_for_timeout(1500)  # charts grow again in their own time
    assert tab.evaluate(widest) > 700
    assert said == []
    tab.close()


@pytest.mark.slow
def test_nothing_is_cut_in_a_window_of_any_width_by_day_and_by_night(browser, run):
    append_lines(run, 4)
    reported(run)
    for width, scheme in [(390, "light"), (800, "dark"), (1400, "light"), (390, "dark")]:
        tab, said = opened(browser, run / "report.html", width, scheme)
        tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")  # draws all
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        cut = (
            "[...document.querySelectorAll('section > div')].filter((each) => each.scrollWidth > each.clientWidth + 1)"
        )
        assert width > 390 or tab.evaluate(f"{cut}.length") == 0
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(20, 24, 28)") == (scheme == "dark")
        assert said == []
        tab.close()


@pytest.mark.slow
def test_trials_are_filtered_shown_copied_and_downloaded(browser, tmp_path):
    run = write_run(tmp_path / "mine", [3.0, None, 1e-7, 2.0])
    reported(run)
    tab, said = opened(browser, run / "report.html", 1300)
    ids = "[...document.querySelectorAll('#trials tbody tr td:first-child')].map((cell) => Number(cell.textContent))"
    for words, left in {
        "value>1.5": [3, 0],
        "status=failed": [1],
        "units>=0 COMPLETE": [2, 3, 0],
        "no such": [],
    }.items():
        tab.locator("#filter").fill(words)
        assert tab.evaluate(ids) == left
    tab.locator("#filter").fill("value>1.5")
    with tab.expect_download() as download:
        tab.locator("#csv").click()
    head, *lines = list(csv.reader(Path(download.value.path()).read_text().splitlines()))
    trials = read_record(run / "journal.jsonl").trials
    assert head[:4] == ["trial", "value", "status", "lr"]
    assert [(line[0], float(line[3])) for line in lines] == [(str(row), trials[row].params["lr"]) for row in (3, 0)]
    tab.locator("#trials tbody tr").first.click()
    assert "Trial 3" in tab.locator("#trial").inner_text()
    tab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    for name, read in {"YAML": yaml.safe_load, "JSON": json.loads, "flags": flags_of}.items():
        tab.locator(f"#trial button:text('copy as {name}')").click()
        assert read(tab.evaluate("window.copied")) == trials[3].params
    tab.keyboard.press("Escape")
    assert not tab.locator("#trial").is_visible()
    kind = "document.querySelector('[data-chart]').layout.yaxis.type"
    before = tab.evaluate(kind)
    tab.locator(".modebar-btn[data-title^=logarithmic]").first.click()
    assert {before, tab.evaluate(kind)} == {"log", "linear"}
    assert said == []
    tab.close()


def flags_of(line):
    return {name[2:]: yaml.safe_load(value) for name, _, value in (flag.partition("=") for flag in shlex.split(line))}


def under_the_pointer(tab):
    """What comes up when the pointer is on the first point of the first picture."""
    for _ in range(20):
        x, y = tab.evaluate(
            """() => { const box = document.querySelector('[data-chart="0"] .point').getBoundingClientRect();
                       return [box.x + box.width / 2, box.y + box.height / 2]; }"""
        )
        tab.mouse.move(x - 4, y - 1)
        tab.mouse.move(x, y)
        tab.wait_for_timeout(500)
        if words := tab.evaluate("document.querySelector('.hoverlayer .hovertext')?.textContent"):
            return words
    raise AssertionError("nothing comes up under the pointer")


# regression: each of these was wrong once
def test_a_page_is_written_whatever_stands_in_a_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = Study(LINE, journal="run.jsonl")
    for trial, reason in zip(study.ask(2), [None, "can't read a\udcff.png"], strict=True):  # no name in UTF-8
        study.tell(trial, 1.0 if reason is None else Outcome.failure(reason))
    study.close()
    assert main(["report", "run.jsonl", "--quick"]) == 0
    assert r"can't read a\udcff.png" in (tmp_path / "run.html").read_text().replace("&#x27;", "'").replace("&#39;", "'")


def test_the_page_keeps_an_earlier_task_out_of_tau_and_axis(after_a_task):
    (chart,) = history_section(record_of(after_a_task)).charts
    tau = next(trace for trace in chart.data if trace["name"].startswith("tau"))
    assert tau["y"][-1] == pytest.approx(after_a_task.state.recipe.labels(after_a_task.observations).metrics["tau"])
    assert chart.layout["yaxis"]["range"][1] < 100


# regression: the page was as wide as the name
@pytest.mark.slow
def test_a_long_name_does_not_stretch_the_page(browser, tmp_path):
    study = Study({"model." + "a" * 300: Real(0, 1), "b": Integer(0, 9)})
    study.add({"model." + "a" * 300: [0.1, 0.2], "b": [1, 2]}, [1.0, 2.0])
    study.fit()
    (tmp_path / "report.html").write_text(plots.report(study))
    tab, said = opened(browser, tmp_path / "report.html", 800)
    assert tab.evaluate("document.documentElement.scrollWidth") == 800
    assert said == []


def test_values_of_another_task_do_not_stretch_the_page():
    study = Study(SQUARE, seed=0)
    x = np.linspace(0, 1, 20)
    study.add({"x": x, "y": x}, 3000 * x + 1000, task="another")
    study.optimize(lambda p: (p["x"] - 0.3) ** 2 + p["y"], 12, progress=False)
    study.fit()
    assert Learned(study).units.axis.high < 10


def test_the_page_has_a_bar_and_an_axis_for_each_parameter(dotted):
    sections = {section.title.split(":")[0]: section for section in learned_sections(dotted)}
    names = sections["Importance"].charts[0].layout["yaxis"]["ticktext"]
    assert len(set(names)) == 3
    assert [trace["y"] for trace in sections["Importance"].charts[0].data] == [list(range(len(names)))] * 2
    assert len({chart.layout["xaxis"]["title"]["text"] for chart in sections["Slices"].charts}) == 3


@pytest.mark.parametrize("parameter", [Integer(1, 8), Integer(0, 100, step=20), Real(0, 1), Real(0, 0.3, step=0.1)])
def test_ticks_of_the_page_are_values_that_a_parameter_can_have(parameter):
    for value in DeclaredScale.of(parameter.to_dict(), []).ticks:
        native = int(value) if isinstance(parameter, Integer) else value
        assert value == native
        assert parameter.decode(parameter.encode([native])) == [pytest.approx(native)]


# regression: JavaScript rounded whole numbers above 2**53, so that the page showed and copied another configuration
LARGE = [2**53 + 1, -(2**63) - 1, 2**200 + 1]


def test_whole_numbers_that_javascript_rounds_stand_as_texts(tmp_path):
    space = {"seed": Categorical(LARGE), "x": Real(0, 1)}
    study = Study(space, seed=0, journal=tmp_path / "r.jsonl", strategy="random")
    for _ in range(8):
        trial = study.ask_one()
        study.tell(trial, Outcome(trial.params["x"], attributes={"big": 2**60 + 1, "many": [2**60 + 1]}))
    rows = data_of(plots.report(record_of(study)))["table"]["rows"]
    assert [row[3]["exact"] for row in rows] == [str(trial.params["seed"]) for trial in study.trials]

    def numbers(data):
        if isinstance(data, dict | list):
            return [n for each in (data.values() if isinstance(data, dict) else data) for n in numbers(each)]
        return [data] if isinstance(data, int) else []

    assert all(abs(number) <= 2**53 for number in numbers(rows))


@pytest.mark.slow
def test_the_page_shows_large_numbers_and_formulas_as_they_are(browser, tmp_path):
    space = {"seed": Categorical(LARGE), "word": Categorical(["=1+1", "@x", "-a", "-1"])}
    study = Study(space, seed=0, journal=tmp_path / "r.jsonl", strategy="random")
    for _ in range(8):
        study.tell(study.ask_one(), 1.0)
    page = tmp_path / "page.html"
    page.write_text(plots.report(record_of(study)), encoding="utf-8")
    tab, said = opened(browser, page, 1300)
    assert not said
    with tab.expect_download() as download:
        tab.locator("#csv").click()
    _, *lines = list(csv.reader(Path(download.value.path()).read_text().splitlines()))
    kept = {int(line[0]): line for line in lines}
    for trial in study.trials:
        assert int(kept[trial.id][3]) == trial.params["seed"]
        word = trial.params["word"]
        assert kept[trial.id][4] == (word if word == "-1" else f"'{word}")
