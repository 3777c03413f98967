"""How a study comes by its state: a new one, or what a journal keeps."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, get_args

from deepbore.classifiers import Classifier
from deepbore.data.journal import Journal, holds_anything
from deepbore.data.journal_format import JOURNAL
from deepbore.data.observations import Direction, Observations
from deepbore.data.replay import History, replay
from deepbore.data.trial import Budget
from deepbore.errors import JournalError, SettingError
from deepbore.labels import Labelling
from deepbore.loop.recipe import Recipe, check_budget, given_names, shown
from deepbore.loop.state import RunState, as_seed
from deepbore.space import SearchSpace
from deepbore.strategies import Strategy
from deepbore.study.view import Parts
from deepbore.validation import one_of

log = logging.getLogger(__name__)
IfExists = Literal["error", "load"]


class Opened(NamedTuple):
    """A run to go on with.

    Attributes:
        state: of the run.
        history: what is to be restored before it goes on; None for a new one.
    """

    state: RunState
    history: History | None = None


def no_check(state: RunState) -> None:
    """Whatever is wanted can be done."""


def opened(
    space: SearchSpace,
    direction: Direction | None,
    directions: Sequence[Direction] | None,
    seed: int,
    journal: str | os.PathLike[str] | None,
    if_exists: IfExists,
    budget: Budget | None = None,
    preferences: bool = False,
    check: Callable[[RunState], None] = no_check,
    **parts: Unpack[Parts],
) -> Opened:
    """The run that these settings describe: a new one, or the one in the journal, if that is wanted and it has one.

    Args:
        check: raises an error for a run that can't do what is wanted, before anything is written.

    Raises:
        SettingError: for settings outside their range.
        JournalError: if the journal holds a run, and another one, or none was expected.
    """
    _check_space(space)
    one_of(get_args(IfExists), if_exists=if_exists)
    one_of((True, False), preferences=preferences)
    check_budget(budget)
    if direction is not None and directions is not None:
        raise SettingError("give either direction or directions, not both.")
    if preferences and budget is not None:
        raise SettingError("preferences know of no budgets. Leave one of them out.")
    wanted = ((direction or ("maximize" if preferences else "minimize")),) if directions is None else directions
    observations = Observations(space, wanted, budget=budget, by_preference=preferences)
    with _given_back(parts):
        if journal is not None and if_exists == "load" and holds_run(journal):
            return _same_run(journal, observations, as_seed(seed), check, parts)
        recipe = Recipe.resolve(space, observations.k, **parts, budget=budget, by_preference=preferences)
        learned = [m for m in recipe.strategy.models if m.has_learned_in_a_run]  # asked before they are in this run
        state = _state(observations, recipe, seed)
        check(state)
        if journal is not None:
            observations.journal = Journal.begin(journal, state.header())
    if learned:
        log.warning(
            "this %s has learned in another run, and goes on from there. Make a new one for each run, unless that is "
            "what you want.",
            type(learned[0]).__name__,
        )
    return Opened(state)


def loaded(journal: str | os.PathLike[str], space: SearchSpace | None = None, **parts: Unpack[Parts]) -> Opened:
    """The run that a journal keeps, perhaps with other parts; with this space, if it is the one that it declares.

    Raises:
        JournalError: for a missing, damaged or contradictory journal.
        SettingError: for a part that the header can't name.
    """
    if space is not None:
        _check_space(space)
    check_parts(parts, "a run is loaded with its own {unknown}")
    history = replay(Journal(_in_directory(journal)), space)
    observations, header = history.observations, history.header
    described, by_preference = header.get("recipe", {}), observations.by_preference
    recipe = Recipe.again(observations.space, observations.k, described, parts, observations.budget, by_preference)
    state = _state(observations, recipe, header["seed"])
    observations.journal = history.journal
    return Opened(state, history)


def _in_directory(journal: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The journal in the directory of a run, as the command line keeps them; anything else as it is."""
    is_run = isinstance(journal, (str, os.PathLike)) and Path(journal, JOURNAL).is_file()
    return Path(journal, JOURNAL) if is_run else journal


def holds_run(journal: str | os.PathLike[str]) -> bool:
    """Whether a file is there, and not empty, but for half a first line that a crash has left."""
    return holds_anything(Path(journal))


def check_parts(parts: Mapping[str, Any], refusal: str) -> None:
    """Raises SettingError, which begins with the refusal of the {unknown}, for settings that are no parts of a run."""
    if unknown := parts.keys() - Parts.__annotations__.keys():
        says = refusal.format(unknown=", ".join(sorted(unknown)))
        raise SettingError(f"{says}; other settings may be {', '.join(Parts.__annotations__)}.")


def _state(observations: Observations, recipe: Recipe, seed: int) -> RunState:
    """The state of a run, if its labels grade what it is told."""
    if recipe.labels.by_preference and not observations.by_preference:
        raise SettingError(
            f"{type(recipe.labels).__name__} grades comparisons, but this is a study of values. Leave it out, or make "
            "the study with preferences=True."
        )
    recipe.labels.forget()
    return RunState(observations, recipe, seed)


def _check_space(space: SearchSpace) -> None:
    if not isinstance(space, SearchSpace):
        raise SettingError(f"space must be a SearchSpace, but got {space!r:.100}. Give SearchSpace({{...}}).")


def _same_run(
    path: str | os.PathLike[str], wanted: Observations, seed: int, check: Callable[[RunState], None], parts: Parts
) -> Opened:
    """The run in a journal, if it is the one that is wanted; its lock is taken at once, before any evaluation."""
    run = loaded(path, wanted.space, **parts)
    assert run.history is not None
    header = run.history.header
    found = _other_directions(wanted, run.state.observations) + _other_budget(wanted, run.state.observations)
    found += [f"seed is {seed}, was {header['seed']}"] if seed != header["seed"] else []
    found += _other_parts(run.state.recipe, header["recipe"], parts) if "recipe" in header else []
    if found:
        raise JournalError(
            f"{run.history.journal.path} holds another run than the one described here: {'; '.join(found)}. Name "
            "another file; or, to go on with the run in it and change its parts, use Study.load(journal, ...)."
        )
    check(run.state)
    run.history.journal.open()
    return run


@contextmanager
def _given_back(parts: Parts) -> Iterator[None]:
    """If a run is refused, its classifier goes on with the one that had it, and its labels know what they knew."""
    strategy, labels = parts.get("strategy"), parts.get("labels")
    models = strategy.models if isinstance(strategy, Strategy) else (parts.get("classifier"),)
    had = [(each, each.generator, each.is_in_a_run) for each in models if isinstance(each, Classifier)]
    known = labels.state_dict() if isinstance(labels, Labelling) else None
    try:
        yield
    except BaseException:
        for model, generator, is_in_a_run in had:
            model.generator, model.is_in_a_run = generator, is_in_a_run
        if isinstance(labels, Labelling) and known is not None:
            labels.load_state_dict(known)
        raise


def _other_parts(recipe: Recipe, described: Mapping[str, Any], parts: Parts) -> list[str]:
    """What differs in the parts, in words; those that were the defaults, and are not given now, go on as they were."""
    left_out = sorted(set(described.get("given", ())) - given_names(parts))
    words = [f"{name} is not given, was {shown(described[name])}" for name in left_out]
    return words + recipe.differences(described)


def _other_directions(wanted: Observations, kept: Observations) -> list[str]:
    """What differs in directions, in words."""
    if wanted.by_preference != kept.by_preference:
        return [f"preferences is {wanted.by_preference}, was {kept.by_preference}"]
    if wanted.directions == kept.directions:
        return []
    return [f"direction is {', '.join(wanted.directions)}, was {', '.join(kept.directions)}"]


def _other_budget(wanted: Observations, kept: Observations) -> list[str]:
    """What differs in budgets, in words."""
    return [] if wanted.budget == kept.budget else [f"budget is {wanted.budget}, was {kept.budget}"]
