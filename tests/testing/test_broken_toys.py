"""Each shipped check can fail: a toy that breaks one rule is caught in words, and a sound one passes."""

import re
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import broken_heads
import broken_inputs
import broken_strategies
import broken_toys
from deepbore import testing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toy", "check", "says"), broken_heads.CLASSIFIERS, ids=[toy.__name__ for toy, _, _ in broken_heads.CLASSIFIERS]
)
def test_a_broken_head_is_caught(toy, check, says):
    with pytest.raises(AssertionError, match=says):
        check(toy)
    check(broken_heads.Head)


@pytest.mark.parametrize(("make", "capabilities", "says"), broken_heads.POSTERIORS)
def test_a_broken_posterior_is_caught(make, capabilities, says):
    with pytest.raises(AssertionError, match=says):
        broken_heads.check(make, capabilities)


@pytest.mark.parametrize(("make", "capabilities"), broken_heads.SOUND_POSTERIORS)
def test_a_sound_posterior_passes(make, capabilities):
    broken_heads.check(make, capabilities)


CASES = [*broken_toys.CASES, *broken_inputs.CASES]


@pytest.mark.parametrize(("toy", "check", "says"), CASES, ids=[toy.__name__ for toy, _, _ in CASES])
def test_a_broken_part_is_caught(toy, check, says):
    with pytest.raises(AssertionError, match=says):
        check(toy)


@pytest.mark.parametrize(("toy", "check"), [*broken_toys.SOUND, *broken_inputs.SOUND])
def test_a_sound_part_passes(toy, check):
    check(toy)


@pytest.mark.slow
@pytest.mark.parametrize(("toys", "says"), [*broken_toys.FORGETFUL, *broken_heads.FORGETFUL])
def test_what_is_not_in_the_state_of_a_part_is_missed_when_a_run_goes_on(toys, says):
    with pytest.raises(AssertionError, match=f"go on as the uninterrupted one, but {says}"):
        testing.check_resume(**toys)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toy", "check", "says"), broken_strategies.CASES, ids=[toy.__name__ for toy, _, _ in broken_strategies.CASES]
)
def test_a_broken_strategy_is_caught(toy, check, says):
    with pytest.raises(AssertionError, match=says):
        check(toy)


@pytest.mark.slow
@pytest.mark.parametrize(("toy", "check"), broken_strategies.SOUND)
def test_a_sound_strategy_passes(toy, check):
    check(toy)


@pytest.mark.slow
@pytest.mark.parametrize(("key", "make", "space"), broken_strategies.FORGETFUL)
def test_each_line_of_state_that_a_strategy_forgets_is_missed(key, make, space):
    with pytest.raises(AssertionError, match="go on as the uninterrupted one"):
        testing.check_resume(strategy=lambda: broken_strategies.forgets(key, make), space=testing.TOY_SPACES[space])


@pytest.mark.slow
@pytest.mark.parametrize(("make", "space"), {(make, space): 0 for _, make, space in broken_strategies.FORGETFUL})
def test_a_strategy_that_forgets_nothing_goes_on(make, space):
    testing.check_resume(strategy=make, space=testing.TOY_SPACES[space])


def checks():
    """The names of all shipped checks."""
    modules = (import_module(f"deepbore.testing.{module.name}") for module in iter_modules(testing.__path__))
    return {name for module in modules for name in vars(module) if name.startswith("check_")}


def test_every_check_is_seen_to_fail():
    files = (broken_heads, broken_toys, broken_inputs, broken_strategies)
    named = " ".join(Path(module.__file__).read_text() for module in (*files, sys.modules[__name__]))
    collective = {f"check_{part}" for part in ("classifier", "labelling", "acquisition", "evaluator", "strategy")}
    within = {"check_members", "check_spread", "check_samples", "check_refusal", "check_values"}
    within |= {"check_quality", "check_candidates_state", "check_column", "check_pickle", "check_optimum"}
    assert {name for name in checks() - collective - within if not re.search(rf"\b{name}\b", named)} == set()
