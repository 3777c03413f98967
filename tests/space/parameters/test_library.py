import pickle

import numpy as np
import pytest
import torch

import deepbore
from deepbore.errors import PointError, SpaceError
from deepbore.space import Library, SearchSpace

BITS = np.random.default_rng(0).random((50, 40)) < 0.3
NAMES = [f"C{'C' * level}O" for level in range(50)]


@pytest.fixture
def files(tmp_path):
    np.save(tmp_path / "bits.npy", np.packbits(BITS, axis=1))
    (tmp_path / "molecules.smi").write_text("".join(f"{name} number-{k}\n" for k, name in enumerate(NAMES)))
    return tmp_path / "bits.npy", tmp_path / "molecules.smi"


def rows(library, levels):
    return library.descriptors.rows(torch.tensor(levels, dtype=torch.long)).numpy()


def test_packed_bits_of_a_file_are_those_that_were_packed(files):
    library = Library(*files)
    assert np.array_equal(rows(library, [3, 0, 49]), BITS[[3, 0, 49]])
    assert np.array_equal(rows(Library(str(files[0])), [7]), BITS[[7]])  # without names, too
    assert library.levels == 50
    assert library.descriptors.is_tanimoto


@pytest.mark.parametrize("features", [BITS, np.packbits(BITS, axis=1), BITS.astype(np.int16) * 3])
def test_bits_and_counts_are_read_as_they_are(features):
    library = Library(features)
    factor = 3 if features.dtype == np.int16 else 1
    assert np.array_equal(rows(library, [5, 6]), factor * BITS[[5, 6]])
    assert library.descriptors.is_tanimoto


def test_numbers_are_standardised():
    numbers = np.random.default_rng(1).normal(5, 3, size=(2000, 6))
    found = rows(Library(numbers), list(range(2000)))
    apart = np.linalg.norm(found[:1000] - found[1000:], axis=1)
    assert np.sqrt((apart**2).mean()) == pytest.approx(1, abs=0.05)
    assert not Library(numbers).descriptors.is_tanimoto


def test_a_function_makes_the_features_of_a_few_names_at_a_time():
    asked = []

    def features(names):
        asked.append(len(names))
        return np.array([[len(name) % 5 == k for k in range(32)] for name in names])

    library = Library(features, names=NAMES)
    assert rows(library, [2])[0].argmax() == len(NAMES[2]) % 5
    assert max(asked) <= 16
    assert rows(library, []).shape == (0, 32)


def test_names_are_found_and_read(files):
    library = Library(*files)
    assert library.decode(torch.tensor([4.0, 0.0])) == [NAMES[4], NAMES[0]]
    assert library.encode([NAMES[49], NAMES[1]]).tolist() == [49, 1]
    with pytest.raises(PointError, match="none that is 'CXO'"):
        library.encode(["CXO"])
    with pytest.raises(PointError, match="0 to 49, but got 50"):
        Library(files[0]).encode([50])


@pytest.mark.parametrize("last", ["", "\n"])
def test_a_last_line_may_end_without_a_newline(tmp_path, last):
    path = tmp_path / "names.txt"
    path.write_text("one two\nthree" + last)
    library = Library(np.eye(2, 32, dtype=bool), names=path)
    assert library.decode(torch.tensor([0.0, 1.0])) == ["one two", "three"]


def test_names_that_stand_there_twice_are_refused(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("a\nb\na\n")
    for names in (path, ["a", "b", "a"]):
        with pytest.raises(SpaceError, match="'a' is the name of levels 0 and 2"):
            Library(np.eye(3, 32, dtype=bool), names=names)


@pytest.mark.parametrize(
    ("features", "names", "words"),
    [
        ("nowhere.npy", None, "can't be read from 'nowhere.npy'"),
        (BITS, "nowhere.smi", "can't be read from 'nowhere.smi'"),
        (BITS, NAMES[:7], r"7 levels have features of the shape \(50, 40\)"),
        (BITS[0], None, "one row of numbers for each level"),
        (BITS[:1], None, "at least two levels"),
        (BITS[:0], None, "at least two levels"),
        (lambda names: np.eye(len(names)), None, "without names has none"),
        (np.array([["a"], ["b"]]), None, "are numbers"),
    ],
)
def test_what_is_no_library_is_refused(features, names, words):
    with pytest.raises(SpaceError, match=words):
        Library(features, names=names)


def test_a_missing_number_is_refused_by_name():
    numbers = np.random.default_rng(0).normal(size=(20_001, 3))
    numbers[1, 2] = np.nan  # between the levels that tell the scale
    with pytest.raises(SpaceError, match="those of 1 are not"):
        rows(Library(numbers), [0, 1])


def test_a_copy_in_another_process_reads_the_files_again(files):
    library = Library(*files)
    assert len(pickle.dumps(library)) < 2000
    copied = pickle.loads(pickle.dumps(library))
    assert copied == library
    assert np.array_equal(rows(copied, [9]), BITS[[9]])


def test_plain_data_have_a_checksum_and_no_names(files):
    space = SearchSpace({"molecule": Library(*files)})
    declared = space.to_dict()
    assert SearchSpace.from_dict(declared) == space
    assert NAMES[0] not in str(declared)
    assert str(files[0].parent) not in str(declared)
    read = SearchSpace.from_dict(declared).parameters["molecule"]
    assert not read.are_known
    assert read.decode(read.encode(["x", "y", "x"])) == ["x", "y", "x"]  # so a run can be shown


def test_yaml_names_the_files(files):
    declared = {"type": "library", "features": str(files[0]), "names": str(files[1])}
    assert SearchSpace.from_dict({"molecule": declared}).parameters["molecule"] == Library(*files)


def test_a_journal_refuses_changed_features_and_takes_files_from_elsewhere(files, tmp_path):
    path = tmp_path / "run.jsonl"
    study = deepbore.Study({"molecule": Library(*files)}, journal=path)
    (trial,) = study.ask()
    study.tell(trial, 1.0)
    study.close()
    moved = tmp_path / "moved.npy"
    files[0].rename(moved)
    again = deepbore.Study.load(path, space={"molecule": Library(moved, names=files[1])})
    assert again.trials[0].params == trial.params
    again.close()
    with pytest.raises(deepbore.errors.JournalError, match="'molecule' are others"):
        deepbore.Study.load(path, space={"molecule": Library(~BITS, names=NAMES)})


# regression: these were found after many evaluations, by a run that could not go on then, or by NumPy
def test_a_missing_number_in_memory_is_refused_at_once():
    numbers = np.random.default_rng(0).normal(size=(20_001, 3))
    numbers[1, 2] = np.inf
    with pytest.raises(SpaceError, match=r"those of 1 are not. Fill"):
        Library(numbers)
    with pytest.raises(SpaceError, match=r"those of 'b' are not. Fill"):
        Library(lambda names: np.array([[np.nan if name == "b" else 1.0] for name in names]), names=["a", "b"])


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_tensors_are_features(kind):
    features = torch.arange(6.0).reshape(3, 2).to(kind).requires_grad_()
    assert rows(Library(features), [0, 2]).tolist() == rows(Library(np.arange(6.0).reshape(3, 2)), [0, 2]).tolist()
    described = deepbore.Categorical(["a", "b", "c"], features=dict(zip("abc", features, strict=True)))
    assert described == deepbore.Categorical(["a", "b", "c"], features=[[0, 1], [2, 3], [4, 5]])
    assert described == deepbore.Categorical(["a", "b", "c"], features=features)
