"""Constraints and fixed values: against brute force, in every draw, in studies and their journals."""

import json
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import cases
from deepbore import Categorical, Condition, Integer, KernelPLS, Ordinal, Real, SearchSpace, Study, candidates
from deepbore.candidates import Search
from deepbore.data.record import read_record
from deepbore.errors import JournalError, PointError, SpaceError, SpaceExhausted
from deepbore.space.permitted import drawn_back
from deepbore.testing.toys import fit
from test_space_conditions import chain, conditional_spaces, is_active


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# --- brute force -----------------------------------------------------------------------------------------------------

NUMBERS = (
    "{a} + {b} <= 2|{a} * {b} >= 1|2 * {a} < {b} + 1.5|{a} in [0, 1, 2.5] or {b} > 0|not {a} == {b}|-2 < {a} <= {b}"
)
NUMBERS += "|{b} != 0 and {a} / {b} < 2|{a} % 2 == 0 or {b} // 2 == 0|{a} ** 2 + {b} ** 2 <= 4"
ANY = "{a} == {b}|{a} != {b} or {a} in ['a', 'b']"


@st.composite
def constrained_spaces(draw):
    """A finite conditional space, and up to three expressions over pairs of its parameters."""
    space = draw(conditional_spaces(continuous=False))
    expressions = []
    for _ in range(draw(st.integers(1, 3))):
        a, b = (draw(st.sampled_from(space.names)) for _ in range(2))
        numeric = all(space.parameters[name].is_numeric for name in (a, b))
        form = draw(st.sampled_from((NUMBERS if numeric else ANY).split("|")))
        expressions.append(form.format(a=a, b=b))
    return space, expressions


def meets(params, expression, names):
    """The expression as Python has it; one that names an inactive parameter holds."""
    named = [name for name in names if name in expression.replace("'", " ")]
    return any(name not in params for name in named) or bool(eval(expression, {}, dict(params)))


def brute_force(space, expressions):
    """The points of an unconstrained space whose configurations meet the expressions."""
    points = space.enumerate()
    met = [all(meets(params, each, space.names) for each in expressions) for params in space.decode(points)]
    return points[torch.tensor(met)]


@given(constrained_spaces(), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_constraints_are_brute_force(case, seed):
    """Counted, enumerated, sampled and moved as if all configurations were made and filtered."""
    space, expressions = case
    try:
        allowed = brute_force(space, expressions)
    except TypeError:
        return  # eval compares what has no order
    try:
        constrained = SearchSpace(space.parameters, constraints=expressions)
    except SpaceError as error:
        refused = str(error)
        assert not len(allowed) if "no configuration meets" in refused else "not among the choices" in refused
        return
    assert constrained.cardinality == len(allowed)
    assert torch.equal(constrained.enumerate(), allowed)
    inside = set(space.identify(allowed))
    samples, sobol = constrained.sample(30, generator(seed)), constrained.sobol(20, seed)
    near = constrained.neighbours(samples, 40, generator(seed))
    for points in (samples, sobol, near):
        assert set(space.identify(points)) <= inside
        assert constrained.permitted(points).all()
    whole = space.enumerate()
    assert constrained.permitted(whole).tolist() == [each in inside for each in space.identify(whole)]
    as_function = SearchSpace(
        space.parameters, constraints=[lambda p, e=e: meets(p, e, space.names) for e in expressions]
    )
    assert torch.equal(as_function.enumerate(), allowed)
    assert as_function.cardinality == len(allowed)
    assert SearchSpace.from_dict(json.loads(json.dumps(constrained.to_dict()))) == constrained
    assert pickle.loads(pickle.dumps(constrained)) == constrained


@given(conditional_spaces(continuous=False), st.data())
@settings(max_examples=60, deadline=None)
def test_fixed_values_are_brute_force(space, data):
    fixed = {}
    for name in data.draw(st.sets(st.sampled_from(space.names), max_size=3)):
        fixed[name] = data.draw(
            st.sampled_from(
                space.parameters[name].decode(
                    space.parameters[name].from_level(torch.arange(space.parameters[name].levels).double())
                )
            )
        )
    still = space.with_fixed(fixed)
    points = space.enumerate()
    kept = [all(params.get(name, value) == value for name, value in fixed.items()) for params in space.decode(points)]
    allowed = points[torch.tensor(kept)]
    assert still.cardinality == len(allowed)
    assert torch.equal(still.enumerate(), allowed)
    assert still.permitted(points).tolist() == kept
    inside = set(space.identify(allowed))
    samples = still.sample(20, generator())
    for drawn in (samples, still.sobol(20, 0), still.neighbours(points, 40, generator()), still.snap(points)):
        assert set(space.identify(drawn)) <= inside
    assert still.fixed == fixed
    assert still.released == space
    assert (still == space) == (not fixed)
    assert SearchSpace.from_dict(json.loads(json.dumps(still.to_dict()))) == still


def test_a_space_without_restrictions_is_as_it_was():
    space = SearchSpace({"a": Integer(1, 9), "b": Real(0, 1)})
    assert not space.is_restricted
    assert space.with_fixed({}) == space
    assert space.to_dict().keys() == {"a", "b"}


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_samples_are_uniform_over_what_is_permitted(share):
    """Also where few draws are permitted: the mean of x in a triangle below a line is a third of its width."""
    width = math.sqrt(2 * share)
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "z": Real(0, 1)}, constraints=[f"x + y <= {width}"])
    means = space.sample(4000, generator()).mean(0)
    assert means.tolist() == pytest.approx([width / 3, width / 3, 0.5], abs=0.03 * (1 if share > 0.1 else width + 0.3))
    again = space.sample(4000, generator()).mean(0)
    assert torch.equal(means, again)


def test_rare_configurations_are_found():
    """Each group is drawn by itself, and what random points do not find is counted."""
    pairs = {f"{side}{i}": Integer(1, 50) for i in range(5) for side in "ab"}
    space = SearchSpace(pairs, constraints=[f"a{i} == b{i}" for i in range(5)])
    assert space.cardinality == 50**5
    assert len(set(space.identify(space.sample(100, generator())))) == 100
    rare = SearchSpace({"a": Integer(1, 1500), "b": Integer(1, 1500)}, constraints=["a * b == 1500 * 1499"])
    assert rare.cardinality == len(rare.enumerate()) == 2
    assert rare.permitted(rare.sobol(5, 0)).all()


def test_sobol_goes_on_where_it_stopped_under_constraints():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x * y < 0.3"])
    assert torch.equal(torch.cat([space.sobol(5, 3), space.sobol(11, 3, skip=5)]), space.sobol(16, 3))


def test_climbers_stop_on_their_way():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x <= 0.5"])
    starts = torch.tensor([[0.0, 0.0], [0.4, 0.0], [0.5, 0.1], [0.25, 0.0]], dtype=torch.float64)
    ends = torch.tensor([[0.8, 0.8], [0.3, 1.0], [0.9, 0.9], [1.0, 1.0]], dtype=torch.float64)
    kept = ends.clone()
    assert drawn_back(space, starts, ends).tolist() == [[0.4, 0.4], [0.3, 1.0], [0.5, 0.1], [0.4375, 0.25]]
    assert torch.equal(ends, kept)


def test_a_chain_under_a_constraint_costs_what_it_holds():
    space = SearchSpace(chain(100).parameters, constraints=["p0 == 1", "p50 == 0"])
    assert space.cardinality == len(space.enumerate()) == 50 + 1 - 1


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("a > 20", "no configuration meets the constraints: a > 20"),
        ("a <", "must read like Python"),
        ("a < 3 or __import__('os').system('ls')", "it may have names of parameters"),
        ("a.__class__ == 3", r"'a.__class__', which is not among \['a', 'c'\]"),
        ("[x for x in [1]] == a", "it may have"),
        ("(lambda: a)() < 3", "it may have"),
        ("(a := 3) < 4", "it may have"),
        ("f'{a}' == '1'", "it may have"),
        ("a if a else 3", "it may have"),
        ("d < 3", "'d', which is not among"),
        ("c == 'z'", "'z', which is not among the choices of 'c'"),
        ("c in ['x', 'z']", "'z', which is not among the choices"),
        ("c < 3", "no order"),
        ("c * 2 == 3", "computes with 'c'"),
        ("c", "must be true or false, but 'c' is a text"),
        ("a + 1", "must be true or false"),
        ("not a", "must be true or false"),
        ("a is 3", "compared by"),
        ("a in 3", "needs a list"),
        ("3 < 4", "names no parameter"),
        ("9 ** 9 ** 9 > a", "can't be computed"),
        ("a / (a - 5) < 3", "can't be computed for .*'a': 5.*division by zero"),
        ("(-a) ** 0.5 < 3", "fractional power"),
        ("-" * 1500 + "a < 3", "nested|must read|can't be computed"),
        ("a < 3" + " " * 3000, "at most 2000 characters"),
        ("", "must read like Python"),
    ],
)
def test_expressions_that_cannot_be_meant_are_refused(expression, says):
    with pytest.raises(SpaceError, match=says) as caught:
        SearchSpace({"a": Integer(1, 9), "c": Categorical(["x", "y"])}, constraints=[expression])
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        (3, "must be a list"),
        ({"a": 1}, "must be a list"),
        ([3], "must be an expression"),
        ([lambda p: p["b"]], "has failed for .*KeyError: 'b'"),
        ([lambda p: p["a"]], "must return True or False"),
        ([lambda p: False], "no configuration meets"),
    ],
)
def test_constraints_of_the_wrong_kind_are_refused(constraints, says):
    with pytest.raises(SpaceError, match=says):
        SearchSpace({"a": Integer(1, 9)}, constraints=constraints)


@pytest.mark.parametrize(
    ("fixed", "says"),
    [
        ({"q": 1}, r"among \['a', 'c', 'x'\], but got 'q'"),
        ({"c": "z"}, "fixed parameter 'c': values must be among"),
        ({"x": 2}, "fixed parameter 'x': values must lie in"),
        ({"a": 9, "x": 1.0}, "with the fixed values {'a': 9, 'x': 1.0}"),
        ("adam", "are a dict"),
    ],
)
def test_fixed_values_that_cannot_be_are_refused(fixed, says):
    space = SearchSpace({"a": Integer(1, 9), "c": Categorical(["x", "y"]), "x": Real(0, 1)}, constraints=["a * x < 5"])
    with pytest.raises(SpaceError, match=says):
        space.with_fixed(fixed)


def test_names_with_dots_stand_in_expressions():
    space = SearchSpace(
        {"model.width": Integer(1, 9), "data.batch": Integer(1, 9)}, constraints="model.width < data.batch"
    )
    assert space.cardinality == 36


def test_booleans_and_words_stand_in_expressions():
    parameters = {"flag": Categorical([True, False]), "c": Categorical(["a", "b", None]), "n": Ordinal([1, 2.5, 4])}
    assert SearchSpace(parameters, constraints=["flag and c != 'b'"]).cardinality == 6
    assert SearchSpace(parameters, constraints=["not flag or c in ['a', None]", "n > 2"]).cardinality == 10
    assert SearchSpace(parameters, constraints=["flag == True", "c == None"]).cardinality == 3


def test_large_numbers_are_computed_as_python_does():
    space = SearchSpace({"a": Integer(1, 10**14), "b": Integer(1, 10**14)}, constraints=["a * b * a * b >= 10 ** 40"])
    for params in space.decode(space.sample(50, generator())):
        assert (params["a"] * params["b"]) ** 2 >= 10**40


# --- studies ---------------------------------------------------------------------------------------------------------

MIXED = SearchSpace(
    {
        "optimizer": Categorical(["sgd", "adam"]),
        "momentum": Real(0, 0.99, when={"optimizer": "sgd"}),
        "batch": Integer(16, 128, step=16),
        "width": Integer(16, 128, step=16),
        "x": Real(0, 1),
    },
    constraints=["batch * width <= 4096", "momentum < 0.5 or x < 0.5"],
)


def loss(params):
    return abs(params["x"] - 0.6) + params.get("momentum", 0.3) - params["batch"] * params["width"] / 8192


def is_allowed(params):
    return params["batch"] * params["width"] <= 4096 and (params.get("momentum", 0) < 0.5 or params["x"] < 0.5)


@pytest.mark.parametrize("name", sorted(set(cases.CANDIDATES) - cases.CONTINUOUS_ONLY))
def test_no_search_proposes_what_is_forbidden(name):
    """Own searches neither: the walk down their ranking passes it over."""
    space = MIXED.with_fixed({"batch": 32})
    head = cases.CLASSIFIERS[cases.SEARCHES_ONLY.get(name, "KernelPLS")]()
    study = Study(MIXED, seed=0, n_initial=12, classifier=head, candidates=cases.CANDIDATES[name]())
    for trial in study.ask(12):
        study.tell(trial, loss(trial.params))
    study.fix({"batch": 32})
    trials = [*study.ask(1), *study.ask(3)]
    assert all(is_allowed(trial.params) and trial.params["batch"] == 32 for trial in trials)
    assert space.permitted(space.encode([trial.params for trial in trials])).all()


@pytest.mark.parametrize("name", sorted(cases.CONTINUOUS_ONLY))
def test_no_gradient_proposes_what_is_forbidden(name):
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x + y <= 1"])
    study = Study(space, seed=0, n_initial=8, candidates=cases.CANDIDATES[name]())
    for trial in study.ask(8):
        study.tell(trial, -trial.params["x"] - trial.params["y"])
    assert all(trial.params["x"] + trial.params["y"] <= 1 for trial in study.ask(2))


def test_a_constrained_space_is_searched_to_its_end():
    space = SearchSpace({"a": Integer(1, 6), "b": Integer(1, 6)}, constraints=["a < b", "a + b != 7"])
    study = Study(space, seed=0, n_initial=3)
    seen = []
    for _ in range(12):
        (trial,) = study.ask()
        study.tell(trial, float(trial.params["a"]))
        seen.append((trial.params["a"], trial.params["b"]))
    assert sorted(seen) == [(a, b) for a in range(1, 7) for b in range(a + 1, 7) if a + b != 7]
    with pytest.raises(SpaceExhausted, match="12 of all 12"):
        study.ask()


def test_what_is_forbidden_is_not_taken_in(tmp_path):
    journal = tmp_path / "run.jsonl"
    study = Study(MIXED, seed=0, journal=journal)
    bad = {"optimizer": "adam", "batch": 128, "width": 128, "x": 0.5}
    before = journal.read_bytes()
    for call in (
        lambda: study.add(bad, 1.0),
        lambda: study.enqueue(bad),
        lambda: study.add({k: [v] for k, v in {**bad, "momentum": None}.items()}, [1.0]),
    ):
        with pytest.raises(PointError, match=r"'batch \* width <= 4096' forbids {'optimizer': 'adam', 'batch': 128"):
            call()
    assert journal.read_bytes() == before


def run(study, steps, journal=None, stop=None):
    """Trials of a study that fixes and releases values on its way; perhaps loaded anew before a step."""
    for step in range(steps):
        if step == stop:
            study.close()
            study = Study.load(journal)
        if step == 6:
            study.fix({"optimizer": "sgd", "x": 0.25})
        if step == 14:
            study.fix({})
        for trial in study.ask(1 + step % 2):
            study.tell(trial, loss(trial.params))
    return study, [trial.params for trial in study.trials]


@pytest.mark.parametrize("stop", [6, 7, 12, 15])
def test_fixed_values_and_constraints_are_resumed_exactly(tmp_path, stop):
    _, whole = run(Study(MIXED, seed=3, n_initial=6), 16)
    journal = tmp_path / "run.jsonl"
    study, parts = run(Study(MIXED, seed=3, n_initial=6, journal=journal), 16, journal, stop)
    assert parts == whole
    assert all(is_allowed(params) for params in whole)
    fixed = [params for params in whole if params["optimizer"] == "sgd" and params["x"] == 0.25]
    assert fixed == whole[9:21]
    study.close()
    record = read_record(journal)
    assert [trial.params for trial in record.trials] == whole
    assert set(record.space) == set(MIXED.names)


def test_a_fixed_space_is_exhausted_and_released():
    study = Study(SearchSpace({"a": Integer(1, 5), "b": Categorical(["u", "v"])}), seed=0, n_initial=2)
    study.add({"a": [1, 2], "b": ["u", "v"]}, [0.0, 1.0])
    study.fix({"b": "u"})
    for trial in study.ask(4):
        assert trial.params["b"] == "u"
        study.tell(trial, 1.0)
    with pytest.raises(SpaceExhausted):
        study.ask()
    study.fix({"b": "v"})
    assert len(study.ask(4)) == 4
    study.fix({})
    with pytest.raises(SpaceExhausted):
        study.ask()


def test_a_study_may_begin_with_fixed_values(tmp_path):
    journal = tmp_path / "run.jsonl"
    space = SearchSpace({"x": Real(0, 1), "lr": Real(1e-4, 1, log=True)}).with_fixed({"lr": 0.01})
    study = Study(space, seed=0, n_initial=3, journal=journal)
    for _ in range(5):
        (trial,) = study.ask()
        assert trial.params["lr"] == 0.01
        study.tell(trial, trial.params["x"])
    study.close()
    again = Study.load(journal)
    assert again.space == space
    assert again.ask()[0].params["lr"] == 0.01
    again.close()
    Study(space, seed=0, n_initial=3, journal=journal, if_exists="load").close()


def fits(params):
    return params["a"] + params["b"] <= 8


def test_functions_are_given_again(tmp_path):
    """A journal names them; a run can be looked at without, and says what it needs to go on."""
    journal = tmp_path / "run.jsonl"
    space = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=[fits])
    study = Study(space, seed=0, n_initial=3, journal=journal)
    for trial in study.ask(4):
        study.tell(trial, 1.0)
    study.close()
    looked = Study.load(journal)
    assert len(looked.trials) == 4
    with pytest.raises(SpaceError, match=r"the function test_space_constraints.fits .*Study.load\(journal, space="):
        looked.ask()
    looked.close()
    with pytest.raises(JournalError, match="another space"):
        Study.load(journal, space=SearchSpace({"a": Integer(1, 9), "b": Integer(1, 8)}, constraints=[fits]))
    again = Study.load(journal, space=space)
    assert fits(again.ask()[0].params)
    again.close()
    again = Study(space, seed=0, n_initial=3, journal=journal, if_exists="load")
    assert fits(again.ask()[0].params)
    again.close()


def test_a_search_of_ones_own_is_held_to_the_constraints():
    class Everything(candidates.Candidates):
        def ranked(self, search, q):
            return search.space.sample_any(200, search.generator)

    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x < y"])
    study = Study(space, seed=0)
    for trial in study.ask(10):
        study.tell(trial, trial.params["x"])
    classifier = fit(KernelPLS(), study._state.data)
    search = Search(study._state.recipe.acquisition, classifier, study.observations, generator())
    assert space.permitted(Everything().propose(search, 5)).all()


# --- conditions ------------------------------------------------------------------------------------------------------


def test_several_conditions_and_comparisons():
    space = SearchSpace(
        {
            "kind": Categorical(["mlp", "conv", "none"]),
            "layers": Integer(1, 4, when={"kind": "!= none"}),
            "size": Ordinal(["small", "medium", "large"]),
            "dropout": Real(0, 1),
            "width": Ordinal([8, 16], when={"kind": ["mlp", "conv"], "layers": ">= 3"}),
            "wide": Ordinal([1, 2], when=[Condition("size", ">= medium"), {"dropout": "> 0.5"}]),
            "odd": Ordinal([1, 2], when=[{"layers": ["< 2", 3]}, {"layers": "<= 3"}]),
        }
    )
    for params in space.decode(space.sample(300, generator())):
        layers = params.get("layers", 0)
        assert ("layers" in params) == (params["kind"] != "none")
        assert ("width" in params) == (layers >= 3)
        assert ("wide" in params) == (params["size"] != "small" and params["dropout"] > 0.5)
        assert ("odd" in params) == (layers in (1, 3))
    assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space


@given(st.integers(0, 10**6), st.sampled_from(["<", "<=", ">", ">="]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_condition_on_a_real_parent_goes_by_its_native_value(micros, sign, log):
    bound = 0.1 + micros * 9e-7
    space = SearchSpace(
        {"x": Real(0.1, 1, log=log), "k": Ordinal([1, 2], when={"x": f"{sign} {bound!r}"})}
        if (0.1 < bound < 1)
        else {"x": Real(0.1, 1), "k": Ordinal([1, 2], when={"x": "> 0.5"})}
    )
    here = space.parameters["x"].encode([bound])
    points = space.snap(torch.stack([(here + d * 1e-13).clamp(0, 1) for d in range(-9, 10)]).repeat(1, 2))
    params = space.decode(points)
    assert torch.equal(space.active(space.encode(params)), space.active(points))
    assert all(is_active_natively(space, p) == ("k" in p) for p in params)


def is_active_natively(space, params):
    sign, bound = space.parameters["k"].when.values[0].split()
    return eval(f"{params['x']!r} {sign} {bound}")


@pytest.mark.parametrize(
    ("parent", "when", "says"),
    [
        (Integer(0, 9), "> 9", "never holds"),
        (Integer(0, 9), "> nine", "compared with a number, but got 'nine'"),
        (Integer(0, 9), "> nan", "compared with a number"),
        (Integer(0, 9), [], "got none"),
        (Integer(0, 9), "three", "impossible values"),
        (Categorical(["u", "v"]), "> u", "needs an order"),
        (Categorical(["u", "v"]), "!= w", "among .*'w'"),
        (Ordinal(["u", "v"]), "> v", "never holds"),
        (Real(0, 1), 0.5, "no values to name"),
        (Real(0, 1), "== 0.5", "too narrow"),
        (Real(0, 1), "> 2", "never holds"),
        (Integer(0, 9), {"b": 1}, "impossible values"),
        (Integer(0, 9), lambda value: value > 3, "impossible values"),
    ],
)
def test_conditions_that_cannot_be_meant_are_refused(parent, when, says):
    with pytest.raises(SpaceError, match=says):
        SearchSpace({"a": parent, "k": Ordinal([1, 2], when={"a": when})})


def test_conditions_that_never_hold_together_are_refused():
    with pytest.raises(SpaceError, match=r"conditions of 'c'.*never hold together"):
        SearchSpace(
            {"a": Integer(0, 9), "b": Integer(0, 3, when={"a": "> 3"}), "c": Integer(0, 3, when={"a": 2, "b": 1})}
        )
    both = SearchSpace({"a": Integer(0, 9), "k": Integer(1, 2, when=[{"a": ">= 3"}, {"a": "<= 5"}])})
    assert both.cardinality == 7 + 3 * 2


def test_a_choice_that_looks_like_a_comparison_is_a_choice():
    space = SearchSpace({"a": Categorical(["< 2", ">= 2"]), "k": Ordinal([1, 2, 3], when={"a": ">= 2"})})
    assert space.cardinality == 1 + 3


def test_conditions_on_parents_of_very_many_levels():
    space = SearchSpace({"n": Integer(1, 10**13), "k": Integer(1, 3, when={"n": "> 5"})})
    assert space.cardinality == 5 + 3 * (10**13 - 5)
    steps = SearchSpace({"n": Integer(0, 100, step=10), "k": Integer(1, 3, when={"n": "> 45"})})
    assert steps.cardinality == len(steps.enumerate()) == 5 + 3 * 6


@given(conditional_spaces(several=True), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_several_conditions_are_brute_force(space, seed):
    for params in space.decode(space.sample(20, generator(seed))):
        assert list(params) == [name for name in space.names if is_active(space, name, params)]
    if not math.isinf(space.cardinality):
        points = space.enumerate()
        grid = torch.cartesian_prod(
            *[p.from_level(torch.arange(p.levels).double()) for p in space.parameters.values()]
        ).reshape(-1, len(space))
        assert torch.equal(points, torch.unique(space.snap(grid), dim=0))
        assert space.cardinality == len(points)
    assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space


def test_choices_of_numpy_stand_in_conditions_and_fixed_values():
    space = SearchSpace(
        {
            "c": Categorical(np.array(["a", "b"])),
            "n": Integer(np.int8(1), np.array(9)),
            "x": Real(0, 1, when={"c": np.array(["a"])}),
        }
    )
    still = space.with_fixed({"n": np.int64(3), "c": np.str_("b")})
    assert still.fixed == {"n": 3, "c": "b"}
    assert space.encode([{"c": np.str_("a"), "n": np.float32(3), "x": np.array(0.5)}]).tolist() == [[0, 0.25, 0.5]]
    assert json.dumps(still.to_dict())
