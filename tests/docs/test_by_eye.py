"""The example of tuning by eye, with a person who has a hidden utility."""

import math
import runpy

import numpy as np
import pytest

from processes import ROOT

pytest.importorskip("matplotlib")
EXAMPLE = ROOT / "examples" / "by_eye.py"


def distance(trial):
    """How far size and opacity are from what somebody likes, in decades, squared."""
    look = trial.params
    return math.log10(look["size"] / 2) ** 2 + math.log10(look["opacity"] / 0.2) ** 2


def regret(trial):
    """Of somebody who likes small, faint points, and viridis."""
    return distance(trial) + 0.5 * (trial.params["colours"] != "viridis")


@pytest.mark.slow
def test_a_person_finds_what_they_like():
    tune = runpy.run_path(str(EXAMPLE))["tune"]
    best = [tune(lambda pair: "12"[regret(pair[1]) < regret(pair[0])], 20, seed).best_trial for seed in range(3)]
    assert np.median([distance(trial) for trial in best]) < 0.1  # about 0.01; of 21 random pictures the best has 0.15


def test_the_person_sees_both_pictures_and_may_say_that_they_are_as_good(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answers = iter(["=", "neither", "2", "1"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    example = runpy.run_path(str(EXAMPLE))
    study = example["tune"](example["ask_person"], 3)
    assert (tmp_path / "by_eye.png").stat().st_size > 10_000
    assert study.observations.preferences[:3] == ((0, 1), (1, 0), (0, 2))
