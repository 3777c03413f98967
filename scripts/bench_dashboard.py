"""What the dashboard costs: the first paint, and the CPU of each update, with 100 runs and a run of 1e5 trials.

    python scripts/bench_dashboard.py --out docs/results/dashboard.json

Updates are measured in this process, by its CPU time: one event is appended to a journal, then the server's look at
all runs, its line of the list and what an open page is sent. First paints are measured in Chromium, if there is one,
against a server of its own, from the navigation to the first row of the list, or the first drawn chart: once when the
server has just begun, and the best of five when it has read all journals.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from deepbore.dashboard.live import Live
from deepbore.dashboard.runs import Shelf
from deepbore.data.log import JOURNAL, first_line, written

CHROMIUM = Path("/usr/bin/chromium")
SPACE = {
    "x": {"type": "real", "low": 0.0, "high": 1.0},
    "lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True},
    "layers": {"type": "integer", "low": 1, "high": 9},
    "optimizer": {"type": "categorical", "choices": ["sgd", "adam", "lion"]},
}


def trial_lines(k, stream):
    """The two lines of a trial."""
    params = {"x": stream.random(), "lr": 10 ** stream.uniform(-5, -1), "layers": stream.randint(1, 9)}
    params["optimizer"] = stream.choice(SPACE["optimizer"]["choices"])
    yield {"event": "asked", "trial": k, "params": params}
    if stream.random() < 0.03:
        yield {"event": "failed", "trial": k, "reason": "ValueError: loss is nan"}
    else:
        yield {"event": "told", "trial": k, "value": (params["x"] - 0.3) ** 2 + stream.random()}


class Writer:
    """Writes the journal of a run.

    Args:
        path: of the journal.
        n: trials that it begins with.
    """

    def __init__(self, path, n, seed):
        self.path, self.stream, self.n, self.crc = path, random.Random(seed), 0, 0
        path.parent.mkdir(parents=True)
        header = first_line({"space": SPACE, "directions": ["minimize"], "seed": 0, "recipe": {}})
        with path.open("wb") as file:
            self._put(file, header)
            for _ in range(n):
                self._trial(file)

    def add(self):
        """Adds a trial."""
        with self.path.open("ab") as file:
            self._trial(file)

    def _trial(self, file):
        for line in trial_lines(self.n, self.stream):
            self._put(file, line)
        self.n += 1

    def _put(self, file, line):
        raw, self.crc = written(line, 2, self.crc)
        file.write(raw)


def percentiles(seconds):
    """Milliseconds: the median, and the largest."""
    ordered = sorted(seconds)
    return {"median_ms": round(1000 * ordered[len(ordered) // 2], 1), "largest_ms": round(1000 * ordered[-1], 1)}


def updates(folder, writers, n):
    """The CPU time of reading all, of a look without news, and of n updates with a page open."""
    began = time.process_time()
    live = Live(Shelf.of([str(folder)]))
    while live.look():
        pass
    read = time.process_time() - began
    keys = {entry.journal: entry.key for entry in live.shelf.entries.values()}
    writer = writers[-1]
    content = live.content(keys[writer.path.resolve()])
    known = [mark for _, mark in json.loads(content.news([]))["order"]]
    idle, changed = [], []
    for _ in range(n):
        began = time.process_time()
        live.look()
        idle.append(time.process_time() - began)
        writer.add()
        began = time.process_time()
        live.look()
        answer = content.news(known)
        changed.append(time.process_time() - began)
        known = [mark for _, mark in json.loads(answer)["order"]]
    sent = len(answer) // 1000
    return {
        "read_all_s": round(read, 2),
        "idle_look": percentiles(idle),
        "update": percentiles(changed),
        "sent_kB": sent,
    }


def first_paints(folder, name):
    """Seconds to the first row of the list and the first chart of a run, in Chromium; None where there is none."""
    if not CHROMIUM.exists():
        return None
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "deepbore", "dashboard", str(folder), "--port", "0"]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        address = re.search(r"http://[^/]+", process.stdout.readline())[0]
        found = {"server_ready_s": round(time.monotonic() - began, 2)}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
            browser.new_page().goto("about:blank")
            found["at_once"] = _painted(browser, address, name)
            _until_read(browser, address)
            several = [_painted(browser, address, name) for _ in range(5)]
            found["when_read"] = min(several, key=lambda each: each["run_page_s"])
            browser.close()
        return found
    finally:
        process.terminate()
        process.wait()


def _painted(browser, address, name):
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(address, wait_until="commit")
    row = tab.get_by_role("link", name=name, exact=True)
    row.wait_for()
    listed = tab.evaluate("performance.now()") / 1000
    target = address + row.get_attribute("href")
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    tab.goto(target, wait_until="commit")
    tab.locator(
        "#section-history .js-plotly-plot .point, #section-history .js-plotly-plot .scatterlayer"
    ).first.wait_for(state="attached", timeout=60_000)
    drawn = tab.evaluate("performance.now()") / 1000
    pictured = tab.evaluate("performance.getEntriesByName('first picture')[0].startTime") / 1000
    metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    state = tab.locator("#state .pill").inner_text()
    tab.close()
    cpu = round(metrics["TaskDuration"], 2)
    found = {"list_s": round(listed, 2), "first_picture_s": round(pictured, 2), "run_page_s": round(drawn, 2)}
    return found | {"run_page_cpu_s": cpu, "state": state}


def _until_read(browser, address):
    tab = browser.new_page()
    tab.goto(address)
    tab.locator("tbody tr").first.wait_for()
    while tab.get_by_text("reading").count():
        tab.wait_for_timeout(100)
    tab.close()


def main():
    """Measures, and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--trials", type=int, default=100, help="of each of these runs")
    parser.add_argument("--long", type=int, default=100_000, help="trials of the long run")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    load = round(os.getloadavg()[0], 1)
    result = {"cores": os.cpu_count(), "load_before": load}
    result |= {"runs": given.runs, "trials": given.trials, "long": given.long, "updates": given.updates}
    with tempfile.TemporaryDirectory() as folder:
        many, one = Path(folder) / "many", Path(folder) / "one"
        names = [f"run-{k}" for k in range(given.runs)]
        writers = [Writer(many / name / JOURNAL, given.trials, k) for k, name in enumerate(names)]
        result["many_runs"] = updates(many, writers, given.updates) | {"first_paint": first_paints(many, names[-1])}
        long = Writer(one / "long" / JOURNAL, given.long, 0)
        Writer(one / "other" / JOURNAL, given.trials, 1)
        result["long_run"] = updates(one, [long], given.updates) | {"first_paint": first_paints(one, "long")}
    text = json.dumps(result, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
