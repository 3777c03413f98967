"""A run can go on without being told how it was set up: the journal knows its parts, and says where others differ."""

import json
import logging

import pytest
import torch

import deepbore
from deepbore import Real, SearchSpace, Study
from deepbore.component import describe, make
from deepbore.errors import JournalError, SettingError
from deepbore.labels import EmphasiseChanges, RankGradedLabels, ThresholdLabels

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(1e-3, 1, log=True)})


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.2) ** 2


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, bowl(trial.params))


RECIPES = {
    "gamma": lambda: {"gamma": 0.3},
    "rows": lambda: {"classifier": deepbore.KernelPLS(rows=8), "n_initial": 5},
    "changes": lambda: {
        "labels": EmphasiseChanges(ThresholdLabels(deepbore.DecayingGamma(0.4, 0.2))),
        "classifier": deepbore.DeepEnsemble(members=2, training=deepbore.Training(steps=5)),
        "n_initial": 4,
    },
    "nested": lambda: {
        "classifier": deepbore.Calibrated(
            deepbore.DeepEnsemble(members=2, training=deepbore.Training(steps=5)), folds=2
        ),
        "acquisition": deepbore.QuantileBound(0.7),
        "candidates": deepbore.EpsilonGreedy(
            deepbore.GreedyBatch(deepbore.LocalSearch(samples=50, neighbours=20)), 0.3
        ),
        "n_initial": 4,
    },
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_study_is_loaded_with_its_own_settings_and_goes_on_bit_for_bit(tmp_path, name):
    whole = Study(PLANE, seed=3, **RECIPES[name]())
    part = Study(PLANE, seed=3, **RECIPES[name](), journal=tmp_path / "run.jsonl")
    go_on(whole, 16)
    go_on(part, 13)
    part.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    assert loaded.recipe.describe() == whole.recipe.describe()
    go_on(loaded, 3)
    assert torch.equal(loaded.observations.points, whole.observations.points)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"gamma": 0.25}, "labels is ValueGradedLabels(gamma=0.25), was ValueGradedLabels()"),
        ({"classifier": deepbore.KernelPLS(rows=99)}, "classifier is KernelPLS(rows=99), was KernelPLS()"),
        ({"n_initial": 3}, "n_initial is 3, was 4"),
        ({"acquisition": deepbore.UpperConfidenceBound(1.5)}, "was LogExpectedImprovement()"),
    ],
)
def test_other_settings_than_the_journals_are_said(tmp_path, caplog, other, says):
    study = Study(PLANE, n_initial=4, journal=tmp_path / "run.jsonl")
    go_on(study, 8)
    study.close()
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(Study.load(tmp_path / "run.jsonl", **other), 1)
    (said,) = [record.message for record in caplog.records if "learns anew" in record.message]
    assert says in said


class Mine(deepbore.KernelPLS):
    """Of nobody but this test."""


def test_a_part_that_is_not_deepbores_is_never_imported_by_a_journal(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, classifier=Mine(), n_initial=4, journal=path)
    go_on(study, 6)
    study.close()
    with pytest.raises(SettingError, match=r"test_recipe\.Mine is not a class of deepbore.*classifier=\.\.\."):
        Study.load(path)
    loaded = Study.load(path, classifier=Mine())
    go_on(loaded, 1)
    assert loaded.trials[-1].params == resumed_by(Study(PLANE, classifier=Mine(), n_initial=4), 7)


def resumed_by(study, n):
    go_on(study, n)
    return study.trials[-1].params


def test_a_setting_that_cannot_be_written_down_has_to_be_given_again(tmp_path):
    def network(features, outputs):
        return torch.nn.Linear(features, outputs)

    study = Study(PLANE, classifier=deepbore.MLPClassifier(network=network), journal=tmp_path / "run.jsonl")
    study.close()
    with pytest.raises(SettingError, match="could not be written down"):
        Study.load(tmp_path / "run.jsonl")
    assert Study.load(tmp_path / "run.jsonl", classifier=deepbore.MLPClassifier(network=network)).space == PLANE


def test_the_header_of_a_journal_says_how_the_run_was_set_up(tmp_path):
    Study(PLANE, seed=7, labels=RankGradedLabels(0.4), journal=tmp_path / "run.jsonl")
    header = json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])
    assert header["seed"] == 7
    assert header["directions"] == ["minimize"]
    assert header["recipe"]["labels"] == {"class_path": "deepbore.labels.RankGradedLabels", "init_args": {"gamma": 0.4}}


def test_a_part_is_made_again_from_its_description():
    part = deepbore.GreedyBatch(deepbore.LocalSearch(samples=11), reach=0.25)
    again = make(json.loads(json.dumps(describe(part))), deepbore.candidates.Candidates)
    assert (again.base.samples, again.reach) == (11, 0.25)
    with pytest.raises(SettingError, match="must be a Labelling"):
        make(describe(part), deepbore.labels.Labelling)


def test_a_snapshot_belongs_to_its_journal_alone(tmp_path, caplog):
    for name in ("exp.0", "exp.1"):
        study = Study(PLANE, n_initial=4, seed=5, journal=tmp_path / name)
        go_on(study, 7)
        study.close()
    assert {path.name for path in tmp_path.glob("*.ckpt")} == {"exp.0.ckpt", "exp.1.ckpt"}
    (tmp_path / "exp.0.ckpt").replace(tmp_path / "exp.1.ckpt")
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(Study.load(tmp_path / "exp.1"), 1)
    assert "it is of another run" in caplog.text


@pytest.mark.parametrize("kept", [0, 3, 100])
def test_a_snapshot_that_was_cut_off_is_made_anew(tmp_path, caplog, kept):
    go_on(study := Study(PLANE, n_initial=4, journal=tmp_path / "run.jsonl"), 6)
    study.close()
    snapshot = tmp_path / "run.jsonl.ckpt"
    snapshot.write_bytes(snapshot.read_bytes()[:kept])
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(Study.load(tmp_path / "run.jsonl"), 1)
    assert "it is damaged" in caplog.text
    assert snapshot.stat().st_size > 1000


def test_a_users_own_file_is_not_overwritten(tmp_path):
    (tmp_path / "model.jsonl.ckpt").write_bytes(b"weights of a week")
    study = Study(PLANE, n_initial=4, journal=tmp_path / "model.jsonl")
    with pytest.raises(JournalError, match="no snapshot of deepbore"):
        study.ask()
    assert (tmp_path / "model.jsonl.ckpt").read_bytes() == b"weights of a week"
