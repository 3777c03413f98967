"""Search spaces that hypothesis draws, and some that are hard to count."""

import math

import pytest
from hypothesis import strategies as st

import deepbore as db
from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.space import enumeration


@pytest.fixture
def uncounted(monkeypatch):
    """A space of 20 configurations that counts as infinite, as large ones with constraints do."""
    monkeypatch.setattr(enumeration, "MOST", 1)
    space = db.SearchSpace({name: db.Integer(2, 9) for name in NAMES}, constraints=[f"{' + '.join(NAMES)} <= 9"])
    assert math.isinf(space.cardinality)
    return space


NAMES = ("max_depth", "min_samples_leaf", "max_leaf_nodes")
CONDITIONAL = SearchSpace(
    {
        "opt": Categorical(["sgd", "adam", "none"]),
        "momentum": Real(0, 0.99, when=Condition("opt", "sgd")),
        "nesterov": Categorical([True, False], when=Condition("opt", ["sgd"])),
        "boost": Ordinal([1, 2, 4], when=Condition("nesterov", True)),
        "beta": Real(0.8, 0.999, when=Condition("opt", ["adam", "none"])),
    }
)


@st.composite
def parameters(draw):
    kind = draw(st.sampled_from(["real", "integer", "choice"]))
    if kind == "choice":
        choices = draw(
            st.lists(st.one_of(st.integers(), st.text(), st.booleans()), min_size=2, max_size=9, unique_by=repr)
        )
        distinct = {(isinstance(c, bool), c) for c in choices}
        if len(distinct) == len(choices):
            return draw(st.sampled_from([Ordinal, Categorical]))(choices)
    log = draw(st.booleans())
    if kind == "integer":
        low = draw(st.integers(1 if log else -1000, 1000))
        return Integer(low, low + draw(st.integers(1, 100_000)), log=log)
    low = draw(st.floats(1e-9 if log else -1e6, 1e6))
    return Real(low, low + max(draw(st.floats(1e-3, 1e6)), 1e-4 * abs(low)), log=log)  # nearer bounds are refused


spaces = st.lists(parameters(), min_size=1, max_size=6).map(
    lambda ps: SearchSpace({f"p{i}": p for i, p in enumerate(ps)})
)


@st.composite
def conditional_spaces(draw, continuous=True, several=False):
    """Up to seven parameters, each perhaps under a condition on any of those declared before or after it.

    With `several` perhaps under two, on parents that depend on nothing, so that they can hold together.
    """
    names = [f"p{i}" for i in range(draw(st.integers(1, 7)))]
    order = draw(st.permutations(names))  # parents first; the declaration has another order
    levels = {}
    declared = {}
    for place, name in enumerate(order):
        parents = [other for other in order[:place] if other in levels]
        when = None
        if parents and draw(st.booleans()):
            parent = draw(st.sampled_from(parents))
            when = Condition(parent, draw(st.sets(st.sampled_from(levels[parent]), min_size=1)))
            free = [other for other in parents if other != parent and declared[other].when is None]
            if several and free and declared[parent].when is None and draw(st.booleans()):
                other = draw(st.sampled_from(free))
                when = [when, Condition(other, draw(st.sets(st.sampled_from(levels[other]), min_size=1)))]
        kind = draw(st.sampled_from(["integer", "ordinal", "categorical"] + ["real", "log"] * continuous))
        if kind == "integer":
            low = draw(st.integers(-3, 3))
            declared[name] = Integer(low, low + draw(st.integers(1, 3)), when=when)
            levels[name] = list(range(declared[name].low, declared[name].high + 1))
        elif kind in ("real", "log"):
            declared[name] = Real(0.5, 3, log=kind == "log", when=when)
        else:
            levels[name] = draw(st.sampled_from([[True, False], ["a", "b", "c"], [1, 2.5, None, "x"]]))
            declared[name] = (Ordinal if kind == "ordinal" else Categorical)(levels[name], when=when)
    return SearchSpace({name: declared[name] for name in names})


def is_active(space, name, params):
    """Whether a parameter is active, from its conditions and the native values above it."""
    return all(
        is_active(space, when.parent, params) and params[when.parent] in when.values
        for when in space.parameters[name].conditions
    )


def chain(length):
    """Each parameter is active where the one before is 1."""
    pairs = {f"p{i}": Integer(0, 1, when=Condition(f"p{i - 1}", 1) if i else None) for i in range(length)}
    return SearchSpace(pairs)
