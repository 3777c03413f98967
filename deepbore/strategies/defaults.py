"""The default strategy of a run."""

from collections.abc import Mapping
from typing import Any

from deepbore.acquisition import Acquisition, ClassProbability, LogExpectedImprovement, UpperConfidenceBound
from deepbore.candidates import BelieverBatch, Candidates, LibrarySearch, LocalSearch, WrappedSearch
from deepbore.classifiers import Classifier, KernelPLS, LibraryPLS, Link, PerColumn
from deepbore.labels import Labelling, ValueGradedLabels
from deepbore.space import SearchSpace
from deepbore.strategies.base import ModelStrategy, Strategy
from deepbore.strategies.evolution import Evolution
from deepbore.strategies.near_best import NearBest
from deepbore.strategies.neglected import NeglectedChoices
from deepbore.strategies.other_branches import OtherBranches
from deepbore.strategies.rough_ground import RoughGround
from deepbore.strategies.turns import Turns


def default_classifier(
    objectives: int, labels: Labelling | None, noisy: bool = False, space: SearchSpace | None = None
) -> Classifier:
    """The default classifier: `KernelPLS`, or `LibraryPLS` with a library; one for each column if labels grade a front.

    Args:
        objectives: k.
        labels: the given labels; None for the default.
        noisy: whether values are known to be noisy.
        space: the search space; None for any without a library.
    """
    with_library = space is not None and has_library(space)
    if objectives > 1 if labels is None else labels.grades_front:
        model = KernelPLS(alike=False, noisy=True) if noisy else KernelPLS(alike=False)
        return PerColumn(LibraryPLS() if with_library else model, objectives if labels is None else labels.outputs)
    if with_library:
        return LibraryPLS()
    return KernelPLS(noisy=True) if noisy else KernelPLS()


def default_strategy(
    space: SearchSpace,
    labels: Labelling,
    classifier: Classifier,
    acquisition: Acquisition | None = None,
    candidates: Candidates | None = None,
) -> Strategy:
    """The model of all observations, in turns with others where they have something to add.

    These are `NearBest` and in long runs `Evolution` in continuous spaces, `NeglectedChoices` and `RoughGround` in
    those with unordered choices, and `OtherBranches` in conditional ones. With a library it is the model alone: the
    levels with the best upper confidence bound, chosen one by one as if the earlier ones of a batch had the values that
    are predicted for them.

    The additional strategies need labels graded by value, `LocalSearch` or a wrapper of it, and a `KernelPLS` with all
    hyperparameters learned, or a network that learns grades (`strategy_of_network`). For other models no benefit has
    been measured.

    Args:
        space: the search space.
        labels: the labelling of the run.
        classifier: the model of all observations.
        acquisition: None for the default of the classifier.
        candidates: None for the default search.
    """
    if has_library(space):
        if acquisition is None and "columns" not in classifier.capabilities:
            acquisition = UpperConfidenceBound() if "std" in classifier.capabilities else ClassProbability()
        uncertain = acquisition is not None and acquisition.by_moments and "std" in acquisition.needs
        candidates = candidates or (BelieverBatch(LibrarySearch()) if uncertain else LibrarySearch())
        return ModelStrategy(classifier, acquisition, candidates)
    graded = isinstance(labels, ValueGradedLabels)
    if graded and classifier.learns_grades:
        return strategy_of_network(space, classifier, acquisition, candidates)
    first = ModelStrategy(classifier, acquisition, candidates)
    search = innermost(first.candidates)
    if not (graded and isinstance(classifier, KernelPLS) and classifier.learns_all and isinstance(search, LocalSearch)):
        return first
    shared = {name: getattr(classifier, name) for name in ("rows", "iterations", "prior", "crashes")}
    others: list[Strategy] = []
    if space.points.is_continuous and search.nearby is not False:
        others += [NearBest(**shared), *([] if classifier.noisy else [Evolution()])]
    if has_unordered_choices(space) and not classifier.noisy:
        others += [NeglectedChoices(**shared, additive=classifier.additive), RoughGround(rows=classifier.rows)]
    if space.points.is_conditional and search.elsewhere is not False and not classifier.noisy:
        others.append(OtherBranches(**shared, alike=classifier.alike, additive=classifier.additive))
    return Turns([first, *others]) if others else first


def strategy_of_network(
    space: SearchSpace, classifier: Classifier, acquisition: Acquisition | None, candidates: Candidates | None
) -> Strategy:
    """A network in turns with others: `NearBest` where it is too coarse, `OtherBranches` where it is too sure, ...

    A network that estimates labels with a deviation, such as `DeepPLS`, maximises expected improvement in continuous
    spaces: there alone its deviation grows with the distance from the observations.

    Args:
        space: without a library.
        classifier: a network that learns labels graded by value.
        acquisition: None for the default.
        candidates: None for the default search.
    """
    estimates = classifier.link is Link.IDENTITY and "std" in classifier.capabilities
    if acquisition is None and estimates and space.points.is_continuous:
        acquisition = LogExpectedImprovement()
    first = ModelStrategy(classifier, acquisition, candidates)
    search = innermost(first.candidates)
    others: list[Strategy] = []
    if space.points.is_continuous and isinstance(search, LocalSearch) and search.nearby is not False:
        others += [NearBest(), Evolution()]
    if has_unordered_choices(space):
        others += [NeglectedChoices(), RoughGround()]
    if space.points.is_conditional and isinstance(search, LocalSearch) and search.elsewhere is not False:
        others.append(OtherBranches())
    return Turns([first, *others]) if others else first


def has_unordered_choices(space: SearchSpace) -> bool:
    """Whether a parameter has values without an order."""
    return any(not each.is_ordered for each in space.parameters.values())


def has_library(space: SearchSpace) -> bool:
    """Whether a parameter is a library."""
    return any(parameter.is_library for parameter in space.parameters.values())


def innermost(candidates: Candidates) -> Candidates:
    """The innermost of nested optimisers."""
    base = getattr(candidates, "base", None)
    return innermost(base) if isinstance(candidates, WrappedSearch) and isinstance(base, Candidates) else candidates


def state_of_0_2(strategy: Strategy, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """The state dict of a default strategy, from a snapshot of version 0.1 or 0.2."""
    first = {name: state[name] for name in ("weights", "optimizers", "ready", "candidates")}
    if not isinstance(strategy, Turns):
        return first
    kept: dict[type[Strategy], Any] = {NearBest: state.get("nearby", {}), OtherBranches: state.get("elsewhere", {})}
    others = [kept.get(type(each), {}) for each in strategy.others]
    had_turn = [
        bool(own.get("is_due", False)) if isinstance(each, NearBest) else not own.get("is_due", True)
        for each, own in zip(strategy.others, others, strict=True)
    ]
    return {"strategies": [first, *others], "had_turn": had_turn}
