#!/usr/bin/env python
"""Draws the pictures of how.md, guide.md, cli.md and dashboard.md in docs/ anew, with today's defaults.

    python scripts/make_pictures.py      # docs/pictures/step-*.png, guide-*.png, page*.png, dashboard*.png; 2 minutes

The numbers that these pages name beside their pictures are printed. Needs deepbore[benchmarks,plots], playwright and
a chromium.
"""

import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import deepbore
from deepbore.plots import landscape, report
from deepbore.problems import Forrester

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
STEPS = {4: "step-01", 6: "step-03", 9: "step-06", 13: "step-10"}  # evaluations -> picture of docs/how.md
TRIALS = 30  # of the guide's run


def draw_steps() -> None:
    """A run on Forrester's function, with the next point to be evaluated in each picture."""
    problem = Forrester()
    study = deepbore.Study(problem.space, seed=7, n_initial=4)
    (trial,) = study.ask()
    for told in range(1, max(STEPS) + 1):
        study.tell(trial, problem(trial.params))
        (trial,) = study.ask()
        if told in STEPS:
            landscape(study, objective=problem).savefig(PICTURES / f"{STEPS[told]}.png", dpi=96)
            best, (x,) = study.best_trial, trial.params.values()
            print(f"{told} evaluations: best {best.value:.3f} at {best.params}, next {x:.3f}")


def draw_guide() -> None:
    """The pictures that the guide's script saves."""
    script = ROOT / "examples" / "tuned_digits" / "tune.py"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(script), "--trials", str(TRIALS)]
        subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
        for name in ("history", "importance", "slices"):
            shutil.copy(Path(folder) / f"{name}.png", PICTURES / f"guide-{name}.png")


def draw_page() -> None:
    """The head of the page of a run with pruning, as Chromium shows it."""
    space = {"lr": deepbore.Real(1e-5, 0.1, log=True), "width": deepbore.Integer(16, 512, log=True)}
    study = deepbore.Study(space, seed=0, pruner=deepbore.MedianPruner())

    def train(params: dict[str, Any], trial: deepbore.Trial) -> float:
        end = (math.log10(params["lr"]) + 2.7) ** 2 / 10 + abs(math.log2(params["width"]) - 7) / 20 + 0.1
        for epoch in range(20):
            trial.report(end * (1 + 4 * math.exp(-epoch / 5)), step=epoch)
            if trial.should_prune():
                raise deepbore.TrialPruned
        return end

    study.optimize(train, TRIALS, progress=False)
    study.fit()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "page.html"
        page.write_text(report(study, title="An example"))
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, scheme, width in (("page", "light", 900), ("page-phone", "dark", 390)):
            tab = chromium.new_page(viewport={"width": width, "height": 950}, color_scheme=scheme)
            tab.goto(f"file://{page}")
            tab.wait_for_timeout(3000)
            tab.screenshot(path=PICTURES / f"{name}.png")
        chromium.close()


def draw_dashboard() -> None:
    """The page of a run on the dashboard, by day and, narrow, by night."""
    space = {
        "lr": deepbore.Real(1e-5, 0.1, log=True),
        "width": deepbore.Integer(16, 512, log=True),
        "optimizer": deepbore.Categorical(["sgd", "adam", "lion"]),
    }
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        study = deepbore.Study(space, seed=0, journal=Path(folder) / "digits" / "journal.jsonl")

        def train(params: dict[str, Any], trial: deepbore.Trial) -> float:
            end = (math.log10(params["lr"]) + 2.7) ** 2 / 10 + abs(math.log2(params["width"]) - 7) / 20 + 0.1
            trial.log({"accuracy": 1 - end / 3})
            return end + 0.2 * (params["optimizer"] == "sgd")

        study.trials.note("the first sweep, on half of the data", tags=["baseline", "week 3"])
        study.optimize(train, 2 * TRIALS, progress=False)
        command = [sys.executable, "-m", "deepbore", "dashboard", folder, "--port", "0"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
        )
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, scheme, width, height in (("dashboard", "light", 900, 1480), ("dashboard-dark", "dark", 390, 1100)):
            tab = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto(address)
            tab.get_by_role("link", name="digits").click()
            tab.locator("#section-parallel-coordinates .js-plotly-plot").wait_for()
            if width > 500:
                tab.get_by_label("least lr").fill("0.0005")
                tab.evaluate("window.scrollTo(0, 0)")
            tab.wait_for_timeout(3000)
            tab.screenshot(path=PICTURES / f"{name}.png")
            with Image.open(PICTURES / f"{name}.png") as picture:  # of few colours: a third of the bytes
                picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(picture.filename, optimize=True)
        chromium.close()
        process.terminate()
        study.close()


if __name__ == "__main__":
    draw_steps()
    draw_page()
    draw_dashboard()
    draw_guide()
