"""Features of choices: what is taken, what is made of it, and that it comes back."""

import json
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist, squareform
from scipy.stats import zscore

from deepbore import Categorical, Real, SearchSpace, Study
from deepbore.data.journal import Journal
from deepbore.errors import JournalError, SpaceError
from deepbore.space.features import Coordinates
from deepbore.space.parameters.descriptors import are_fingerprints, tanimoto
from deepbore.space.search_space import check_known

SOLVENTS = ["DMF", "MeOH", "THF", "toluene"]
FEATURES = np.array([[36.7, 1.0, 80.0], [32.7, 1.0, -5.0], [7.6, 1.0, 3.0], [2.4, 1.0, 7.0]])
OTHERS = FEATURES + np.array([[1], [0], [0], [0]])
ALL = torch.arange(4)


def apart(parameter):
    rows = parameter.descriptors.rows(torch.arange(parameter.levels)).numpy()
    return squareform(pdist(rows))


def frame(**settings):
    return pd.DataFrame(FEATURES, index=SOLVENTS, columns=["eps", "one", "bp"], **settings)


def csv_of(path):
    frame().iloc[::-1].to_csv(path)
    return str(path)


def npy_of(path):
    np.save(path, FEATURES)
    return path


FORMS = {
    "array": lambda path: FEATURES,
    "lists": lambda path: FEATURES.tolist(),
    "tensor": lambda path: torch.tensor(FEATURES),
    "dict": lambda path: {"more": [1, 2, 3], **dict(zip(SOLVENTS[::-1], FEATURES[::-1], strict=True))},
    "frame": lambda path: frame().iloc[::-1],
    "frame without names": lambda path: frame().reset_index(drop=True),
    "csv": lambda path: csv_of(path / "solvents.csv"),
    "npy": lambda path: npy_of(path / "solvents.npy"),
}


@pytest.mark.parametrize("form", FORMS)
def test_features_come_in_many_forms(form, tmp_path):
    parameter = Categorical(SOLVENTS, features=FORMS[form](tmp_path))
    assert parameter == Categorical(SOLVENTS, features=FEATURES)
    assert hash(parameter) == hash(Categorical(SOLVENTS, features=FEATURES))
    assert np.allclose(apart(parameter), apart(Categorical(SOLVENTS, features=FEATURES)))


REFUSED = {
    "too few rows": (FEATURES[:3], "4 rows of numbers"),
    "no columns": (FEATURES[:, :0], "4 rows of numbers"),
    "one dimension": (FEATURES[:, 0], "4 rows of numbers|K x f"),
    "a number": (3.0, "4 rows|K x f"),
    "other lengths": ([[1], [2, 3], [4], [5]], "'MeOH' has 2, and 'DMF' 1"),
    "text": (frame(dtype=object).assign(kind=["a", "b", "c", "d"]), "'kind' of 'DMF' is 'a'"),
    "missing": (frame().replace(-5.0, np.nan), "'bp' of 'MeOH' is nan"),
    "None": ({**dict(zip(SOLVENTS, FEATURES.tolist(), strict=True)), "THF": [1, None, 2]}, "1 of 'THF'"),
    "infinite": (np.where(FEATURES == 7.0, np.inf, FEATURES), "column 2 of 'toluene' is inf|2 of 'toluene' is inf"),
    "no row": (frame().drop(index="THF"), r"\['THF'\] have none"),
    "two rows": (pd.concat([frame(), frame()[1:2]]), "'MeOH' has several"),
    "all the same": (np.ones((4, 5)), "tell levels apart"),
    "no such file": ("missing.csv", "can't be read"),
    "no such kind of file": ("features.xlsx", ".csv or .npy"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named(case):
    features, words = REFUSED[case]
    with pytest.raises(SpaceError, match=words):
        Categorical(SOLVENTS, features=features)


@pytest.mark.parametrize("width", [2, 40])
def test_distances_are_those_of_standardised_columns_without_copies_of_them(width):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(9, width)) * 10.0 ** rng.integers(-9, 9, width)
    both = np.concatenate([features, -3 * features[:, :1] + 1, np.full((9, 1), 7.0)], axis=1)
    found = apart(Categorical(list("abcdefghi"), features=both))
    expected = pdist(zscore(features))
    assert np.allclose(found, squareform(expected / np.median(expected)))
    assert np.median(found[np.triu_indices(9, 1)]) == pytest.approx(1)
    assert Categorical(list("abcdefghi"), features=both).descriptors.width == min(width, 8)


def test_fingerprints_are_compared_by_tanimoto():
    rng = np.random.default_rng(1)
    bits = (rng.random((8, 64)) < 0.2).astype(float)
    both = np.array([[(a * b).sum() / np.maximum(a, b).sum() for a in bits] for b in bits])
    assert np.allclose(tanimoto(torch.tensor(bits), torch.tensor(bits)), both)
    found, expected = apart(Categorical(list("abcdefgh"), features=bits)), np.sqrt(2 - 2 * both)
    assert np.allclose(found, expected / np.median(expected[np.triu_indices(8, 1)]), atol=1e-7)
    assert are_fingerprints(bits)
    assert not are_fingerprints(bits[:, :20])
    assert not are_fingerprints(bits + 0.5)
    assert not are_fingerprints(1 - bits)


def test_two_rows_of_zeros_are_alike():
    zeros = torch.zeros(2, 3)
    assert tanimoto(zeros, torch.cat([zeros, torch.ones(1, 3)])).tolist() == [[1, 1, 0], [1, 1, 0]]


finite = st.floats(-1e6, 1e6).map(lambda each: round(each, 3))


@settings(max_examples=30)
@given(arrays(float, st.tuples(st.integers(2, 6), st.integers(1, 8)), elements=finite))
def test_any_features_give_finite_rows_or_an_error(features):
    try:
        parameter = Categorical(list(map(str, range(len(features)))), features=features)
    except SpaceError:
        assert (np.ptp(features, axis=0) <= 1e-6 * abs(features).max(0)).all()
        return
    rows = parameter.descriptors.rows(torch.arange(len(features)))
    assert rows.isfinite().all()
    assert rows.shape == (len(features), parameter.descriptors.width)
    assert parameter.descriptors.width < max(len(features), 2)


def test_a_block_of_inputs_says_what_a_choice_is_like():
    space = SearchSpace(
        {
            "x": Real(0, 1),
            "c": Categorical(SOLVENTS, features=FEATURES, when={"on": True}),
            "on": Categorical([True, False]),
        }
    )
    coordinates = Coordinates(space.points)
    assert [(block.parameter, block.descriptors is not None) for block in coordinates.blocks] == [
        (0, False), (1, False), (2, False), (1, True),
    ]  # fmt: skip
    assert sorted(place for block in coordinates.blocks for place in block.inputs) == list(range(coordinates.size))
    assert coordinates.block[list(coordinates.blocks[3].inputs)].tolist() == [3, 3]
    points = space.encode([{"x": 0, "c": "THF", "on": True}, {"x": 1, "on": False}])
    for inputs in (coordinates, space.points.features):
        rows = inputs(points)[:, list(inputs.blocks[3].inputs)]
        assert torch.equal(rows[0], space.parameters["c"].descriptors.rows(torch.tensor(2)))
        assert not rows[1].any()


def test_a_move_goes_to_what_is_alike_first_and_its_reverse_is_accounted_for():
    features = [[0.0], [1.0], [2.0], [10.0], [11.0], [13.0], [30.0], [31.0], [33.0], [60.0]]
    parameter = Categorical(list("abcdefghij"), features=features)
    u, v = torch.rand(2, 20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start = torch.full_like(u, 3.0)
    end = parameter.moved(start, u, v, torch.zeros_like(u))
    shares = torch.bincount(end.long(), minlength=10) / len(end)
    near, far = torch.tensor([4.0, 2.0, 5.0]), torch.tensor([0.0, 6.0, 9.0])
    expected = {to: 0.5 / 9 + (0.5 / 3 if to in (4, 2, 5) else 0) for to in range(10)}
    assert shares.tolist() == pytest.approx([0 if to == 3 else expected[to] for to in range(10)], abs=0.01)
    back = parameter.likelier_back(torch.full_like(far, 3.0), far)
    assert (back <= 0).all() or (back >= 0).all()
    assert parameter.likelier_back(start[:3], near) == pytest.approx(-parameter.likelier_back(near, start[:3]))


def test_declarations_have_the_checksum_and_yaml_the_file(tmp_path):
    parameter = Categorical(SOLVENTS, features=FEATURES)
    kept = json.loads(json.dumps(SearchSpace({"c": parameter}).to_dict()))
    assert kept["c"] == {
        "type": "categorical",
        "choices": SOLVENTS,
        "features": {"checksum": kept["c"]["features"]["checksum"]},
    }
    read = SearchSpace.from_dict(kept)
    assert read.parameters["c"] == parameter
    assert read.to_dict() == kept
    with pytest.raises(SpaceError, match="keeps a checksum"):
        check_known(read)
    with pytest.raises(SpaceError, match="not known here"):
        Coordinates(read.points)(torch.zeros(1, 1, dtype=torch.float64))
    declared = {"c": {"type": "categorical", "choices": SOLVENTS, "features": csv_of(tmp_path / "solvents.csv")}}
    assert SearchSpace.from_dict(declared).parameters["c"] == parameter
    again = pickle.loads(pickle.dumps(parameter))
    assert again == parameter
    assert torch.equal(again.descriptors.rows(ALL), parameter.descriptors.rows(ALL))
    assert pickle.dumps(again) == pickle.dumps(pickle.loads(pickle.dumps(again)))
    assert parameter != Categorical(SOLVENTS)
    assert parameter != Categorical(SOLVENTS, features=OTHERS)
    assert repr(parameter) == "Categorical(['DMF', 'MeOH', 'THF', 'toluene'], features=<3 features of 4 levels>)"


def value(params):
    return (params["x"] - 0.3) ** 2 + SOLVENTS.index(params["c"])


def study(path, features, **settings):
    return Study(
        {"x": Real(0, 1), "c": Categorical(SOLVENTS, features=features)}, seed=1, n_initial=3, journal=path, **settings
    )


def run(study, count):
    for trial in study.ask(count):
        study.tell(trial, value(trial.params))
    return study


def test_a_run_resumes_with_its_features_and_with_no_others(tmp_path):
    straight = study(tmp_path / "a.jsonl", FEATURES)
    for _ in range(8):
        run(straight, 1)
    part = study(tmp_path / "b.jsonl", FEATURES)
    for _ in range(5):
        run(part, 1)
    part.close()
    make = partial(study, tmp_path / "b.jsonl", if_exists="load")
    for other in (OTHERS, None):
        with pytest.raises(JournalError, match=r"the features of 'c' are others.*Give the space of that run"):
            make(other)
    read = Study.load(tmp_path / "b.jsonl")
    assert len(read.trials) == 5
    with pytest.raises(SpaceError, match="Give the space again"):
        read.ask()
    again = make(FEATURES)
    for _ in range(3):
        run(again, 1)
    assert [trial.params for trial in again.trials] == [trial.params for trial in straight.trials]


def test_a_journal_opens_no_file(tmp_path):
    declared = {"c": {"type": "categorical", "choices": SOLVENTS, "features": csv_of(tmp_path / "solvents.csv")}}
    Journal.begin(tmp_path / "run.jsonl", {"space": declared, "directions": ["minimize"], "seed": 0}).close()
    with pytest.raises(JournalError, match="only their checksum"):
        Study.load(tmp_path / "run.jsonl")
