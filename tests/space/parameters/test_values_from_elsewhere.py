"""Values that came through another format: rounding, and what is no number."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from deepbore import Categorical, Integer, Ordinal, Real
from deepbore.errors import PointError


@given(st.floats(-1e6, 1e6), st.floats(1.0, 1e6))
def test_a_bound_in_single_precision_is_the_bound(low, width):
    parameter = Real(low, low + width)
    for bound in (parameter.low, parameter.high):
        assert parameter.decode(parameter.encode([float(np.float32(bound))]))[0] == pytest.approx(
            bound, abs=2e-6 * width + 1e-7 * abs(bound)
        )


@given(st.integers(-12, 11), st.integers(1, 9))
def test_a_bound_of_a_log_scale_in_single_precision_is_the_bound(power, decades):
    parameter = Real(10.0**power, 10.0 ** (power + decades), log=True)
    for bound in (parameter.low, parameter.high):
        for value in (float(np.float32(bound)), float(f"{bound:.6g}"), bound * (1 - 1e-12), bound * (1 + 1e-12)):
            assert parameter.decode(parameter.encode([value])) == pytest.approx([bound], rel=2e-6)


@pytest.mark.parametrize(
    ("parameter", "values", "natives"),
    [
        (Real(0, 1, step=0.1), np.float32([0.1, 0.3, 1.0]), [0.1, 0.3, 1.0]),
        (Real(1000, 1001, step=0.1), np.float32([1000.1, 1000.3, 1001]), [1000.1, 1000.3, 1001.0]),
        (Integer(1, 8, log=True), np.float32([1, 8]), [1, 8]),
        (Integer(1, 8), [1.0000001, 7.9999999], [1, 8]),
        (Ordinal([0.1, 0.2, 3]), np.float32([0.1, 0.2, 3]), [0.1, 0.2, 3]),
        (Categorical([1e-5, "auto", None]), [float(np.float32(1e-5)), "auto", None], [1e-5, "auto", None]),
    ],
)
def test_single_precision_is_read_as_what_it_was(parameter, values, natives):
    assert parameter.decode(parameter.encode(values)) == natives


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (Real(0, 1), 1.00001), (Real(0, 1), -1e-5), (Real(1e-5, 0.1, log=True), 9.99e-6),
        (Integer(0, 10**9), 10**9 + 1),
        (Integer(0, 10), 10.01), (Integer(0, 10), 2.001), (Real(0, 1, step=0.1), 0.1001), (Ordinal([0.1, 0.2]), 0.1001),
        (Ordinal([1, 2]), True), (Real(0, 1), float("nan")),
    ],
)  # fmt: skip
def test_what_is_not_rounding_is_refused(parameter, value):
    with pytest.raises(PointError):
        parameter.encode([value])


@pytest.mark.parametrize("parameter", [Real(0, 1), Integer(0, 1), Real(0, 1, step=0.5), Real(0.5, 2, log=True)])
@pytest.mark.parametrize(
    "values",
    [[True], ["1"], [b"1"], [1.0, True], [np.True_], np.array([True]), np.array(["1"]),
     np.array([1.0, "1"], dtype=object),
     pd.Series(["1"]), pd.Series([True]), np.array(["2020-01-01"], dtype="M8[D]"), [1j],
     [np.complex128(1 + 5j)], [np.complex64(1)], [np.timedelta64(1, "s")], [np.datetime64(1, "s")]],
    ids=range(16),
)  # fmt: skip
def test_booleans_and_texts_are_no_numbers(parameter, values):
    with pytest.raises(PointError, match="values must be"):
        parameter.encode(values)


@pytest.mark.parametrize(
    "values", [pd.Series([1, 0]), np.array([1, 0], dtype=np.uint8), pd.Series([1.0, 0.0]), (1, 0.0)]
)
def test_all_kinds_of_numbers_are_taken(values):
    assert Integer(0, 1).decode(Integer(0, 1).encode(values)) == [1, 0]


@pytest.mark.parametrize("text", ["0.1", "1e-1", "0.10000000149011612"])
def test_a_text_of_single_precision_is_a_choice(text):
    assert Categorical([0.1, "a"]).read(text) == 0.1
