"""A grid says which values it leaves out."""

import pytest

from deepbore import Categorical, Integer, Ordinal, Real, SearchSpace, Study, minimize
from deepbore.strategies.sampling import GridSampling


# regression: of 0 to 5 the default five levels left out 3, silently
@pytest.mark.parametrize(
    ("parameter", "kept", "n"),
    [
        (Integer(0, 5), 5, 6),
        (Real(0, 1, step=0.1), 5, 11),
        (Integer(1, 1000, log=True), 5, 1000),
    ],
)
def test_a_grid_that_leaves_values_out_says_so_once(parameter, kept, n, caplog):
    space = SearchSpace({"depth": parameter, "act": Categorical(list("abcdefgh"))})
    study = Study(space, strategy="grid")
    study.ask(3)
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        f"the grid has {kept} of the {n} values of 'depth'; strategy=GridSampling(levels={n}) has all of them"
    ]
    caplog.clear()
    if n < 20:
        whole = minimize(lambda params: 0.0, {"depth": parameter}, 100, strategy=GridSampling(levels=n), progress=False)
        assert len(whole.values) == n
    assert not caplog.records


@pytest.mark.parametrize(
    "parameter", [Integer(0, 4), Real(0, 1), Categorical(list("abcdefgh")), Ordinal([1, 2, 4, 8, 16, 32])]
)
def test_a_whole_grid_says_nothing(parameter, caplog):
    Study({"x": parameter}, strategy="grid").ask(2)
    assert not caplog.records
