#!/usr/bin/env python
"""Draws the pictures of docs/gallery.md and of docs/index.md, from four runs that it makes.

    python scripts/make_gallery.py      # docs/pictures/gallery-*.png, first-*.png; 3 minutes

The first run trains a small network on handwritten digits, with pruning, on two workers. The others are an error
against a size, and a function of two parameters, with proposals and at random. Needs deepbore[plots,dashboard],
playwright and a chromium.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import deepbore
import ground
from deepbore import plots
from deepbore.problems import Branin, DigitsTradeOff

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
CHARTS = {  # name of the picture -> the line that draws it
    "history": "plots.history(study)",
    "curves": "plots.curves(study)",
    "timeline": "plots.timeline(study)",
    "parallel": "plots.parallel_coordinates(study)",
    "importance": "plots.importance(study)",
    "local-importance": "plots.local_importance(study)",
    "slices": 'plots.slices(study, parameters=["lr", "width"])',
    "pairs": 'plots.pairs(study, parameters=["lr", "width"])',
    "calibration": "plots.calibration(study)",
    "landscape": "plots.landscape(branin)",
    "front": "plots.front(several)",
    "hypervolume": "plots.hypervolume(several)",
    "comparison": "plots.comparison(groups)",
}
SPACE = {
    "lr": deepbore.Real(1e-4, 1, log=True),
    "width": deepbore.Integer(4, 128, log=True),
    "optimizer": deepbore.Categorical(["sgd", "adam"]),
    "momentum": deepbore.Real(0, 0.99, when=deepbore.Condition("optimizer", "sgd")),
}
EPOCHS = 12


# --- the runs --------------------------------------------------------------------------------------------------------


def train(params: dict[str, Any], trial: deepbore.Trial) -> float:
    """The loss on 597 handwritten digits after at most twelve epochs on 1200 others."""
    torch.manual_seed(trial.id)
    images, digits = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16).float(), torch.tensor(digits)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, params["width"]), torch.nn.ReLU(), torch.nn.Linear(params["width"], 10)
    )
    settings = {"momentum": params["momentum"]} if params["optimizer"] == "sgd" else {}
    kind = torch.optim.SGD if settings else torch.optim.Adam
    optimizer = kind(network.parameters(), lr=params["lr"], **settings)
    for epoch in range(EPOCHS):
        for batch in torch.randperm(1200).split(32):
            optimizer.zero_grad()
            cross_entropy(network(x[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            scores = network(x[1200:])
        loss = float(cross_entropy(scores, y[1200:]))
        trial.log({"accuracy": float((scores.argmax(1) == y[1200:]).float().mean())}, step=epoch)
        trial.report(loss, step=epoch)
        if trial.should_prune():
            raise deepbore.TrialPruned
    return loss


def trained(folder: Path) -> deepbore.Study:
    """The run with pruning."""
    study = deepbore.Study(SPACE, seed=0, journal=folder / "digits" / "journal.jsonl", pruner=deepbore.MedianPruner())
    study.trials.note("a network on handwritten digits", tags=["baseline"])
    study.optimize(train, 40, workers=2, progress=False)
    study.fit()
    return study


def minimised(folder: Path, name: str, seed: int, n_initial: int) -> deepbore.Study:
    """A run on Branin's function."""
    problem = Branin()
    journal = folder / name / "journal.jsonl"
    study = deepbore.Study(problem.space, seed=seed, n_initial=n_initial, journal=journal)
    study.optimize(problem, 30, progress=False)
    return study


def several_objectives(folder: Path) -> deepbore.Study:
    """Error against size."""
    problem = DigitsTradeOff(3)
    journal = folder / "error-and-size" / "journal.jsonl"
    directions = dict.fromkeys(("error", "decades of weights"), "minimize")
    study = deepbore.Study(problem.space, directions=directions, seed=0, journal=journal)
    study.optimize(problem, 30, progress=False)
    return study


def bests(study: deepbore.Study) -> Any:
    """The best value after each trial."""
    return plots.best_and_tau(study.observations.ledger.values[:, 0], 0.5)[0]


def runs(folder: Path) -> dict[str, Any]:
    """What the lines of the gallery speak of."""
    branin, *others = [minimised(folder, f"branin-{seed}", seed, 10) for seed in range(4)]
    random = [minimised(folder, f"random-{seed}", seed, 30) for seed in range(4)]
    branin.fit()
    groups = [
        plots.Curves("deepbore", [bests(each) for each in (branin, *others)]),
        plots.Curves("random", [bests(each) for each in random]),
    ]
    return {
        "plots": plots,
        "study": trained(folder),
        "branin": branin,
        "several": several_objectives(folder),
        "groups": groups,
    }


# --- the pictures ----------------------------------------------------------------------------------------------------


def smaller(path: Path) -> None:
    """Makes a picture one of few colours: a third of the bytes."""
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def draw_charts(names: dict[str, Any]) -> None:
    """One picture for each line."""
    for name, line in CHARTS.items():
        path = PICTURES / f"gallery-{name}.png"
        eval(line, names).savefig(path, dpi=110)
        smaller(path)


def draw_first_page() -> None:
    """What README's first run has found, and the average rank of four methods."""
    snippet = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert snippet is not None
    names: dict[str, Any] = {}
    exec(compile(snippet[1], "README.md", "exec"), names)
    print(f"{names['error']({}):.1f} with scikit-learn's defaults")  # README names it
    study = names["result"].study
    study.fit()
    plots.pairs(study).savefig(PICTURES / "first-found.png", dpi=180)
    ground.draw(ground.of_half("validation", ground.ROWS), "deepbore", PICTURES / "first-fast.png", (4.2, 3.1))
    smaller(PICTURES / "first-found.png")
    smaller(PICTURES / "first-fast.png")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a dashboard of the runs of a folder."""
    command = [sys.executable, "-m", "deepbore", "dashboard", str(folder), "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def shot(tab: Any, name: str) -> None:
    """What a tab shows, as a picture."""
    tab.wait_for_timeout(2000)
    tab.screenshot(path=PICTURES / f"{name}.png")
    smaller(PICTURES / f"{name}.png")


def draw_dashboard(browser: Browser, address: str) -> None:
    """The list of runs, one of them, two side by side."""
    tab = browser.new_page(viewport={"width": 1160, "height": 870})
    tab.goto(address)
    tab.get_by_role("link", name="digits").wait_for()
    shot(tab, "gallery-dashboard-list")
    tab.get_by_role("link", name="digits").click()
    tab.locator("#section-history .js-plotly-plot").wait_for()
    shot(tab, "first-page")
    tab.go_back()
    for name in ("branin-0", "random-0"):
        tab.get_by_label(f"compare {name}").check()
    tab.get_by_role("button", name="side by side").click()
    tab.locator(".js-plotly-plot").first.wait_for()
    shot(tab, "gallery-dashboard-compare")


def draw_report(browser: Browser, study: deepbore.Study, folder: Path) -> None:
    """The page of a run, narrow and by night."""
    page = folder / "page.html"
    page.write_text(plots.report(study, title="digits"), encoding="utf-8")
    for name, width, scheme in (("gallery-report", 900, "light"), ("gallery-report-phone", 390, "dark")):
        tab = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
        tab.goto(f"file://{page}")
        shot(tab, name)


def main() -> None:
    """Makes the runs and draws all."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        names = runs(folder / "runs")
        draw_charts(names)
        draw_first_page()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        draw_report(browser, names["study"], folder)
        with served(folder / "runs") as address:
            draw_dashboard(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
