"""`Sweep`: the sweeper of Hydra's `hydra/sweeper: deepbore`; the plugin class is in hydra_plugins/."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from deepbore.data.outcome import Outcome, WrongReturn
from deepbore.data.trial import Trial
from deepbore.errors import JournalError, MissingPackage, SettingError, SpaceError
from deepbore.evaluators import Evaluator
from deepbore.evaluators.base import Finished
from deepbore.space import Categorical, Integer, Ordinal, Params, Real, SearchSpace
from deepbore.space.parameters import Parameter
from deepbore.study import Result, Study
from deepbore.study.opening import holds_run
from deepbore.validation import as_path, whole
from deepbore.worker.objective import NoValue, in_words, read

try:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import IntervalSweep, Override, OverrideType, RangeSweep
    from hydra.core.utils import JobReturn
    from hydra.plugins.sweeper import Sweeper
    from omegaconf import OmegaConf
except ImportError:
    raise MissingPackage("the sweeper for Hydra needs Hydra: pip install 'deepbore[hydra]'.") from None

JOURNAL, RESULTS, CONFIG = "journal.jsonl", "optimization_results.yaml", "multirun.yaml"
LOG, ORDINAL, CATEGORICAL = "log", "ordinal", "categorical"  # tags


class Sweep:
    """A Hydra sweep as a run of deepbore: each trial is a job, whose function returns the value.

    The folder of the sweep has the jobs' folders, named by trial number; journal.jsonl, for `deepbore best`, `plot` and
    `report`; and, at the end, optimization_results.yaml. An interrupted sweep continues from its journal if it is
    started again with the same hydra.sweep.dir and the same overrides, except those of `hydra` itself. A job that
    raises is a failed trial.

    Args:
        sweeper: Hydra's sweeper, with its config, launcher and context.
        n_trials: how many jobs, in all.
        batch_size: jobs launched at once.
        direction: "minimize" or "maximize".
        seed: of everything random.
        n_initial: jobs before the classifier proposes; None as in `Study`.
        max_failures: ends a sweep whose jobs have failed so many times and never succeeded; None for never.
        journal: file of the run, with its overrides in a multirun.yaml beside it; None for journal.jsonl in the folder
            of the sweep.
        priors: what is believed of the best values, by the names of the parameters: {centre: ..., spread: ...}, or
            weights by the texts of choices.
        parts: classifier, acquisition, candidates, labels of `Study`; None for the default.

    Raises:
        SettingError: for overrides that make no search space, or another setting outside its range.
        JournalError: if the journal holds another run, or one with other overrides that do not sweep.
    """

    def __init__(
        self,
        sweeper: Sweeper,
        *,
        n_trials: int,
        batch_size: int,
        direction: str,
        seed: int,
        n_initial: int | None,
        max_failures: int | None,
        journal: str | None,
        priors: Mapping[str, Any] | None = None,
        **parts: Any,
    ):
        whole(1, n_trials=n_trials, batch_size=batch_size)
        self.sweeper, self.n_trials, self.batch_size, self.max_failures = sweeper, n_trials, batch_size, max_failures
        self.priors = OmegaConf.to_container(OmegaConf.create(dict(priors or {})))
        self.folder = Path(sweeper.config.hydra.sweep.dir)
        self.journal = self.folder / JOURNAL if journal is None else as_path(journal, "a journal", JournalError)
        self.config = self.folder / CONFIG if journal is None else Path(f"{self.journal}.{CONFIG}")  # of this run
        self.study_settings: dict[str, Any] = {"direction": direction, "seed": seed, "n_initial": n_initial, **parts}

    def run(self, arguments: Sequence[str]) -> Result:
        """Runs the jobs.

        Args:
            arguments: the overrides, some of which sweep.
        """
        parser = OverridesParser.create(config_loader=self.sweeper.hydra_context.config_loader)
        plan = Plan.of(parser.parse_overrides(list(arguments))).with_priors(self.priors)
        if holds_run(self.journal):
            self._check_fixed(plan, parser)
        study = Study(plan.space, journal=self.journal, if_exists="load", **self.study_settings)
        self.folder.mkdir(parents=True, exist_ok=True)
        for config in {self.folder / CONFIG, self.config}:  # after the sweep was checked to be the same
            OmegaConf.save(self.sweeper.config, config)
        left = max(0, self.n_trials - study.observations.ledger.n_asked)
        jobs = HydraJobs(self.sweeper, plan, self.batch_size)
        result = study.optimize(jobs, left, batch_size=self.batch_size, max_failures=self.max_failures)
        found = result.best_trial
        best = {"best_params": None if found is None else found.params, "best_value": result.best_value}
        OmegaConf.save(OmegaConf.create({"name": "deepbore", **best}), self.folder / RESULTS)
        return result

    def _check_fixed(self, plan: "Plan", parser: OverridesParser) -> None:
        """Raises JournalError if the sweep in the journal is known to have other fixed overrides."""
        if not (kept := _arguments_in(self.config)):
            return
        before, now = set(Plan.of(parser.parse_overrides(kept)).fixed), set(plan.fixed)
        given = [f"{each} was given" for each in sorted(before - now)]
        if differs := [*given, *(f"{each} was not given" for each in sorted(now - before))]:
            raise JournalError(
                f"{self.journal} holds another sweep than the one described here: {', '.join(differs)}. Give the same "
                f"overrides, or name another journal; where the jobs are the same all the same, delete {self.config}."
            )


def _arguments_in(config: Path) -> list[str]:
    """The overrides in a multirun.yaml; empty if there is no such file, or none in it."""
    if not config.exists():
        return []
    kept = OmegaConf.load(config)
    params = OmegaConf.select(kept, "hydra.sweeper.params") or OmegaConf.create({})
    task: Any = OmegaConf.to_container(OmegaConf.select(kept, "hydra.overrides.task") or OmegaConf.create([]))
    return [*(f"{name}={values}" for name, values in params.items()), *task]


class HydraJobs(Evaluator):
    """Trials as jobs of Hydra's launcher.

    Args:
        sweeper: Hydra's sweeper.
        plan: from configurations to overrides.
        workers: jobs launched at once.
    """

    def __init__(self, sweeper: Sweeper, plan: "Plan", workers: int):
        self.sweeper, self.plan, self.workers = sweeper, plan, workers
        self._queue: list[Trial] = []

    def submit(self, trial: Trial) -> None:
        self._queue.append(trial)

    def collect(self) -> list[Finished]:
        trials = self._next()
        finished = self._launched(trials) if trials else []
        self._queue = self._queue[len(trials) :]
        return finished

    def _launched(self, trials: list[Trial]) -> list[Finished]:
        """The outcomes of a batch of jobs; if a job ends the process, and so the batch, each job is launched alone."""
        batch = [self.plan.overrides(trial.params) for trial in trials]
        self.sweeper.validate_batch_is_legal(batch)
        try:
            jobs = self.sweeper.launcher.launch(batch, initial_job_idx=trials[0].id)
        except SystemExit as error:
            if len(trials) > 1:
                return [one for trial in trials for one in self._launched([trial])]
            return [Finished(trials[0], Outcome.failure(in_words(error)))]
        return [Finished(trial, outcome_of(job)) for trial, job in zip(trials, jobs, strict=True)]

    def _next(self) -> list[Trial]:
        """The next trials with consecutive numbers: Hydra numbers the jobs of a batch."""
        first = self._queue[: self.workers]
        return [trial for k, trial in enumerate(first) if trial.id == first[0].id + k]

    @property
    def outstanding(self) -> int:
        return len(self._queue)

    def withdraw(self) -> list[Trial]:
        waiting, self._queue = self._queue, []
        return waiting

    def close(self) -> None:
        self._queue.clear()


def outcome_of(job: JobReturn) -> Outcome:
    """The outcome of a job: the value that its function has returned, or a failure."""
    try:
        returned = job.return_value
    except Exception as error:
        return Outcome.failure(f"{type(error).__name__}: {error}")
    outcome = read("the function under @hydra.main", returned)
    if isinstance(outcome, NoValue):  # the others of its batch have run, and are told
        return WrongReturn.failure(outcome.reason)
    return outcome


# --- overrides -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The overrides of a sweep.

    Attributes:
        space: of the overrides that sweep, with their names on the command line.
        fixed: the other overrides.
    """

    space: SearchSpace
    fixed: Sequence[str]

    @classmethod
    def of(cls, overrides: Sequence[Override]) -> "Plan":
        """The plan of a command line; the last override of a key counts, and still adds the key if an earlier one does.

        Raises:
            SettingError: if none sweeps, or deepbore cannot sweep over one.
        """
        last: dict[tuple[str, str | None], Override] = {}
        for override in overrides:
            place = override.key_or_group, override.package
            last[place] = _after(last.get(place, override), override)
        read = {override.get_key_element(): parameter_of(override) for override in last.values()}
        space = {key: each for key, each in read.items() if isinstance(each, Parameter)}
        if not space:
            raise SettingError(
                f"a sweep needs a parameter to sweep over, but got {[each.input_line for each in overrides]}. "
                "Give one, such as 'lr=tag(log, interval(1e-5, 1e-1))' or 'model=small,large'."
            )
        return cls(SearchSpace(space), [each for each in read.values() if not isinstance(each, Parameter)])

    def with_priors(self, priors: Mapping[str, Any]) -> "Plan":
        """The same plan with what is believed of the best values.

        Args:
            priors: by the names of parameters, with or without + before them; see `Real` and `Categorical`.

        Raises:
            SettingError: for a name that is not swept, or what no prior can be made from.
        """
        names = {key.lstrip("+"): key for key in self.space.names}
        parameters = dict(self.space.parameters)
        for name, prior in priors.items():
            key = names.get(str(name).lstrip("+"))
            if key is None:
                raise SettingError(f"priors are of what is swept, {sorted(names)}, but got {name!r}.")
            texts = {str(each): one for each, one in prior.items()} if isinstance(prior, Mapping) else prior
            try:
                parameters[key] = replace(parameters[key], prior=texts)  # type: ignore[type-var]
            except SpaceError as error:
                raise SettingError(f"the prior of {name!r}: {error}") from None
        return replace(self, space=SearchSpace(parameters))

    def overrides(self, params: Params) -> list[str]:
        """The overrides of the job of a configuration."""
        return [*self.fixed, *(f"{key}={value}" for key, value in params.items())]


def _after(first: Override, then: Override) -> Override:
    """The later of two overrides of a key, which still adds the key if the first one does."""
    if then.type != OverrideType.CHANGE or not (first.is_add() or first.is_force_add()):
        return then
    added = replace(then, type=first.type)
    return replace(added, input_line=f"{added.get_key_element()}={then.get_value_string()}")


def parameter_of(override: Override) -> Parameter | str:
    """The parameter that an override sweeps over; the override itself if it has a single value.

        interval(a, b)                            Real; Integer for int(interval(a, b)); both ends are included
        range(a, b, step) of whole numbers        Integer, without b, as in Hydra
        choice(a, b, ...), a,b,..., glob(*)       Categorical; Ordinal for numbers in ascending order
        tag(log, ...)                             an interval or a range on a log scale
        tag(ordinal, ...), tag(categorical, ...)  choices with or without an order

    Raises:
        SettingError: for an override that makes no parameter, or an unknown tag.
    """
    if not override.is_sweep_override():
        return str(override.input_line)
    swept = override.value()
    tags: set[str] = getattr(swept, "tags", set())
    try:
        if isinstance(swept, IntervalSweep):
            _only({LOG}, tags)
            kind = Integer if isinstance(swept.start, int) else Real
            return kind(swept.start, swept.end, log=LOG in tags)
        numbers = swept.range() if isinstance(swept, RangeSweep) else None
        if isinstance(numbers, range) and len(numbers) > 1 and not tags & {ORDINAL, CATEGORICAL}:
            _only({LOG}, tags)
            return _integer(numbers, LOG in tags)
        _only({ORDINAL, CATEGORICAL}, tags)
        return _choice(override, tags)
    except SpaceError as error:
        raise SettingError(f"{override.input_line}: {error}") from None


def _integer(numbers: range, log: bool) -> Integer:
    low, high = sorted((numbers[0], numbers[-1]))
    return Integer(low, high, log=log, step=None if abs(numbers.step) == 1 else abs(numbers.step))


def _choice(override: Override, tags: set[str]) -> Parameter | str:
    """Choices by their text on the command line; their values may be lists, groups or numbers."""
    swept = override.value()
    if getattr(swept, "shuffle", False):  # a random order of choices has no meaning here
        override = replace(override, _value=replace(swept, shuffle=False))
    texts, values = list(override.sweep_string_iterator()), list(override.sweep_iterator())
    if len(texts) == 1:
        return f"{override.get_key_element()}={texts[0]}"
    numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    ordered = numeric and values == sorted(values) and CATEGORICAL not in tags
    return (Ordinal if ordered or ORDINAL in tags else Categorical)(texts)


def _only(known: set[str], tags: set[str]) -> None:
    if tags - known:
        raise SpaceError(f"a tag of this sweep must be among {sorted(known)}, but got {sorted(tags)}.")
