"""Checks of the contract of a search for candidates."""

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor

from deepbore.acquisition import ClassProbability
from deepbore.candidates import Candidates, Search
from deepbore.classifiers.base import Classifier
from deepbore.data.observations import Observations
from deepbore.errors import SettingError, SpaceExhausted
from deepbore.space import SearchSpace
from deepbore.testing.require import require, require_equal, require_raises, require_shape, untouched_randomness
from deepbore.testing.toys import TOY_SPACES, fit, toy_data

Make = Callable[[], Classifier]
Q = 5
UPPER = 0.75  # quantile of random configurations that proposals exceed on average


def check_candidates(candidates: Candidates, make: Make, spaces: Sequence[str] | None = None) -> None:
    """Runs all checks of a search for candidates.

    Args:
        candidates: the search.
        make: gives a new classifier that the search accepts.
        spaces: names of `TOY_SPACES`; None for all that `Candidates.check` accepts.

    Raises:
        AssertionError: with the violated rule and the values.

    Example:
        >>> from deepbore import KernelPLS, LocalSearch
        >>> check_candidates(LocalSearch(), KernelPLS)
    """
    can = spaces_for(candidates, make) if spaces is None else tuple(spaces)
    require(can, "`check` must let at least one of the toy spaces through, but refuses all")
    for name in can:
        check_proposals(candidates, make(), TOY_SPACES[name])
    if "finite" in can:
        check_exhaustion(candidates, make())


def check_proposals(candidates: Candidates, classifier: Classifier, space: SearchSpace) -> None:
    """Proposals are q distinct new configurations, better than random ones, the same for the same seed and state."""
    data = toy_data(space, 30)
    fit(classifier, data, epochs=3)
    where = f"in ({', '.join(space.names)})"
    with untouched_randomness():
        one, other = (deepcopy(candidates).propose(_search(classifier, data.observations), Q) for _ in range(2))
    require_shape(one, (Q, len(space)), f"the proposals {where}")
    require_equal(one, other, f"{where}, the same seed must give the same proposals")
    count = len(set(space.points.identify(one)))
    require(count == Q, f"{where}, {Q} proposals must be {Q} configurations, but are {count}")
    old = data.observations.columns.unseen(one).count(False)
    require(old == 0, f"{where}, proposals must be new, but {old} of {Q} are evaluated or pending")
    snapped = space.encode(space.decode(one))
    require_equal(snapped, one, f"{where}, proposals must be points of configurations (`space.snap`)", 1e-9)
    check_quality(_search(classifier, data.observations), one, where)
    check_candidates_state(candidates, _search(classifier, data.observations), where)


def check_quality(search: Search, proposed: Tensor, where: str = "") -> None:
    """The mean value of proposals is above that of three quarters of random new configurations."""
    random = search.space.points.sample(1000, torch.Generator().manual_seed(9))
    random = random[torch.tensor(search.observations.columns.unseen(random))]
    bar = float(search.values(random).double().quantile(UPPER))
    mean = float(search.values(proposed).double().mean())
    require(
        mean > bar,
        f"{where}, proposals must be better than random ones, a quarter of which has values above {bar:.4g}, "
        f"but their mean value is {mean:.4g}",
    )


def check_candidates_state(candidates: Candidates, search: Search, where: str = "") -> None:
    """A copy that loads the state dict after a proposal makes the same next proposal."""
    one, other = deepcopy(candidates), deepcopy(candidates)
    one.propose(search, Q)
    other.load_state_dict(one.state_dict())
    stream = search.generator.get_state()
    first = one.propose(search, Q)
    search.generator.set_state(stream)
    what = f"{where}, a search that has taken up the state dict of another must propose what that one does"
    require_equal(other.propose(search, Q), first, what)


def check_exhaustion(candidates: Candidates, classifier: Classifier) -> None:
    """A finite space is proposed to its last configuration; a further proposal is refused without random draws."""
    space = TOY_SPACES["finite"]
    data = toy_data(space, 0)
    points = space.points.enumerate()
    for row in data.observations.reserve(points[:-2]):
        data.observations.tell(row, float(row))
    search = _search(fit(classifier, data, epochs=1), data.observations)
    last = set(space.points.identify(candidates.propose(search, 2)))
    left = set(space.points.identify(points[-2:]))
    require(last == left, f"the last two configurations must be proposed, but got {last}")
    before = search.generator.get_state()
    require_raises(SpaceExhausted, lambda: candidates.propose(search, 3), "three proposals where two are left")
    moved = not torch.equal(before, search.generator.get_state())
    require(not moved, "a refused proposal must leave the generator as it was")


def _search(classifier: Classifier, observations: Observations) -> Search:
    return Search(ClassProbability(), classifier, observations, torch.Generator().manual_seed(7))


def spaces_for(candidates: Candidates, make: Make) -> tuple[str, ...]:
    """Names of the `TOY_SPACES` that a search accepts with such a classifier."""

    def is_accepted(space: SearchSpace) -> bool:
        try:
            candidates.check(space, make())
        except SettingError:
            return False
        return True

    return tuple(name for name, space in TOY_SPACES.items() if is_accepted(space))
