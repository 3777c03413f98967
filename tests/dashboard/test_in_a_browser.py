"""The dashboard in a real browser: live, by mouse and by keys, wide and narrow, in two windows, while a run dies."""

import os
import signal
import subprocess
import sys
import time

import pytest

from deepbore import Categorical, Outcome, Real, Study
from deepbore.data.replay import read_record
from deepbore.data.trial import Status
from watched import TOKEN, value_of

pytestmark = pytest.mark.slow

RUNNING = """
import sys, time
from deepbore import Study
from deepbore.data.replay import read_record
from watched import SPACE, value_of
study = Study(SPACE, seed=0, journal=sys.argv[1])
def slow(params):
    time.sleep(0.2)
    return value_of(params)
study.optimize(slow, 500, progress=False)
"""


TRIALS = """() => { const facts = [...document.querySelectorAll(".fact")];
    const fact = facts.find((each) => each.textContent.startsWith("trials"));
    return Number(fact.lastChild.textContent); }"""
POINTS = """() => document.querySelector("#section-history [data-chart]").data
    .reduce((n, trace) => n + (trace.trials ? trace.trials.length : 0), 0)"""
SHOWN = """() => [...document.querySelectorAll("#trials tbody tr")].map((row) => Number(row.cells[0].textContent))
    .sort((a, b) => a - b)"""


def opened(browser, address, width=1280, height=900, scheme="light"):
    tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    said = []
    tab.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
    tab.goto(address)
    return tab, said


def until(tab, condition, seconds=60):
    """Waits for a condition; playwright's own way is refused by the page's policy."""
    end = time.monotonic() + seconds
    while not tab.evaluate(condition):
        assert time.monotonic() < end, condition
        tab.wait_for_timeout(100)


@pytest.fixture
def process(tmp_path):
    """A process with a run of its own, which takes 0.2 s a trial."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    path = [os.path.dirname(__file__) + "/..", os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-W", "ignore", "-c", RUNNING, str(tmp_path / "runs" / "going.jsonl")]
    process = subprocess.Popen(command, env=environment)
    yield process
    process.kill()
    process.wait()


def test_open_to_others_and_read_only_the_page_reads_with_the_token(browser, served, folder):
    address = served(folder, "--host", "0.0.0.0", "--read-only", "--name", "127.0.0.1")
    page, said = opened(browser, f"{address}/#token={TOKEN}")
    page.get_by_role("link", name="ended").click()
    page.locator("#section-history .js-plotly-plot").wait_for(timeout=60_000)
    assert page.locator("#commands").count() == 0
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_picture_needs_no_plotly_and_gives_way_to_its_chart(browser, served, folder, scheme):
    address = served(folder)
    page, said = opened(browser, address, scheme=scheme)
    page.get_by_role("link", name="ended").wait_for()
    held = []
    page.route("**/assets/plotly.js", lambda route: held.append(route))  # noqa: PLW0108  # playwright marks it
    page.get_by_role("link", name="ended").click()
    sketch = page.locator("#section-history .sketch")
    sketch.wait_for(timeout=60_000)
    drawn = [each.get_attribute("d") for each in sketch.locator("path").all()]
    assert sum(path.count("h0") for path in drawn) == 6  # the run's trials
    assert not any("NaN" in path for path in drawn)
    assert page.locator(".js-plotly-plot").count() == 0
    for each in held:
        each.continue_()
    page.unroute("**/assets/plotly.js")
    page.locator("#section-history .js-plotly-plot .point").first.wait_for(timeout=60_000)
    assert sketch.count() == 0
    assert said == []


def kill_in_a_trial(process, journal):
    """Kills a process while a trial of its run has no outcome."""
    for _ in range(100):
        process.send_signal(signal.SIGSTOP)
        if read_record(journal).statistics.pending.size:
            process.kill()
            return
        process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
    raise AssertionError("no trial was running")


def test_a_run_is_followed_without_a_reload_until_its_process_is_killed(browser, served, process, folder):
    address = served(folder)
    one, said = opened(browser, address)
    line = one.locator("tr", has=one.get_by_role("link", name="going"))
    line.locator(".pill.running").wait_for(timeout=60_000)
    line.get_by_role("link").click()
    one.locator("#section-history .js-plotly-plot").wait_for(timeout=60_000)
    other, said_to_other = opened(browser, one.url, 420, 800)
    one.evaluate("window.mark = 1")  # gone after a reload
    before = one.evaluate(TRIALS)
    until(one, f"({TRIALS})() >= {before + 5}")
    assert one.evaluate(POINTS) >= before
    assert one.evaluate("window.mark") == 1
    until(other, f"({TRIALS})() >= {before + 5}")
    kill_in_a_trial(process, folder / "going.jsonl")
    for tab in (one, other):
        tab.locator("#state .pill.dead").wait_for(timeout=60_000)
    assert one.evaluate("window.mark") == 1
    assert said == said_to_other == []


def test_the_list_by_keys_and_two_runs_side_by_side(browser, served, folder):
    tab, said = opened(browser, served(folder))
    tab.get_by_role("link", name="ended").wait_for()
    assert tab.locator("tbody tr").count() == 3
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "which"
    tab.keyboard.type("dead")
    assert tab.locator("tbody tr").count() == 1
    tab.locator("#which").fill("")
    together = tab.get_by_role("button", name="side by side")
    assert together.is_disabled()
    for name in ("ended", "dead"):
        tab.get_by_label(f"compare {name}").focus()
        tab.keyboard.press("Space")
    together.focus()
    tab.keyboard.press("Enter")
    tab.locator(".js-plotly-plot").wait_for()
    names = tab.evaluate("document.querySelector('.js-plotly-plot').data.map((trace) => trace.name)")
    assert sorted(names) == ["dead", "ended"]
    with Study.load(folder / "ended.jsonl") as study:
        study.optimize(value_of, 3, progress=False)
    until(tab, "document.querySelector('.js-plotly-plot').data.some((trace) => trace.x.at(-1) === 9)")
    assert said == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_in_a_window_of_any_width(browser, served, folder, width, scheme):
    tab, said = opened(browser, served(folder), width, 800, scheme)
    tab.get_by_role("link", name="ended").wait_for()
    wide = "document.documentElement.scrollWidth"
    assert tab.evaluate(wide) <= width
    tab.get_by_role("link", name="ended").click()
    tab.locator("#section-history .js-plotly-plot").wait_for()
    tab.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    tab.locator("#trials tbody tr").first.wait_for()
    assert tab.evaluate(wide) <= width
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 24, 28)") == (scheme == "dark")
    assert said == []


def test_a_brush_leaves_some_trials_in_all_charts(browser, served, folder):
    tab, said = opened(browser, served(folder), 1280, 1600)
    tab.get_by_role("link", name="ended").click()
    tab.locator("#section-values-by-parameter .js-plotly-plot").last.wait_for()
    rows = tab.locator("#trials tbody tr")
    assert rows.count() == 6
    study = Study.load(folder / "ended.jsonl")
    wanted = sorted(trial.id for trial in study.trials if trial.params["x"] >= 0.5)
    assert 0 < len(wanted) < 6
    tab.get_by_label("least x").fill("0.5")
    assert tab.evaluate(SHOWN) == wanted
    picked = """(id) => { const found = new Set();
        for (const place of document.querySelectorAll(`#section-${id} .js-plotly-plot`))
          for (const t of place.data) if (t.trials) for (const k of t.selectedpoints) found.add(t.trials[k]);
        return [...found].sort((a, b) => a - b); }"""
    for name in ("history", "values-by-parameter"):
        assert tab.evaluate(picked, name) == wanted, name
    lines = """() => { const found = new Set();
        for (const t of document.querySelector('#section-parallel-coordinates .js-plotly-plot').data)
          if (t.trials) t.y.forEach((y, k) => { if (y !== null) found.add(t.trials[k]); }); // else an axis
        return [...found].sort((a, b) => a - b); }"""
    assert tab.evaluate(lines) == wanted
    adam = sorted(trial.id for trial in study.trials if trial.id in wanted and trial.params["opt"] == "adam")
    tab.get_by_role("checkbox", name="sgd").uncheck()
    assert tab.evaluate(SHOWN) == adam
    tab.get_by_role("button", name="all trials").click()
    assert rows.count() == 6
    assert tab.evaluate(lines) == list(range(6))
    assert said == []


def test_a_brush_is_drawn_by_the_pointer(browser, served, folder):
    tab, said = opened(browser, served(folder), 1280, 1600)
    tab.get_by_role("link", name="ended").click()
    place = tab.locator("#section-parallel-coordinates .js-plotly-plot")
    place.wait_for()
    place.scroll_into_view_if_needed()
    x, top, bottom = (
        place.evaluate("""(each) => { const { xaxis, yaxis } = each._fullLayout, box = each.getBoundingClientRect();
        const y = (v) => box.top + yaxis._offset + yaxis.c2p(v);
        return [box.left + xaxis._offset + xaxis.c2p(0), y(1.02), y(0.5)]; }""")
    )
    tab.mouse.move(x, bottom)
    tab.mouse.down()
    tab.mouse.move(x, (top + bottom) / 2, steps=3)
    tab.mouse.move(x, top, steps=3)
    tab.mouse.up()
    assert float(tab.get_by_label("least x").input_value()) == pytest.approx(0.5, abs=0.02)
    study = Study.load(folder / "ended.jsonl")
    wanted = sum(trial.params["x"] >= float(tab.get_by_label("least x").input_value()) for trial in study.trials)
    assert tab.locator("#trials tbody tr").count() == wanted
    tab.mouse.move(x, bottom)  # a click on the axis ends it
    tab.mouse.down()
    tab.mouse.up()
    assert tab.locator("#trials tbody tr").count() == 6
    assert said == []


def test_a_run_is_changed_from_its_page_by_the_token_in_the_address(browser, served, folder):
    address = served(folder)
    tab, said = opened(browser, f"{address}/#token={TOKEN}", 1280, 1200)
    tab.get_by_role("link", name="ended").click()
    tab.locator("#commands summary").click()
    assert TOKEN not in tab.url
    tab.get_by_label("note", exact=True).fill("<img src=x onerror=alert(1)>")
    tab.get_by_label("tags, separated by commas").fill("good, <script>alert(1)</script>")
    tab.get_by_role("button", name="keep").click()
    tab.locator(".answer", has_text="Done.").wait_for()
    tab.locator(".remarks .remark").wait_for(timeout=20_000)
    assert tab.locator(".remarks .remark").inner_text() == "<img src=x onerror=alert(1)>"
    assert tab.locator(".remarks .tag").all_inner_texts() == ["good", "<script>alert(1)</script>"]
    tab.locator("#commands").get_by_label("x", exact=True).first.fill("7")
    tab.get_by_role("button", name="enqueue").click()
    tab.locator(".answer.refused", has_text="must be in").wait_for()
    tab.locator("#trials tbody tr").first.click()
    tab.get_by_label("why").fill("by hand")
    tab.get_by_role("button", name="withdraw").click()
    tab.locator("dialog .answer", has_text="Done.").wait_for()
    tab.keyboard.press("Escape")
    tab.locator("#trials tr.withdrawn").wait_for(timeout=20_000)
    record = read_record(folder / "ended.jsonl")
    assert record.remarks == {None: "<img src=x onerror=alert(1)>"}
    assert [trial.reason for trial in record.trials if trial.status is Status.WITHDRAWN] == ["by hand"]
    assert [each for each in said if "400" not in each and "409" not in each] == []


def test_without_the_token_a_change_is_refused_in_words(browser, served, folder):
    tab, _ = opened(browser, served(folder))
    tab.get_by_role("link", name="ended").click()
    tab.locator("#commands summary").click()
    tab.get_by_role("button", name="keep").click()
    tab.locator(".answer.refused", has_text="The token is missing or wrong").wait_for()
    tab.get_by_label("token").fill(TOKEN)
    tab.get_by_role("button", name="keep").click()
    tab.locator(".answer", has_text="Done.").wait_for()


def test_read_only_pages_offer_no_change(browser, served, folder):
    tab, said = opened(browser, f"{served(folder, '--read-only')}/")
    tab.get_by_role("link", name="ended").click()
    tab.locator("#trials tbody tr").first.click()
    tab.locator("dialog[open]").wait_for()
    assert tab.locator("#commands").count() == 0
    assert tab.get_by_role("button", name="withdraw").count() == 0
    assert said == []


def test_names_values_notes_and_reasons_with_scripts_run_none(browser, served, tmp_path):
    evil = "<img src=x onerror=alert(1)><script>alert(1)</script>"
    space = {evil: Categorical([evil, "b", "'\"><svg onload=alert(1)>"]), "x": Real(0, 1)}
    folder = tmp_path / "runs"
    study = Study(space, seed=0, journal=folder / "<b>evil<b>.jsonl", directions={evil: "minimize"})
    for k in range(8):
        trial = study.ask_one()
        trial.log({evil: k})
        trial.log_artifact(evil.encode(), f"{evil}.png")
        study.trials.note(evil, trial, tags=[evil[:50]])
        study.annotate(trial, {evil: evil})
        if k % 3:
            study.tell(trial, Outcome(k))
        else:
            study.tell(trial, Outcome.failure(evil))
    study.trials.note(evil, tags=[evil[:50]])
    study.close()
    tab, said = opened(browser, f"{served(folder)}/", 1280, 2500)
    tab.locator("tbody a").click()
    tab.locator("#section-values-by-parameter .js-plotly-plot").last.wait_for()
    tab.locator("#trials tbody tr").first.click()
    tab.locator("dialog[open]").wait_for()
    tab.wait_for_timeout(500)
    made = "document.querySelectorAll('#view img[src=x], #view script, #view [onload], dialog script').length"
    assert tab.evaluate(made) == 0

    assert "dialog" not in said
    assert [each for each in said if "violates" in each or "alert" in each] == []


def test_the_dashboard_that_goes_away_is_said_and_comes_back(browser, folder, tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deepbore", "dashboard", str(folder), "--port", str(port)]
    for n in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        process.stdout.readline()
        if not n:
            tab, _ = opened(browser, f"http://127.0.0.1:{port}/")
        tab.locator("#link.live").wait_for(timeout=60_000)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130, -signal.SIGINT)
        tab.locator("#link.lost").wait_for(timeout=60_000)
