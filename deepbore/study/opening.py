"""A study's state: a new one, or the one that a journal keeps and that is restored before it changes."""

import logging
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Unpack, cast

from deepbore.classifiers import Classifier
from deepbore.data.journal import Journal, holds_anything
from deepbore.data.log import JOURNAL, Log, first_line, times_path
from deepbore.data.observations import Observations
from deepbore.data.replay import History, replay
from deepbore.errors import JournalError, SettingError
from deepbore.labels import Labelling
from deepbore.loop.metrics import Metrics
from deepbore.loop.recipe import Recipe, given_names, shown
from deepbore.loop.state import RunState, as_seed, metrics_of, restore
from deepbore.space import Parameter, SearchSpace
from deepbore.space.search_space import as_space
from deepbore.strategies import Strategy
from deepbore.strategies.sampling import named_strategy
from deepbore.study.options import Parts, StudyOptions, check_parts
from deepbore.validation import as_path

log = logging.getLogger(__name__)
Place = str | os.PathLike[str] | Log  # where a run is kept: a file, or a log of one's own
WRITERS: "weakref.WeakValueDictionary[Path, Writer]" = weakref.WeakValueDictionary()  # by their journals
Check = Callable[[RunState], object]  # raises an error for a run that can't do what is wanted


class Writer(Protocol):
    """A study, as far as another one needs to know it that is to write the same journal."""

    @property
    def state(self) -> RunState: ...

    def close(self) -> None: ...


@dataclass
class Loaded:
    """A run that a journal keeps: its trials are read, and its other state is restored before anything changes it.

    Training it to look at its predictions does not restore it; what that changed is undone when the run continues.

    Attributes:
        state: of the run.
        history: what the journal says; None once the state is restored.
    """

    state: RunState
    history: History | None
    _unlearned: list[Classifier | None] = field(default_factory=list)  # copies from before the first training

    @property
    def metrics(self) -> Metrics | None:
        """Those of the run, restored or not."""
        return self.state.metrics if self.history is None else metrics_of(self.history.journal)

    def restore(self) -> None:
        """Restores the state at the journal's last event."""
        if self.history is not None:
            self._unlearn()  # a snapshot of the design has no weights
            restore(self.state, self.history)
            self.history = None  # last: after an interrupt the next call restores it

    def resume(self) -> None:
        """Restores the state, with the models as they were before any training."""
        self.restore()
        self._unlearn()

    def keep_unlearned(self) -> None:
        """Keeps copies of the models before they are trained for the first time."""
        if not self._unlearned:
            self._unlearned = self.state.copies_of_models()

    def _unlearn(self) -> None:
        for model, copy in zip(self.state.models, self._unlearned, strict=False):  # none before any training
            if copy is not None:
                model.become(copy)
        self._unlearned = []


def opened(
    space: SearchSpace | Mapping[str, Parameter], options: StudyOptions, check: Check | None = None
) -> RunState | Loaded:
    """The run that these options describe: a new one, or the one in the journal, if that is wanted and it has one.

    Args:
        space: the search space, or a dict of its parameters.
        options: checked.
        check: raises an error for a run that can't do what is wanted, before anything is written.

    Raises:
        SettingError: for parts that do not go together.
        JournalError: if the journal holds a run, and another one, or none was expected.
    """
    space = _as_space(space)
    observations = Observations(
        space,
        options.all_directions,
        budget=options.budget,
        by_preference=options.preferences,
        objectives=options.objectives,
    )
    with _returned_if_refused(options):
        if options.journal is not None and options.if_exists == "load" and holds_run(options.journal):
            return _same_run(options.journal, observations, options, check)
        return _new(observations, options, check)


def loaded(
    journal: Place, space: SearchSpace | Mapping[str, Parameter] | None = None, **parts: Unpack[Parts]
) -> Loaded:
    """The run that a journal keeps, perhaps with other parts; with this space, if it is the one that it declares.

    Raises:
        JournalError: for a missing, damaged or contradictory journal.
        SettingError: for a part that the header can't name.
    """
    space = None if space is None else _as_space(space)
    check_parts(parts, "a run is loaded with its own {unknown}")
    if isinstance(name := parts.get("strategy"), str):
        parts["strategy"] = named_strategy(name)
    history = replay(journal if isinstance(journal, Log) else Journal(_in_directory(journal)), space)
    observations, header = history.observations, history.header
    described, by_preference = header.get("recipe", {}), observations.ledger.by_preference
    recipe = Recipe.again(observations.space, observations.k, described, parts, observations.budget, by_preference)
    state = _state(observations, recipe, header["seed"], header.get("cost_limit"))
    observations.journal = history.journal
    return Loaded(state, history)


def holds_run(journal: Place) -> bool:
    """Whether a file exists and holds more than a first line that a crash cut off; or a log has lines."""
    return any(True for _ in journal.read()) if isinstance(journal, Log) else holds_anything(Path(journal))


def _begun(journal: Place, header: dict[str, Any]) -> Log:
    """A new journal, its first line written.

    Raises:
        JournalError: if it holds a run already, or can't be written.
    """
    if not isinstance(journal, Log):
        return Journal.begin(journal, header)
    journal.open()
    try:
        if holds_run(journal):
            raise JournalError(
                f"{journal.path} holds a run already. Go on with Study.load, or if_exists='load', or give another log."
            )
        journal.append([first_line(header)])
    except BaseException:
        journal.close()
        raise
    return journal


def _in_directory(journal: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The journal in a run directory of the command line; anything else as it is."""
    if not isinstance(journal, (str, os.PathLike)):
        return journal
    path = as_path(journal, "a journal", JournalError)
    return path / JOURNAL if (path / JOURNAL).is_file() else path


def _as_space(space: Any) -> SearchSpace:
    if not isinstance(space, SearchSpace | Mapping):
        raise SettingError(
            f"space must be a SearchSpace, or a dict of parameters, but got {space!r:.100}. Give SearchSpace({{...}})."
        )
    return as_space(space)


# --- a new run -------------------------------------------------------------------------------------------------------


def _new(observations: Observations, options: StudyOptions, check: Check | None) -> RunState:
    recipe = Recipe.resolve(
        observations.space,
        observations.k,
        **cast(dict[str, Any], options.parts),
        budget=options.budget,
        by_preference=options.preferences,
    )
    learned = [each for each in recipe.strategy.models if each.has_learned_in_a_run]  # before they are in this run
    state = _state(observations, recipe, options.seed, options.cost_limit)
    if check is not None:
        check(state)
    if options.journal is not None:
        observations.journal = _begun(options.journal, state.header())
        times_path(observations.journal.path).unlink(missing_ok=True)  # of another run, whose journal is gone
    if default := observations.space.default:
        state.enqueue(default)
    if learned:
        log.warning(
            "this %s has learned in another run, and goes on from there. Make a new one for each run, unless that is "
            "what you want.",
            type(learned[0]).__name__,
        )
    return state


def _state(observations: Observations, recipe: Recipe, seed: int, cost_limit: float | None) -> RunState:
    """The state of a run, if its labels can grade its outcomes."""
    if recipe.labels.by_preference and not observations.ledger.by_preference:
        raise SettingError(
            f"{type(recipe.labels).__name__} grades comparisons, but this is a study of values. Leave it out, or make "
            "the study with preferences=True."
        )
    recipe.labels.forget()
    return RunState(observations, recipe, seed, cost_limit=cost_limit)


@contextmanager
def _returned_if_refused(options: StudyOptions) -> Iterator[None]:
    """If a run is refused, its models stay with the run that had them, and its labels keep their state."""
    strategy, labels = options.strategy, options.labels
    models = strategy.models if isinstance(strategy, Strategy) else (options.classifier,)
    had = [(each, each.generator, each.run) for each in models if isinstance(each, Classifier)]
    known = labels.state_dict() if isinstance(labels, Labelling) else None
    try:
        yield
    except BaseException:
        for model, generator, run in had:
            model.generator, model.run = generator, run
        if isinstance(labels, Labelling) and known is not None:
            labels.load_state_dict(known)
        raise


# --- a run in a journal ----------------------------------------------------------------------------------------------


def _same_run(path: Place, wanted: Observations, options: StudyOptions, check: Check | None) -> Loaded:
    """The run in a journal, if it is the wanted one; its lock is taken at once, before any evaluation."""
    run = loaded(path, wanted.space, **options.parts)
    assert run.history is not None
    header, journal = run.history.header, run.history.journal
    found = _other_directions(wanted, run.state.observations) + _other_budget(wanted, run.state.observations)
    found += [f"seed is {seed}, was {header['seed']}"] if (seed := as_seed(options.seed)) != header["seed"] else []
    found += _other_parts(run.state.recipe, header["recipe"], options.parts) if "recipe" in header else []
    if found:
        raise JournalError(
            f"{journal.path} holds another run than the one described here: {'; '.join(found)}. Name another file; or, "
            "to continue the run in it with other parts, use Study.load(journal, ...)."
        )
    run.state.cost_limit = options.cost_limit  # it may be raised, or lowered, at any time
    if check is not None:
        check(run.state)
    _close_former(journal.path)
    journal.open()
    has_begun = len(run.state.observations) or run.history.queue
    if not has_begun and (default := SearchSpace.from_dict(header["space"]).default):  # it ended before it queued this
        run.restore()
        run.state.enqueue(default)
    return run


def _close_former(journal: Path) -> None:
    """Closes the study of this process that has the journal, if it is idle: the cell of a notebook is run again."""
    former = WRITERS.get(journal)
    if former is None or former.state.is_running:
        return
    former.close()
    log.info("the study that had %s before is closed: this one goes on with it", journal)


def _other_parts(recipe: Recipe, described: Mapping[str, Any], parts: Parts) -> list[str]:
    """What differs in the parts, in words; former defaults that are not given now continue unchanged."""
    left_out = sorted(set(described.get("given", ())) - given_names(parts))
    words = [f"{name} is not given, was {shown(described[name])}" for name in left_out]
    return words + recipe.differences(described)


def _other_directions(wanted: Observations, kept: Observations) -> list[str]:
    """What differs in directions, in words."""
    if wanted.ledger.by_preference != kept.ledger.by_preference:
        return [f"preferences is {wanted.ledger.by_preference}, was {kept.ledger.by_preference}"]
    if wanted.objectives != kept.objectives:
        return [f"objectives is {', '.join(wanted.objectives)}, was {', '.join(kept.objectives)}"]
    if wanted.directions == kept.directions:
        return []
    return [f"direction is {', '.join(wanted.directions)}, was {', '.join(kept.directions)}"]


def _other_budget(wanted: Observations, kept: Observations) -> list[str]:
    """What differs in budgets, in words."""
    return [] if wanted.budget == kept.budget else [f"budget is {wanted.budget}, was {kept.budget}"]
