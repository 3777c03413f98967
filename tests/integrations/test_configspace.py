"""Spaces of ConfigSpace: what it samples is of the space that is read, and what that samples is legal there."""

import numpy as np
import pytest
import torch

from deepbore import Categorical, Integer, Normal, Ordinal, Real, SearchSpace, Study
from deepbore.errors import PointError, SpaceError

cs = pytest.importorskip("ConfigSpace")
from deepbore.integrations.configspace import from_configspace, to_configspace  # noqa: E402

N = 60


def theirs():
    """Ranges, logs, choices, conditions of all kinds, and forbidden clauses of all kinds."""
    space = cs.ConfigurationSpace(seed=0)
    model = cs.Categorical("model", ["svc", "forest", "net"], default="net")
    c = cs.Float("C", (1e-3, 1e3), log=True, default=2.0)
    trees = cs.Integer("trees", (1, 500), log=True, default=100)
    layers = cs.Integer("layers", (1, 4), default=2)
    width = cs.OrdinalHyperparameter("width", [16, 32, 64, 128], default_value=32)
    second = cs.OrdinalHyperparameter("second", [16, 32, 64, 128], default_value=32)
    x, y = cs.Float("x", (0.0, 1.0), default=0.25), cs.Float("y", (0.0, 1.0), default=0.5)
    tail = cs.Float("tail", (0, 1), default=0.5)
    space.add(model, c, trees, layers, width, second, x, y, tail)
    space.add(cs.EqualsCondition(c, model, "svc"), cs.InCondition(trees, model, ["forest"]))
    space.add(cs.NotEqualsCondition(layers, model, "svc"))
    space.add(cs.AndConjunction(cs.EqualsCondition(second, model, "net"), cs.GreaterThanCondition(second, layers, 1)))
    space.add(cs.OrConjunction(cs.LessThanCondition(tail, x, 0.2), cs.GreaterThanCondition(tail, x, 0.6)))
    space.add(
        cs.ForbiddenAndConjunction(cs.ForbiddenEqualsClause(width, 128), cs.ForbiddenInClause(layers, [3, 4])),
        cs.ForbiddenGreaterThanRelation(x, y),
        cs.ForbiddenEqualsClause(width, 16),
        cs.ForbiddenAndConjunction(cs.ForbiddenLessThanClause(c, 1.0), cs.ForbiddenGreaterThanEqualsClause(y, 0.9)),
    )
    return space


def plain(configuration):
    return {name: each.item() if hasattr(each, "item") else each for name, each in dict(configuration).items()}


def test_what_either_samples_is_of_the_other():
    their_space = theirs()
    space = from_configspace(their_space)
    sampled = [plain(each) for each in their_space.sample_configuration(N)]
    for params, each in zip(space.decode(space.encode(sampled)), sampled, strict=True):
        assert params == {
            name: pytest.approx(value, rel=1e-9) if isinstance(value, float) else value for name, value in each.items()
        }
    for params in space.decode(space.points.sample(N, torch.Generator().manual_seed(0))):
        cs.Configuration(their_space, values=params)  # raises for what is illegal
    assert space.default == plain(their_space.get_default_configuration())
    assert Study(space).ask_one().params == plain(their_space.get_default_configuration())


def test_what_is_forbidden_there_is_forbidden_here():
    their_space = theirs()
    space = from_configspace(their_space)
    free = SearchSpace(space.parameters)
    verdicts = set()
    for params in free.decode(free.points.sample(300, torch.Generator().manual_seed(1))):
        try:
            cs.Configuration(their_space, values=params)
            legal = True
        except cs.ForbiddenValueError:
            legal = False
        verdicts.add(legal)
        if legal:
            space.encode([params])
        else:
            with pytest.raises(PointError, match="forbids"):
                space.encode([params])
    assert verdicts == {True, False}


OURS = SearchSpace(
    {
        "lr": Real(1e-5, 1e-1, log=True, default=1e-3),
        "grid": Real(0, 1, step=0.25),
        "n": Integer(2, 9),
        "even": Integer(2, 10, step=2, when={"n": ">= 4"}),
        "width": Ordinal([16, 32, 64]),
        "act": Categorical(["relu", "tanh", "none"], default="tanh"),
        "slope": Real(0, 1, when=[{"act": "!= none"}, {"lr": "> 0.001"}]),
        "layers": Categorical({"one": [64], "two": [64, 64]}),
    },
    constraints=["not (act == 'relu' and width in [16, 32])", "n < 8", "grid <= 0.5 or n != 3", "lr < 0.05"],
)


def test_ours_is_written_and_read_again():
    written = to_configspace(OURS)
    for configuration in written.sample_configuration(N):
        OURS.encode([plain(configuration)])
    for params in OURS.decode(OURS.points.sample(N, torch.Generator().manual_seed(0))):
        cs.Configuration(written, values=OURS.points.plain(params))
    again = from_configspace(written)
    assert set(again.names) == set(OURS.names)
    assert again.default["lr"] == 0.001
    assert again.default["act"] == "tanh"
    again.encode([plain(each) for each in written.sample_configuration(N)])
    assert again.parameters["lr"] == OURS.parameters["lr"]
    assert again.parameters["act"] == OURS.parameters["act"]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: cs.Constant("k", 3), "'k', a Constant, has no counterpart.*let the objective set it"),
        (lambda: cs.Float("n", (0, 1), distribution=cs.Beta(2, 3)), "'n', a BetaFloatHyperparameter.*a normal one"),
        (lambda: cs.Float("n", (0, 1), distribution=cs.Normal(5, 1)), "'n' has no counterpart.*must lie in"),
    ],
)
def test_what_has_no_counterpart_here_is_refused_by_name(make, says):
    space = cs.ConfigurationSpace({"x": (0.0, 1.0)})
    space.add(make())
    with pytest.raises(SpaceError, match=says):
        from_configspace(space)


def test_alternatives_over_several_parents_are_refused_by_name():
    space = cs.ConfigurationSpace({"a": ["x", "y"], "b": ["x", "y"], "c": (0.0, 1.0)})
    a, b, c = (space[name] for name in "abc")
    space.add(cs.OrConjunction(cs.EqualsCondition(c, a, "x"), cs.EqualsCondition(c, b, "x")))
    with pytest.raises(SpaceError, match="the condition of 'c'"):
        from_configspace(space)


@pytest.mark.parametrize(
    ("space", "says"),
    [
        (SearchSpace({"x": Real(0, 1)}).with_fixed({"x": 0.5}), "fixed parameters"),
        (SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=["a * b <= 20"]), "it has a \\* b"),
        (SearchSpace({"a": Integer(1, 9)}, constraints=[lambda params: params["a"] > 2]), "it is a function"),
        (SearchSpace({"x": Real(0, 1, step=1e-5)}), "'x' has too many values"),
        (
            SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9, when={"a": 3})}, constraints=["a < 3 and b < 5"]),
            "it says nothing where 'b' is inactive",
        ),
    ],
)
def test_what_has_no_counterpart_there_is_refused_by_name(space, says):
    with pytest.raises(SpaceError, match=says):
        to_configspace(space)


# --- what is believed ------------------------------------------------------------------------------------------------


def test_normal_distributions_and_weights_are_priors_and_go_back():
    theirs = cs.ConfigurationSpace(seed=0)
    theirs.add(
        cs.Float("x", (-2, 6), distribution=cs.Normal(1, 0.5)),
        cs.NormalFloatHyperparameter("lr", mu=1e-3, sigma=3, lower=1e-5, upper=0.3, log=True),
        cs.Integer("n", (1, 100), distribution=cs.Normal(30, 5)),
        cs.Categorical("c", ["a", "b"], weights=[0.9, 0.1]),
        cs.Float("plain", (0, 1)),
        cs.Float("told", (0, 1), default=0.25),
        cs.Categorical("first", ["a", "b"]),
    )
    space = from_configspace(theirs)
    assert space.parameters["x"].prior == Normal(1.0, 0.5)
    assert space.parameters["n"].prior == Normal(30.0, 5.0)
    assert space.parameters["c"].prior == (0.9, 0.1)
    beliefs = {name: each.belief is not None for name, each in space.parameters.items()}
    assert beliefs == {"x": True, "lr": True, "n": True, "c": True, "plain": False, "told": True, "first": False}
    for mine in (space, from_configspace(to_configspace(space))):
        drawn = mine.points.decode_columns(mine.points.sample(4000, torch.Generator().manual_seed(0), prior=True))
        sampled = theirs.sample_configuration(4000)
        for name in ("x", "lr", "n"):  # as often as ConfigSpace itself draws them
            at = [0.16, 0.5, 0.84]
            own, other = (np.quantile(values, at) for values in (drawn[name], [each[name] for each in sampled]))
            assert np.allclose(own, other, rtol=0.1, atol=0.1 * abs(other[2] - other[0]))
        assert np.mean([each == "a" for each in drawn["c"]]) == pytest.approx(0.9, abs=0.02)


def test_a_prior_that_configspace_has_no_word_for_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="the prior of 'o' is left out"):
        made = to_configspace(SearchSpace({"o": Ordinal([1, 2, 4], prior=[1, 2, 1]), "x": Real(0, 1)}))
    assert made["o"].sequence == (1, 2, 4)
    with pytest.raises(SpaceError, match="prior of 'n' has no counterpart"):
        to_configspace(SearchSpace({"n": Integer(16, 4096, log=True, prior=Normal(256, 2))}))
