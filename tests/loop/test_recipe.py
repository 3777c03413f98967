"""A run can go on without being told how it was set up: the journal knows its parts, and says where others differ."""

import json
import logging

import numpy as np
import pytest
import torch

import deepbore
from deepbore import (
    Budget,
    GreedyBatch,
    KernelPLS,
    LocalSearch,
    MLPClassifier,
    PreferenceLabels,
    Real,
    SearchSpace,
    Study,
    minimize,
)
from deepbore.classifiers import PerColumn, Relaxed
from deepbore.component import describe, make
from deepbore.errors import JournalError, SettingError
from deepbore.labels import EmphasiseChanges, RankGradedLabels, ThresholdLabels, ValueGradedLabels
from deepbore.loop.recipe import check_described
from deepbore.testing import check_classifier
from objectives import bowl
from plane import LINE, PLANE, SQUARE

BOTH = ["minimize", "minimize"]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("wrapped", [lambda head: head, Relaxed])
def test_as_many_columns_as_objectives_are_needed_also_within_another_head(wrapped, columns):
    with pytest.raises(SettingError, match=rf"has {columns} column\(s\), but ObjectiveLabels has 2"):
        Study(SQUARE, directions=BOTH, classifier=wrapped(PerColumn(KernelPLS(), columns)))
    study = Study(SQUARE, directions=BOTH, classifier=wrapped(PerColumn(KernelPLS(), 2)), seed=0)
    study.optimize(lambda p: [p["x"], (1 - p["x"]) ** 2 + p["y"]], 18)
    assert len(study.pareto_front) > 4


def test_labels_of_too_few_columns_are_named():
    with pytest.raises(SettingError, match=r"PerColumn has 2 column\(s\), but the labels have 1"):
        check_classifier(lambda: PerColumn(KernelPLS(), 2))


@pytest.mark.parametrize("preferences", [False, True])
@pytest.mark.parametrize(
    ("made", "loaded"), [({"classifier": MLPClassifier}, {"gamma": 0.3}), ({}, {"classifier": MLPClassifier})]
)
def test_default_labels_suit_the_classifier_that_a_study_is_loaded_with(tmp_path, preferences, made, loaded):
    def parts(given):
        return {name: part() if callable(part) else part for name, part in given.items()}

    Study(SQUARE, preferences=preferences, journal=tmp_path / "run.jsonl", **parts(made)).close()
    labels = Study.load(tmp_path / "run.jsonl", **parts(loaded)).state.recipe.labels
    assert isinstance(labels, PreferenceLabels) is preferences
    assert type(labels.base if preferences else labels) is ValueGradedLabels


def test_a_study_of_preferences_goes_on_with_the_labels_that_it_had(tmp_path):
    for labels in (None, PreferenceLabels(ThresholdLabels(0.2))):
        path = tmp_path / f"{type(labels).__name__}.jsonl"
        Study(SQUARE, preferences=True, journal=path, labels=labels).close()
        again = Study(SQUARE, preferences=True, journal=path, labels=labels, if_exists="load")
        assert type(again.state.recipe.labels.base) is (ValueGradedLabels if labels is None else ThresholdLabels)


HALF_LOG = SearchSpace({"x": Real(-1, 1), "y": Real(1e-3, 1, log=True)})


def basin(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.2) ** 2


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, basin(trial.params))


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
    whole = Study(HALF_LOG, seed=3, **RECIPES[name]())
    part = Study(HALF_LOG, seed=3, **RECIPES[name](), journal=tmp_path / "run.jsonl")
    go_on(whole, 16)
    go_on(part, 13)
    part.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    assert loaded.state.recipe.described == whole.state.recipe.described
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
    study = Study(HALF_LOG, n_initial=4, journal=tmp_path / "run.jsonl")
    go_on(study, 8)
    study.close()
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(Study.load(tmp_path / "run.jsonl", **other), 1)
    (said,) = [record.message for record in caplog.records if "trained from scratch" in record.message]
    assert says in said


class Mine(deepbore.KernelPLS):
    """Of nobody but this test."""


def test_a_part_that_is_not_deepbores_is_never_imported_by_a_journal(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(HALF_LOG, classifier=Mine(), n_initial=4, journal=path)
    go_on(study, 6)
    study.close()
    with pytest.raises(SettingError, match=r"test_recipe\.Mine is not a class of deepbore.*classifier=\.\.\."):
        Study.load(path)
    loaded = Study.load(path, classifier=Mine())
    go_on(loaded, 1)
    assert loaded.trials[-1].params == resumed_by(Study(HALF_LOG, classifier=Mine(), n_initial=4), 7)


def resumed_by(study, n):
    go_on(study, n)
    return study.trials[-1].params


def test_a_setting_that_cannot_be_written_down_has_to_be_given_again(tmp_path):
    def network(features, outputs):
        return torch.nn.Linear(features, outputs)

    study = Study(HALF_LOG, classifier=deepbore.MLPClassifier(network=network), journal=tmp_path / "run.jsonl")
    study.close()
    with pytest.raises(SettingError, match="could not be written down"):
        Study.load(tmp_path / "run.jsonl")
    assert Study.load(tmp_path / "run.jsonl", classifier=deepbore.MLPClassifier(network=network)).space == HALF_LOG


def test_the_header_of_a_journal_says_how_the_run_was_set_up(tmp_path):
    Study(HALF_LOG, seed=7, labels=RankGradedLabels(0.4), journal=tmp_path / "run.jsonl")
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


# regression: state that is not in the snapshot; settings that differ
@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"gamma": 0.3}, {"n_initial": 4}, {"acquisition": deepbore.QuantileBound()}])
def test_a9_other_settings_than_the_journals_are_refused_or_said(tmp_path, setting, caplog):
    path = tmp_path / "run.jsonl"
    minimize(bowl, PLANE, 7, journal=path, n_initial=5).study.close()
    Study.load(path, **setting).ask()
    assert "the settings differ" in caplog.text
    described = {"n_initial": 5, **setting}
    with pytest.raises(JournalError, match=r" is .*, was .*Study\.load"):
        Study(PLANE, journal=path, if_exists="load", **described)


# regression: each of these was wrong once
def test_numbers_of_numpy_are_settings_that_a_journal_keeps(tmp_path):
    settings = {"budget": Budget("epochs", np.int64(1), np.int64(81)), "journal": tmp_path / "run"}
    study = Study(LINE, candidates=GreedyBatch(LocalSearch(samples=np.int64(50), focus=np.float32(0.5))), **settings)
    study.ask()
    study.close()
    again = Study.load(tmp_path / "run")
    assert again.state.recipe.candidates.base.samples == 50
    assert again.observations.budget == Budget("epochs", 1, 81)


def test_a_study_of_preferences_keeps_its_labels_with_another_gamma(tmp_path):
    study = Study(LINE, n_initial=2, preferences=True, journal=tmp_path / "run")
    study.prefer(*study.ask(2))
    study.close()
    assert isinstance(Study.load(tmp_path / "run", gamma=0.3).state.recipe.labels, PreferenceLabels)


PARTS = {"labels": describe(ThresholdLabels()), "n_initial": 4}


@pytest.mark.parametrize("given", [[], ["labels"], ["labels", "n_initial"], ["n_initial"]])
def test_a_header_may_say_of_its_own_parts_which_were_given(given):
    check_described({**PARTS, "given": given})
    check_described(PARTS)


@pytest.mark.parametrize(
    "given", [["classifier"], ["labels", "classifier"], ["labels", 3], [None], ["given", "labels", "x"]]
)
def test_a_header_that_says_of_other_parts_that_they_were_given_is_refused(given):
    with pytest.raises(SettingError, match="given parts must be among its parts, but got"):
        check_described({**PARTS, "given": given})


@pytest.mark.parametrize("name", ["given", "turns"])
def test_a_header_whose_lists_are_none_is_refused(name):
    with pytest.raises(SettingError, match=f"{name} must be a list, but got"):
        check_described({**PARTS, name: {"labels": 1}})
