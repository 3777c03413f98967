"""`DeepBoreSearch`: deepbore as a search algorithm of Ray Tune."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Status, Trial
from deepbore.errors import MissingPackage, SettingError, SpaceError, SpaceExhausted
from deepbore.space import Categorical, Integer, Parameter, Params, Real, SearchSpace
from deepbore.study import Study
from deepbore.study.options import StudyArguments
from deepbore.validation import above

try:
    from ray import cloudpickle
    from ray.tune.search import Searcher
    from ray.tune.search.sample import (
        Categorical as Choice,
        Domain,
        Float,
        Integer as Int,
        LogUniform,
        Quantized,
        Uniform,
    )
except ImportError:
    raise MissingPackage("DeepBoreSearch needs Ray Tune: pip install 'deepbore[tune]'.") from None

MODES: dict[str, Literal["minimize", "maximize"]] = {"min": "minimize", "max": "maximize"}
SEPARATOR = "/"  # between the names of nested dicts


# --- spaces ----------------------------------------------------------------------------------------------------------


def from_tune(space: Mapping[str, Any]) -> tuple[SearchSpace, dict[str, Any]]:
    """The search space of a `param_space` of Tune, and its constants; names of nested dicts are joined by "/".

    Raises:
        SpaceError: for what has no counterpart: a grid search, normal distributions, functions.

    Example:
        >>> from ray import tune
        >>> from_tune({"lr": tune.loguniform(1e-5, 1e-1), "net": {"layers": tune.randint(1, 5)}, "epochs": 9})
        (SearchSpace({'lr': Real(1e-05, 0.1, log=True), 'net/layers': Integer(1, 4)}), {'epochs': 9})
    """
    parameters: dict[str, Parameter] = {}
    constants: dict[str, Any] = {}
    for name, value in flat(space).items():
        if isinstance(value, Domain):
            parameters[name] = parameter_of(name, value)
        elif holds_domain(value):
            raise SpaceError(
                f"{name!r} must be a domain of Tune or a constant, but has one within it: {value!r:.100}. Give each "
                "a name of its own."
            )
        else:
            constants[name] = value
    if not parameters:
        raise SpaceError(f"param_space must have a domain of Tune, as tune.uniform(0, 1), but has only {list(space)}.")
    return SearchSpace(parameters), constants


def parameter_of(name: str, domain: Domain) -> Parameter:
    """The parameter of a domain of Tune; Tune's upper bounds of integers are exclusive, unless they have steps."""
    if isinstance(domain, Choice) and any(map(holds_domain, domain.categories)):
        raise SpaceError(
            f"{name!r} has a choice with a domain of Tune within it, which has no value before it is drawn: "
            f"{domain.categories!r:.100}. Give space= a SearchSpace, with a parameter that is conditional on the "
            'choice: Real(0, 1, when=Condition("optimizer", "sgd")).'
        )
    sampler, step = domain.get_sampler(), None
    if isinstance(sampler, Quantized):
        sampler, step = sampler.get_sampler(), sampler.q
    log = isinstance(sampler, LogUniform)
    if isinstance(domain, Choice) and isinstance(sampler, Uniform):
        return Categorical(domain.categories)
    if isinstance(domain, (Float, Int)) and isinstance(sampler, (Uniform, LogUniform)) and not (step and log):
        if isinstance(domain, Float):
            return Real(domain.lower, domain.upper, log=log, step=step)
        exclusive = 1 if step is None else 0
        return Integer(domain.lower, domain.upper - exclusive, log=log, step=None if step == 1 else step)
    kind = f"{type(domain).__name__} with {type(getattr(sampler, 'sampler', sampler)).__name__.strip('_')}"
    raise SpaceError(
        f"{name!r} has no counterpart in deepbore: {kind}{' in steps' if step else ''}. There are uniform, loguniform, "
        "quniform, randint, lograndint, qrandint and choice; or give space= a SearchSpace."
    )


def holds_domain(choice: Any) -> bool:
    """Whether a choice is a domain of Tune or a grid search, or has one within it."""
    if isinstance(choice, Mapping):
        return "grid_search" in choice or any(map(holds_domain, choice.values()))
    return isinstance(choice, Domain) or (isinstance(choice, list | tuple | set) and any(map(holds_domain, choice)))


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested dict as one whose names are joined by "/".

    Raises:
        SpaceError: for a grid search.
    """
    found: dict[str, Any] = {}
    for name, value in nested.items():
        if name == "grid_search":
            raise SpaceError(f"a search has no grid_search, but {prefix or name!r} is one. Give tune.choice([...]).")
        path = f"{prefix}{SEPARATOR}{name}" if prefix else str(name)
        found |= flat(value, path) if isinstance(value, Mapping) and value else {path: value}
    return found


def nested_dict(params: Mapping[str, Any]) -> dict[str, Any]:
    """The way back from `flat`."""
    whole: dict[str, Any] = {}
    for path, value in params.items():
        *above_it, name = path.split(SEPARATOR)
        place = whole
        for each in above_it:
            place = place.setdefault(each, {})
        place[name] = value
    return whole


# --- the searcher ----------------------------------------------------------------------------------------------------


class DeepBoreSearch(Searcher):
    """A search algorithm of Ray Tune, as `tune.TuneConfig(search_alg=DeepBoreSearch(), metric="loss", mode="min")`.

    Results are told to a study; NaN, infinite and missing ones, and errors, are failures. With `max_t` a trial that
    ends before was stopped by Tune's scheduler: it is pruned, and graded by the results it has reported, where other
    searches take its last result for the one of a whole trial.

    Tune saves and restores it with the experiment. With `journal=` the study is kept there, too, and a search on an
    existing journal goes on (`if_exists="load"`).

    All other arguments are those of a study: see `StudyOptions`.

    Args:
        space: a `SearchSpace`, or one of Tune's; None for the `param_space` of the experiment.
        metric: name of the result, or of several.
        mode: "min" or "max", or one for each.
        points_to_evaluate: configurations that are tried first.
        evaluated_rewards: their results, as many, if they are known: they are not tried again.
        max_t: the step at which a trial is complete, as of the scheduler; None for the stop condition of the
            experiment, if it has one for `time_attr`.
        time_attr: name of the step.

    Raises:
        SettingError: for settings that do not go together.
        SpaceError: for a domain of Tune without a counterpart.

    Example:
        >>> from ray import tune
        >>> search = DeepBoreSearch({"x": tune.uniform(0, 1)}, metric="loss", mode="min", seed=0)
        >>> 0 <= search.suggest("a")["x"] <= 1
        True
    """

    def __init__(
        self,
        space: SearchSpace | Mapping[str, Any] | None = None,
        metric: str | Sequence[str] | None = None,
        mode: str | Sequence[str] | None = None,
        points_to_evaluate: Sequence[Params] | None = None,
        evaluated_rewards: Sequence[Any] | None = None,
        max_t: float | None = None,
        time_attr: str = "training_iteration",
        **options: Unpack[StudyArguments],
    ):
        super().__init__(metric=metric, mode=mode)
        self._metric: str | Sequence[str] | None = metric
        self._mode: str | Sequence[str] | None = mode
        above(0, max_t=max_t)
        if options.get("budget") is not None:
            raise SettingError("Tune's schedulers decide how long a trial runs. Leave out budget=, and give max_t=.")
        self._points, self._rewards = list(points_to_evaluate or []), evaluated_rewards
        if evaluated_rewards is not None and len(evaluated_rewards) != len(self._points):
            raise SettingError(
                "evaluated_rewards must be as many as points_to_evaluate, but there are "
                f"{len(evaluated_rewards)} and {len(self._points)}."
            )
        self.max_t, self.time_attr, self._options = max_t, time_attr, options
        self._space: SearchSpace | None = None
        self._constants: dict[str, Any] = {}
        if space is not None:
            self._space, self._constants = self._as_space(space)
        self._study: Study | None = None
        self._asked: dict[str, int] = {}  # Tune's id -> ours
        self._begin()

    @staticmethod
    def _as_space(space: SearchSpace | Mapping[str, Any]) -> tuple[SearchSpace, dict[str, Any]]:
        if isinstance(space, SearchSpace):
            return space, {}
        if any(isinstance(each, Parameter) for each in space.values()):
            return SearchSpace(space), {}
        return from_tune(space)

    def set_search_properties(self, metric: Any, mode: Any, config: dict[str, Any], **spec: Any) -> bool:
        if self._study is not None:
            return False
        if config and self._space is None:
            self._space, _ = self._as_space(config)  # Tune adds the constants by itself
        self._metric, self._mode = metric or self._metric, mode or self._mode
        stop = spec.get("stop")
        if self.max_t is None and isinstance(stop, Mapping):
            self.max_t = stop.get(self.time_attr)
        self._begin()
        return True

    @property
    def study(self) -> Study:
        """The study.

        Raises:
            SettingError: before space, metric and mode are known.
        """
        if self._study is None:
            missing = [name for name in ("space", "metric", "mode") if not getattr(self, f"_{name}")]
            raise SettingError(f"{' and '.join(missing)} must be given, to DeepBoreSearch or to tune.TuneConfig.")
        return self._study

    def _begin(self) -> None:
        """Makes the study once space, metric and mode are known."""
        if self._study is not None or self._space is None or not self._metric or not self._mode:
            return
        modes = [self._mode] if isinstance(self._mode, str) else list(self._mode)
        if unknown := [mode for mode in modes if mode not in MODES]:
            raise SettingError(f"mode must be min or max, but got {unknown[0]!r}.")
        if len(modes) == 1:
            self._options["direction"] = MODES[modes[0]]
        else:
            self._options["directions"] = [MODES[mode] for mode in modes]
        if self._options.get("journal") is not None:
            self._options.setdefault("if_exists", "load")
        self._study = Study(self._space, **self._options)
        if len(self._study.trials):
            return  # of the journal: the points were tried before
        points = [flat(point) for point in self._points]
        for number, point in enumerate(points):
            if self._rewards is None:
                self._study.enqueue(point)
            else:
                self.add_evaluated_point(point, self._rewards[number])

    # --- Searcher ----------------------------------------------------------------------------------------------------

    def suggest(self, trial_id: str) -> Any:
        try:
            trial = self.study.ask_one()
        except SpaceExhausted:
            return Searcher.FINISHED
        self._asked[trial_id] = trial.id
        return nested_dict({**self._constants, **trial.params})

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        value, trial = self._value(result), self._pending(trial_id)
        if trial is not None and isinstance(value, float) and self.time_attr in result:
            self.study.report(trial, value, step=float(result[self.time_attr]))

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        trial, value = self._pending(trial_id), self._value(result or {})
        self._asked.pop(trial_id, None)
        if trial is None:
            return
        if error or value is None:
            says = "an error" if error else f"no result {self._metric!r}" if result else "no result"
            self.study.tell(trial, Outcome.failure(f"{says} of the trial {trial_id}"))
        elif self._was_stopped(result or {}) and isinstance(value, float):
            if self.study.report(trial, value, step=float((result or {})[self.time_attr])):
                self.study.tell(trial, pruned=True)
        else:
            self.study.tell(trial, value)

    def _was_stopped(self, result: Mapping[str, Any]) -> bool:
        return self.max_t is not None and self.time_attr in result and result[self.time_attr] < self.max_t

    def _pending(self, trial_id: str) -> Trial | None:
        row = self._asked.get(trial_id)
        trial = None if row is None else self.study.trials[row]
        return None if trial is None or trial.status is not Status.PENDING else trial

    def _value(self, result: Mapping[str, Any]) -> float | list[float] | None:
        """The result, or several; None where one is missing or not finite."""
        names = [self._metric] if isinstance(self._metric, str) else list(self._metric or ())
        values = [result.get(name, math.nan) for name in names]
        try:
            numbers = [float(value) for value in values]
        except (TypeError, ValueError):
            return None
        if not all(map(math.isfinite, numbers)):
            return None
        return numbers[0] if isinstance(self._metric, str) else numbers

    def add_evaluated_point(
        self,
        parameters: Params,
        value: Any,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: Sequence[float] | None = None,
    ) -> None:
        """Adds a result that is known; one of a pruned trial is left out: it is no result of a whole trial."""
        if not pruned:
            params = {name: each for name, each in flat(parameters).items() if name in self.study.space.names}
            self.study.add(params, math.nan if error or value is None else value)

    # --- state -------------------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, Any]:
        return {**vars(self), "_study": None} if self._options.get("journal") is not None else dict(vars(self))

    def set_state(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()
        if self._options.get("journal") is not None and self._study is not None:  # it may know more than Tune
            unknown = [trial.id for trial in self._study.pending if trial.id not in self._asked.values()]
            if unknown:
                self._study.withdraw(unknown, "Tune had not kept it")

    def save(self, checkpoint_path: str) -> None:
        """Keeps the study, unless it has a journal, and what Tune runs, in a file."""
        partial = Path(f"{checkpoint_path}.partial")
        partial.write_bytes(cloudpickle.dumps(self.get_state()))
        partial.replace(checkpoint_path)

    def restore(self, checkpoint_path: str) -> None:
        """Continues from the file of `save`; with a journal from that, which may know more."""
        self.set_state(cloudpickle.loads(Path(checkpoint_path).read_bytes()))
