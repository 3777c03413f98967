"""Pictures, and the numbers in them."""

import numpy as np
import pytest

from deepbore.errors import SettingError
from deepbore.plots import best_and_tau, history


def test_best_and_tau_are_those_of_each_moment():
    best, tau = best_and_tau(np.array([3.0, np.nan, 1.0, 2.0, 0.0]), gamma=0.5)
    assert best.tolist() == [3, 3, 1, 1, 0]
    assert tau.tolist() == [3, 3, 1, 2, 1]  # the ceil(n / 2)-th smallest of n values


def test_the_picture_colours_values_by_label(tmp_path):
    figure = history([3, 1, 2, np.nan, 9], direction="maximize", gamma=0.3, path=tmp_path / "history.png")
    good, bad = figure.axes[0].collections[:2]
    assert good.get_offsets()[:, 1].tolist() == [3, 9]
    assert bad.get_offsets()[:, 1].tolist() == [1, 2]
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")


def test_outliers_do_not_squeeze_the_rest():
    figure = history([*np.linspace(1, 2, 30), 1e18])
    low, high = figure.axes[0].get_ylim()
    assert low < 1
    assert 2 < high < 3


def test_a_run_of_failures_can_be_drawn():
    history([np.nan, np.nan])
    history([])


def test_a_bad_gamma_is_refused():
    with pytest.raises(SettingError, match="gamma=2"):
        history([1.0], gamma=2)
