"""`Recipe`: the components of a run, with defaults resolved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier, Link, at_budgets
from deepbore.component import alike, class_name, describe, make, settings_in
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import Gamma, Labelling, PreferenceLabels
from deepbore.labels.defaults import default_labels, rung_labels
from deepbore.pruners import Pruner
from deepbore.space import SearchSpace
from deepbore.strategies import ModelStrategy, Strategy, Turns
from deepbore.strategies.defaults import default_classifier, default_strategy
from deepbore.text import as_html
from deepbore.validation import of_kind, whole

N_INITIAL = 10
EDITION = 1  # of the defaults; recipes of versions 0.1 to 0.3 have none
# settings with other defaults before the first edition, by class: a description has only the settings that were given
FORMER_DEFAULTS: dict[str, dict[str, Any]] = {
    "deepbore.classifiers.LaplaceGGN": {"activation": "auto", "likelihood": "bernoulli"},
}
SHORT_FORM: dict[str, type] = {"classifier": Classifier, "acquisition": Acquisition, "candidates": Candidates}
KINDS: dict[str, type] = {"labels": Labelling, "strategy": Strategy, "pruner": Pruner, **SHORT_FORM}


@dataclass(frozen=True)
class Recipe:
    """The components of a run. They are described in the header of the journal, so that a run can be resumed.

    Attributes:
        labels: the labelling of outcomes.
        strategy: proposes points.
        n_initial: the number of trials of the Sobol design.
        given: names of the settings given by the user.
        pruner: ends trials early; None if it does not.
    """

    labels: Labelling
    strategy: Strategy
    n_initial: int
    given: frozenset[str] = frozenset()
    pruner: Pruner | None = None

    def _repr_html_(self) -> str:
        """The parts as a table for notebooks."""
        parts = {"labels": self.labels, "strategy": self.strategy, "n_initial": self.n_initial, "pruner": self.pruner}
        return as_html("Recipe", [[name, repr(part)] for name, part in parts.items() if part is not None])

    @property
    def classifier(self) -> Classifier:
        """The first model of the strategy."""
        return self.strategy.models[0]

    @property
    def acquisition(self) -> Acquisition | None:
        """The acquisition of the first strategy; None if that is not a `ModelStrategy`."""
        return None if self.first is None else self.first.acquisition

    @property
    def candidates(self) -> Candidates | None:
        """The optimiser of the first strategy; None if that is not a `ModelStrategy`."""
        return None if self.first is None else self.first.candidates

    @property
    def first(self) -> ModelStrategy | None:
        """The `ModelStrategy` that classifier, acquisition and candidates describe; None if there is none."""
        first = self.strategy.first if isinstance(self.strategy, Turns) else self.strategy
        return first if isinstance(first, ModelStrategy) else None

    @classmethod
    def resolve(
        cls,
        space: SearchSpace,
        objectives: int = 1,
        *,
        labels: Labelling | None = None,
        gamma: Gamma | None = None,
        strategy: Strategy | None = None,
        classifier: Classifier | None = None,
        acquisition: Acquisition | None = None,
        candidates: Candidates | None = None,
        n_initial: int | None = None,
        pruner: Pruner | None = None,
        budget: Budget | None = None,
        by_preference: bool = False,
        turns: Sequence[Strategy] | None = None,
    ) -> "Recipe":
        """The recipe with defaults for missing settings; raises SettingError for incompatible ones.

        Args:
            space: the search space.
            objectives: k >= 1, the number of objectives.
            labels: for this and all further settings see `Study`.
            by_preference: whether trials are compared; then the default is `PreferenceLabels`.
            turns: strategies that alternate with the model of classifier, acquisition and candidates; None for the
                default.

        Raises:
            SettingError: for a component of the wrong kind, incompatible components, or a number outside its range.
        """
        if labels is not None and gamma is not None:
            raise SettingError("give either labels or gamma, not both: labels carry their own gamma.")
        short = {"classifier": classifier, "acquisition": acquisition, "candidates": candidates}
        given = {"labels": labels, "strategy": strategy, "pruner": pruner, **short}
        for name, part in given.items():
            of_kind(KINDS[name], **{name: part})
        whole(1, n_initial=n_initial)
        check_budget(budget, objectives)
        if pruner is not None and (by_preference or objectives > 1):
            raise SettingError(
                "a pruner needs one objective, which trials report, but this is a study of "
                f"{'preferences' if by_preference else f'{objectives} objectives'}. Leave it out."
            )
        if strategy is None:
            classifier = classifier or default_classifier(objectives, labels, space=space)
            model = classifier
        else:
            refuse_both(short)
            model = first_model(strategy)
        if labels is None:
            labels = model.default_labels(gamma, objectives)
            labels = PreferenceLabels(labels) if by_preference else labels  # type: ignore[arg-type]  # of one objective
        if budget is not None:
            labels = rung_labels(labels)
        if strategy is not None:
            strategy = strategy if budget is None else strategy.at_budgets(budget)
        else:
            assert classifier is not None
            classifier = classifier if budget is None else at_budgets(classifier, budget)
            strategy = short_form(space, labels, classifier, acquisition, candidates, turns)
        n = N_INITIAL if n_initial is None else int(n_initial)
        recipe = cls(labels, strategy, n, given_names({**given, "gamma": gamma}), pruner)
        recipe.check(space, objectives)
        return recipe

    @classmethod
    def again(
        cls,
        space: SearchSpace,
        objectives: int,
        described: Mapping[str, Any],
        changed: Mapping[str, Any],
        budget: Budget | None = None,
        by_preference: bool = False,
    ) -> "Recipe":
        """The recipe that a header describes, with some settings changed.

        Args:
            space: the search space.
            objectives: k.
            described: the recipe in the header; empty in journals of version 0.1, which have the defaults.
            changed: settings for `resolve`; missing ones, or None, are those of the header.
            budget: the budget of the run.
            by_preference: whether trials are compared.

        Raises:
            SettingError: for a component that the header cannot describe, and that is not given.
        """
        check_described(described)
        parts = parts_of(upgraded(described), changed)
        if "edition" not in described:
            parts = as_begun(parts, described, changed, objectives)
        recipe = cls.resolve(space, objectives, **parts, budget=budget, by_preference=by_preference)
        names = given_names(changed) & KINDS.keys()
        kept = set(described.get("given", ()))
        kept -= {"strategy"} if names & SHORT_FORM.keys() else set()
        kept -= SHORT_FORM.keys() if "strategy" in names else set()
        return replace(recipe, given=names | kept)

    def check(self, space: SearchSpace, objectives: int) -> None:
        """Raises SettingError unless the components are compatible, also with the space and the objectives."""
        if self.labels.objectives not in (None, objectives):
            raise SettingError(
                f"{type(self.labels).__name__} grades outcomes of {self.labels.objectives} value(s), but the study has "
                f"{objectives} direction(s). Give labels= that grade several values."
            )
        self.strategy.check(space, self.labels)

    @cached_property
    def described(self) -> dict[str, Any]:
        """The recipe as plain JSON data, for the header of a journal.

        A strategy that was not given is described by classifier, acquisition, candidates and turns.
        """
        shared = {"n_initial": self.n_initial, "given": sorted(self.given), "edition": EDITION}
        shared |= {} if self.pruner is None else {"pruner": describe(self.pruner)}
        first = self.first
        if first is None or "strategy" in self.given:
            return {"labels": describe(self.labels), "strategy": describe(self.strategy), **shared}
        parts = {"labels": self.labels, **{name: getattr(first, name) for name in SHORT_FORM}}
        turns = self.strategy.others if isinstance(self.strategy, Turns) else []
        described = {name: describe(part) for name, part in parts.items()}
        return {**described, "turns": [describe(each) for each in turns], **shared}

    def differences(self, described: Mapping[str, Any]) -> list[str]:
        """The differences to the recipe in a header, as text."""
        own = self.described
        described = upgraded(described)
        excluded = {"given", "edition"} if "turns" in described else {"given", "edition", "turns"}  # not in version 0.2
        names = [*own, *(["pruner"] if "pruner" in described and "pruner" not in own else [])]
        other = [name for name in names if name not in excluded and not alike(own.get(name), described.get(name))]
        return [f"{name} is {shown(own.get(name))}, was {shown(described.get(name))}" for name in other]


def short_form(
    space: SearchSpace,
    labels: Labelling,
    classifier: Classifier,
    acquisition: Acquisition | None,
    candidates: Candidates | None,
    turns: Sequence[Strategy] | None = None,
) -> Strategy:
    """The strategy of classifier, acquisition and candidates, with the given turns or the default ones."""
    if turns is None:
        return default_strategy(space, labels, classifier, acquisition, candidates)
    first = ModelStrategy(classifier, acquisition, candidates)
    return Turns([first, *turns]) if turns else first


def refuse_both(short: Mapping[str, Any]) -> None:
    """Raises SettingError if components are given together with a strategy."""
    if beside := [name for name, part in short.items() if part is not None]:
        raise SettingError(
            f"give either strategy or {', '.join(beside)}, not both: a strategy has them. "
            "Give strategy=ModelStrategy(classifier, acquisition, candidates)."
        )


def first_model(strategy: Strategy) -> Classifier:
    """The first model of a strategy, which is `Study.classifier`. Raises SettingError if there is none."""
    if not strategy.models:
        raise SettingError(
            f"a strategy needs a model that the run trains, but {type(strategy).__name__} has none. Give it one in "
            "`models`, or put it into Turns([ModelStrategy(KernelPLS()), ...])."
        )
    return strategy.models[0]


def check_budget(budget: Budget | None, objectives: int = 1) -> None:
    """Raises SettingError for anything but a budget, or a budget with several objectives."""
    if budget is None:
        return
    if not isinstance(budget, Budget):
        raise SettingError(f"budget must be a Budget, but got {budget!r:.100}. Give Budget('epochs', 1, 81).")
    if objectives > 1:
        raise SettingError(
            f"a budget needs one objective, by which trials are promoted, but the study has {objectives}. "
            "Leave the budget out, or give one objective and constraints."
        )


def given_names(settings: Mapping[str, Any]) -> frozenset[str]:
    """The names of the settings that are not None; gamma counts as labels."""
    return frozenset("labels" if name == "gamma" else name for name, part in settings.items() if part is not None)


def check_described(described: Any) -> None:
    """Raises SettingError unless a header describes a recipe by the names of its parts."""
    known = {*KINDS, "turns", "n_initial", "given", "edition"}
    if not isinstance(described, Mapping) or not known.issuperset(described):
        raise SettingError(f"a journal's recipe must have parts of {sorted(known)}, but got {described!r:.200}.")
    for name in {"turns", "given"} & described.keys():
        if not isinstance(described[name], list):
            raise SettingError(f"the journal's {name} must be a list, but got {described[name]!r:.100}.")
    if not all(isinstance(name, str) and name in described for name in described.get("given", ())):
        raise SettingError(f"the journal's given parts must be among its parts, but got {described['given']!r:.100}.")


def parts_of(described: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for `Recipe.resolve`: given ones, and the others from a header (see `Recipe.again`)."""
    settings = {name: part for name, part in given.items() if part is not None}
    excluded = given_names(given) | {"given", "edition"}
    if settings.keys() & SHORT_FORM.keys():  # turns of the header may not suit these
        excluded |= {"strategy", "turns"}
    if "strategy" in settings:
        excluded |= SHORT_FORM.keys() | {"turns"}
    if settings.keys() & {"labels", "gamma"}:  # turns depend on the labels
        excluded |= {"turns"}
    if "classifier" in settings:  # defaults of the header may not suit this one
        excluded |= KINDS.keys() - set(described.get("given", ()))
    for name in described.keys() - excluded:
        try:
            settings[name] = _made(name, described[name])
        except SettingError as error:
            raise SettingError(f"the journal's {name} can't be made again: {error} Here: {name}=...") from None
    return settings


def upgraded(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """A described recipe, with the settings of its parts written out whose defaults were others in its version."""
    return described if "edition" in described else _with_former_defaults(described)


def _with_former_defaults(described: Any) -> Any:
    """The same for a description of anything."""
    if isinstance(described, list):
        return [_with_former_defaults(each) for each in described]
    if not isinstance(described, Mapping):
        return described
    within = {name: _with_former_defaults(each) for name, each in described.items()}
    if former := FORMER_DEFAULTS.get(str(described.get("class_path"))):
        within["init_args"] = {**former, **settings_in(within)}
    return within


def as_begun(
    parts: Mapping[str, Any], described: Mapping[str, Any], given: Mapping[str, Any], objectives: int
) -> dict[str, Any]:
    """The parts of a run of version 0.1 to 0.3 with a network, whose labels and turns were others by default.

    A network other than the run's own gets the defaults of today.

    Args:
        parts: as `parts_of` has them.
        described: the recipe in the header; empty in version 0.1, and without turns in version 0.2.
        given: settings that the run is loaded with.
        objectives: k.
    """
    head, begun = parts.get("classifier"), described.get("classifier")
    if not isinstance(head, Classifier) or is_other(head, begun):
        return dict(parts)
    if not alike(_with_former_defaults(describe(head)), describe(head)):
        head = _made("classifier", _with_former_defaults(describe(head)))
    kept = {**parts, "classifier": head}
    if head.learns_grades and not given_names(given) & {"labels", "strategy"}:
        former = {name: _made(name, described[name]) for name in ("labels", "turns") if name in described}
        kept = {"labels": default_labels(head.link is Link.IDENTITY, None, objectives), "turns": [], **former, **kept}
    return kept


def is_other(head: Classifier, begun: Any) -> bool:
    """Whether a classifier is another one than a header of version 0.1 to 0.3 describes; not if it describes none."""
    return begun is not None and not alike(_with_former_defaults(describe(head)), _with_former_defaults(begun))


def _made(name: str, described: Any) -> Any:
    if name == "turns":
        return [make(each, KINDS["strategy"]) for each in described]
    return make(described, KINDS[name]) if name in KINDS else described


def shown(described: Any) -> str:
    """A description on one line: GreedyBatch(reach=0.3)."""
    if isinstance(described, Mapping) and "class_path" in described:
        settings = [f"{name}={shown(value)}" for name, value in settings_in(described).items()]
        return f"{class_name(described)}({', '.join(settings)})"
    if isinstance(described, list):
        return f"[{', '.join(map(shown, described))}]"
    return repr(described)
