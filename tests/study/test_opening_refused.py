"""What a study that is refused leaves as it was, and how a journal's run differs from one that is described."""

import pytest

from deepbore import Budget, EmphasiseChanges, KernelPLS, Study, ThresholdLabels
from deepbore.errors import JournalError, SettingError
from deepbore.strategies import ModelStrategy
from deepbore.study.opening import holds_run
from plane import LINE, SQUARE
from tried import some_bowl


def with_memory():
    """Labels that remember a run."""
    labels = EmphasiseChanges(ThresholdLabels(0.3))
    study = Study(SQUARE, labels=labels, seed=0, n_initial=5)
    study.add(*some_bowl(12, 0))
    study.ask()
    assert str(labels.state_dict()) != str(EmphasiseChanges(ThresholdLabels(0.3)).state_dict())
    return study, labels


def test_labels_of_a_study_that_is_refused_remember_what_they_did(tmp_path):
    path = tmp_path / "run.jsonl"
    Study(SQUARE, journal=path).close()
    study, labels = with_memory()
    before = str(labels.state_dict())
    with pytest.raises(JournalError, match="holds a run already"):
        Study(SQUARE, labels=labels, journal=path)
    assert str(labels.state_dict()) == before
    Study(SQUARE, labels=labels)
    assert str(labels.state_dict()) != before
    assert study.state.recipe.labels is labels


def test_models_of_a_study_that_is_refused_stay_with_their_run(tmp_path):
    path = tmp_path / "run.jsonl"
    Study(LINE, journal=path).close()
    for given in ({"classifier": KernelPLS()}, {"strategy": ModelStrategy(KernelPLS())}):
        study = Study(LINE, **given)
        with pytest.raises(JournalError):
            Study(LINE, journal=path, **given)
        assert study.classifier.generator is study.classifier.run is study.state.generator
        study.ask()


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        ({}, {"direction": "maximize"}, "direction is maximize, was minimize"),
        ({"directions": ["minimize"] * 2}, {}, "direction is minimize, was minimize, minimize"),
        ({}, {"preferences": True}, "preferences is True, was False"),
        ({"budget": Budget("epochs", 1, 9)}, {}, "budget is None, was Budget"),
        ({"seed": 3}, {"seed": 4}, "seed is 4, was 3"),
        ({"n_initial": 4}, {"n_initial": 5}, "n_initial is 5, was 4"),
        ({"classifier": KernelPLS(rows=50)}, {}, r"classifier is not given, was KernelPLS\("),
    ],
)
def test_a_journal_of_another_run_is_refused_with_what_differs(tmp_path, was, now, says):
    path = tmp_path / "run.jsonl"
    Study(LINE, journal=path, **was).close()
    with pytest.raises(JournalError, match=f"another run than the one described here: {says}"):
        Study(LINE, journal=path, if_exists="load", **now)
    Study(LINE, journal=path, if_exists="load", **was).close()


def test_a_journal_without_a_run_is_begun(tmp_path):
    path = tmp_path / "run.jsonl"
    assert not holds_run(path)
    path.write_text("")
    assert not holds_run(path)
    study = Study(LINE, journal=path, if_exists="load", seed=7)
    assert holds_run(path)
    study.close()
    assert Study.load(tmp_path / "run.jsonl").state.seed == 7


def test_a_run_directory_stands_for_the_journal_in_it(tmp_path):
    Study(LINE, journal=tmp_path / "journal.jsonl", seed=7).close()
    assert Study.load(tmp_path).state.seed == 7


def test_another_space_is_refused(tmp_path):
    for space in (None, ["x"]):
        with pytest.raises(SettingError, match="space must be a SearchSpace"):
            Study(space)
    path = tmp_path / "run.jsonl"
    Study(LINE, journal=path).close()
    with pytest.raises(SettingError, match="space must be a SearchSpace"):
        Study.load(path, space=3)
    with pytest.raises(JournalError):
        Study.load(path, space=SQUARE)
