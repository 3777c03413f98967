"""`Recipe`: the parts of a run, resolved once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deepbore.acquisition import Acquisition, default_acquisition
from deepbore.candidates import Candidates, GreedyBatch
from deepbore.checks import of_kind, whole
from deepbore.classifiers import AtBudgets, Classifier, KernelPLS, PerColumn
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import Gamma, Labelling, PreferenceLabels, RungLabels
from deepbore.labels.base import WrappedLabels
from deepbore.parts import alike, class_name, describe, make
from deepbore.space import SearchSpace

N_INITIAL = 10
KINDS: dict[str, type] = {
    "labels": Labelling,
    "classifier": Classifier,
    "acquisition": Acquisition,
    "candidates": Candidates,
}


@dataclass(frozen=True)
class Recipe:
    """What a run is made of. It is kept in the header of the journal, so that a run can go on without being told.

    Attributes:
        labels: how outcomes become labels.
        classifier: what learns.
        acquisition: what is maximised.
        candidates: how it is maximised.
        n_initial: trials of a Sobol design before the classifier is asked.
        given: names of the parts that are not the defaults of the classifier.
    """

    labels: Labelling
    classifier: Classifier
    acquisition: Acquisition
    candidates: Candidates
    n_initial: int
    given: frozenset[str] = frozenset()

    @classmethod
    def resolve(
        cls,
        space: SearchSpace,
        objectives: int = 1,
        *,
        labels: Labelling | None = None,
        gamma: Gamma | None = None,
        classifier: Classifier | None = None,
        acquisition: Acquisition | None = None,
        candidates: Candidates | None = None,
        n_initial: int | None = None,
        budget: Budget | None = None,
        by_preference: bool = False,
    ) -> "Recipe":
        """The recipe with defaults for what is not given, checked: parts that do not go together are refused here.

        Args:
            space: the search space.
            objectives: k >= 1, how many values an outcome has.
            labels: see `Study`, as all that follow.
            by_preference: whether trials are compared, so that the default labels are those of utilities.

        Raises:
            SettingError: for a part of the wrong kind, parts that do not go together, or a number outside its range.
        """
        if labels is not None and gamma is not None:
            raise SettingError("give either labels or gamma, not both: labels carry their own gamma.")
        given = {"labels": labels, "classifier": classifier, "acquisition": acquisition, "candidates": candidates}
        for name, part in given.items():
            of_kind(KINDS[name], **{name: part})
        whole(1, n_initial=n_initial)
        classifier = classifier or default_classifier(objectives, labels)
        if labels is None:
            labels = classifier.default_labels(gamma, objectives)
            labels = PreferenceLabels(labels) if by_preference else labels  # type: ignore[arg-type]  # of one objective
        if budget is not None:
            check_budget(budget, objectives)
            labels = labels if _grades_rungs(labels) else RungLabels(labels)
            classifier = classifier if isinstance(classifier, AtBudgets) else AtBudgets(classifier, budget)
            if classifier.budget != budget:
                raise SettingError(
                    f"the classifier is of {classifier.budget}, but the study has {budget}. Give the classifier alone: "
                    "it is wrapped in AtBudgets by itself."
                )
        recipe = cls(
            labels,
            classifier,
            (acquisition or default_acquisition(classifier)).resolved(classifier),
            candidates or GreedyBatch(),
            N_INITIAL if n_initial is None else int(n_initial),
            given_names({**given, "gamma": gamma}),
        )
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
        """The recipe that a header describes, but for what is changed.

        Args:
            space: the search space.
            objectives: k.
            described: the recipe in the header; empty in journals of version 0.1, which stand for the defaults.
            changed: settings for `resolve`; None, or left out, for those of the header.
            budget: of the run.
            by_preference: whether trials are compared.

        Raises:
            SettingError: for a part that the header can't name, and that must be given.
        """
        recipe = cls.resolve(
            space, objectives, **parts_of(described, changed), budget=budget, by_preference=by_preference
        )
        return replace(recipe, given=given_names(changed) & KINDS.keys() | set(described.get("given", ())))

    def check(self, space: SearchSpace, objectives: int) -> None:
        """Raises SettingError unless the parts go together, on this space and with so many objectives."""
        if self.labels.objectives not in (None, objectives):
            raise SettingError(
                f"{type(self.labels).__name__} grades outcomes of {self.labels.objectives} value(s), but the study has "
                f"{objectives} direction(s). Give labels= that grade several values."
            )
        _check_columns(self.labels, self.classifier, self.acquisition)
        self.acquisition.check(self.classifier)
        self.candidates.check(space, self.classifier)

    def describe(self) -> dict[str, Any]:
        """The recipe as plain JSON data, for the header of a journal."""
        parts = {name: describe(getattr(self, name)) for name in KINDS}
        return {**parts, "n_initial": self.n_initial, "given": sorted(self.given)}

    def differences(self, described: Mapping[str, Any]) -> list[str]:
        """What is other than in a header, in words."""
        own = self.describe()
        other = [name for name in own if name != "given" and not alike(own[name], described.get(name))]
        return [f"{name} is {shown(own[name])}, was {shown(described.get(name))}" for name in other]


def default_classifier(objectives: int, labels: Labelling | None) -> Classifier:
    """What learns where nobody says otherwise: `KernelPLS`, one for each column where labels grade a front.

    Args:
        objectives: k.
        labels: those that are given; None for the default.
    """
    if objectives > 1 if labels is None else labels.grades_front:
        return PerColumn(KernelPLS(alike=False), objectives if labels is None else labels.outputs)
    return KernelPLS()


def _grades_rungs(labels: Labelling) -> bool:
    """Whether these labels, or any that they are made of, grade each rung by itself."""
    return isinstance(labels, RungLabels) or (isinstance(labels, WrappedLabels) and _grades_rungs(labels.base))


def _check_columns(labels: Labelling, classifier: Classifier, acquisition: Acquisition) -> None:
    """Raises SettingError unless all three mean columns by themselves, or none does, and as many of them."""
    if labels.grades_front != acquisition.takes_front:
        one, other = (labels, acquisition) if labels.grades_front else (acquisition, labels)
        raise SettingError(
            f"{type(one).__name__} is about a front of several objectives, which {type(other).__name__} knows nothing "
            "of. LogHypervolumeImprovement goes with ObjectiveLabels and PerColumn, and other acquisitions with "
            "ChebyshevLabels and any classifier. Leave out one of them for the default."
        )
    if classifier.columns not in (None, labels.outputs):
        raise SettingError(
            f"{type(classifier).__name__} has {classifier.columns} column(s), but {type(labels).__name__} has "
            f"{labels.outputs}. Give PerColumn(..., columns={labels.outputs})."
        )


def check_budget(budget: Budget | None, objectives: int = 1) -> None:
    """Raises SettingError for what is no budget, or goes with none."""
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
    """The names of those settings of a recipe that are there; gamma is short for labels."""
    return frozenset("labels" if name == "gamma" else name for name, part in settings.items() if part is not None)


def parts_of(described: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for `Recipe.resolve`: what is given, and the rest as a header describes it (see `Recipe.again`)."""
    settings = {name: part for name, part in given.items() if part is not None}
    passed_over = given_names(given) | {"given"}
    if "classifier" in settings:  # what suited the classifier of the header may not suit this one
        passed_over |= KINDS.keys() - set(described.get("given", ()))
    for name in described.keys() - passed_over:
        try:
            settings[name] = make(described[name], KINDS[name]) if name in KINDS else described[name]
        except SettingError as error:
            raise SettingError(f"the journal's {name} can't be made again: {error} Here: {name}=...") from None
    return settings


def shown(described: Any) -> str:
    """A description on one line: GreedyBatch(reach=0.3)."""
    if isinstance(described, Mapping) and "class_path" in described:
        settings = ", ".join(f"{name}={shown(value)}" for name, value in described["init_args"].items())
        return f"{class_name(described)}({settings})"
    return repr(described)
