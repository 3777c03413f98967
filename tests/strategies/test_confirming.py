"""Trials beside a suspicious value: what they share with it, how far they are, and how many there are."""

import pytest

from deepbore import Categorical, Condition, Integer, Real, SearchSpace, Study

pytestmark = pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
MIXED = SearchSpace(
    {
        "kind": Categorical(list("abcde")),
        "x": Real(0, 1),
        "y": Real(0, 1, when=Condition("kind", list("abcd"))),
        "n": Integer(1, 9),
    }
)
CHOICES = SearchSpace({"kind": Categorical(list("abcdefg")), "n": Integer(1, 9), "m": Integer(1, 9)})


def suspicious(space, kind, **fixed):
    """A study of 30 ordinary values, and one of this kind that is far better than all of them (trial 30)."""
    study = Study(space, seed=0)
    study.fix(fixed)
    drawn = [trial.params for trial in Study(space, seed=1, strategy="random").ask(30)]
    values = {"kind": kind, "x": 0.4, "y": 0.4, "n": 5, "m": 5}
    wrong = {name: values[name] for name in space.names if name != "y" or kind != "e"}
    for params, value in [*((params, 1 + params["n"] / 9) for params in drawn), (wrong, -100.0)]:
        study.add(params, value)
    assert [trial.id for trial in study.trials.suspicious] == [30]
    return study, wrong


@pytest.mark.parametrize("kind", list("abcde"))
@pytest.mark.parametrize("fixed", [{}, {"n": 5}])
# regression: trials beside a value of the third choice, or a later one, were of the second
def test_two_trials_differ_by_a_hundredth_and_a_thousandth_in_real_parameters_alone(kind, fixed):
    study, wrong = suspicious(MIXED, kind, **fixed)
    beside = [study.ask_one().params for _ in range(2)]
    for params, step in zip(beside, (1e-2, 1e-3), strict=True):
        assert params.keys() == wrong.keys()
        for name, value in wrong.items():
            assert params[name] == (pytest.approx(value + step, abs=1e-6) if name in ("x", "y") else value)
    other = study.ask_one().params
    assert abs(other["x"] - wrong["x"]) > 0.011 or (other["kind"], other["n"]) != (kind, 5)


def test_without_real_parameters_they_differ_in_one():
    study, wrong = suspicious(CHOICES, "f")
    beside = [study.ask_one().params for _ in range(2)]
    assert beside[0] != beside[1]
    assert all(sum(params[name] != wrong[name] for name in wrong) == 1 for params in beside)


def test_at_the_end_of_a_range_they_are_within_it():
    study = Study({"kind": Categorical(list("abc")), "x": Real(0, 1)}, seed=0)
    for k in range(20):
        study.add({"kind": "abc"[k % 3], "x": k / 20}, 1 + k / 20)
    study.add({"kind": "c", "x": 1.0}, -100.0)
    beside = [study.ask_one().params for _ in range(2)]
    assert [params["kind"] for params in beside] == ["c", "c"]
    assert [params["x"] for params in beside] == pytest.approx([0.99, 0.999], abs=1e-6)
