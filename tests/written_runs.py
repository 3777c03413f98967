"""Journals written line by line, for tests that look at runs and need no torch."""

import json
import random

from deepbore.data import log

SPACE = {
    "lr": {"type": "real", "low": 1e-5, "high": 0.1, "log": True},
    "units": {"type": "integer", "low": 16, "high": 512, "log": True},
    "optimizer": {"type": "categorical", "choices": ["sgd", "<b>adam</b>"]},
    "momentum": {"type": "real", "low": 0, "high": 0.99, "log": False, "when": {"optimizer": ["sgd"]}},
}
VALUES = [3.0, None, 1.0, 2.0]
RECIPE = {
    "labels": {"class_path": "deepbore.labels.ValueGradedLabels", "init_args": {}},
    "classifier": {"class_path": "deepbore.classifiers.KernelPLS", "init_args": {}},
}


def write_journal(path, events, space=SPACE, directions=("minimize",), recipe=RECIPE, seed=0):
    """A journal of format 2."""
    header = {"event": "created", "version": 2, "id": f"run {seed}", "space": space, "directions": list(directions)}
    crc, whole = 0, b""
    for event in [{**header, "seed": seed, "recipe": recipe}, *events]:
        line, crc = log.written(event, 2, crc)
        whole += line
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole)


def params_of(draws):
    """A random configuration."""
    optimizer = draws.choice(SPACE["optimizer"]["choices"])
    momentum = {"momentum": round(draws.uniform(0, 0.99), 3)} if optimizer == "sgd" else {}
    lr = float(f"{10 ** draws.uniform(-5, -1):.11e}")
    return {"lr": lr, "units": draws.randint(16, 512), "optimizer": optimizer, **momentum}


def trials(values, seed=0):
    """Events of trials with these values; None for a failure, "pending" for one that is never told."""
    draws = random.Random(seed)
    for row, value in enumerate(values):
        yield {"event": "asked", "trial": row, "params": params_of(draws)}
        if value is None:
            traceback = "Traceback (most recent call last):\n  RuntimeError: out of memory"
            yield {"event": "failed", "trial": row, "reason": f"RuntimeError: out of {row} GB <script>",
                   "attributes": {"traceback": traceback}}  # fmt: skip
        elif isinstance(value, (list, tuple)):
            yield {"event": "told", "trial": row, "values": list(value)}
        elif value != "pending":
            yield {"event": "told", "trial": row, "value": value}


def write_run(folder, values, config="loop: {n_trials: 4}\n", **settings):
    """A run directory."""
    write_journal(folder / "journal.jsonl", trials(values, settings.get("seed", 0)), **settings)
    if config is not None:
        (folder / "config.yaml").write_text(config)
    return folder


def append_lines(folder, n, workers=2):
    """When its trials were evaluated."""
    rows = [
        {"trial": k, "began": 100.0 + 5 * (k // workers) + k % workers, "ended": 104.5 + 5 * (k // workers)}
        for k in range(n)
    ]
    (folder / "journal.jsonl.times").write_text("\n".join(json.dumps(row) for row in rows) + "\nhalf a li")
