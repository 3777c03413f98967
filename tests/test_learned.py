"""What a page says of the classifier: shares that add up, values in the user's units, predictions of unseen trials."""

import itertools
import json
import time

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

from deepbore import (
    Categorical,
    Condition,
    MLPClassifier,
    ProcessEvaluator,
    RankGradedLabels,
    Real,
    SearchSpace,
    SerialEvaluator,
    Study,
    ThresholdLabels,
    plots as pictures,
)
from deepbore.classifiers.posterior import PointEstimate
from deepbore.data.trial import Trial
from deepbore.errors import SettingError
from deepbore.evaluators import Timed
from deepbore.plots.held_out import anew, held_out
from deepbore.plots.html_report import record_of
from deepbore.plots.predictions import labels_of, values_of
from deepbore.plots.translation import BY_CALIBRATION, BY_DEFINITION, Translation, isotonic
from drawn_studies import CUBE, MIXED, NAN, Known


class Memory(Known):
    """Knows the labels of the points that it has learned by heart, and says a half elsewhere."""

    def __init__(self):
        super().__init__(None)
        self.known = {}

    def fit(self, batch):
        self.known = {tuple(x): float(z) for x, z in zip(batch.points.tolist(), batch.z.mean(-1), strict=True)}
        return {}

    def posterior(self, points):
        said = torch.tensor([self.known.get(tuple(x), 0.5) for x in points.tolist()], dtype=torch.float64)
        return PointEstimate(said, self.link, "Memory")


def told(space, values, **settings):
    """A trained study of random configurations with these values; a function makes them of the configuration."""
    study = Study(space, **settings)
    n = values if isinstance(values, int) else len(values)
    for k, row in enumerate(study.observations.reserve(space.sample(n, torch.Generator().manual_seed(0)))):
        params = study.observations.trial(row).params
        study.tell(
            row, sum(v for v in params.values() if isinstance(v, float)) if isinstance(values, int) else values[k]
        )
    study.fit(epochs=1)
    return study


# --- shares ----------------------------------------------------------------------------------------------------------


def test_shares_are_those_of_a_known_formula():
    """f = x0 / 2 + x1 x2 / 2: variances 12 of x0, 3 of x1 and of x2, 1 of both together, of 19."""
    study = told(CUBE, 20, classifier=Known(lambda x: x[:, 0] / 2 + x[:, 1] * x[:, 2] / 2))
    found = pictures.shares(study, samples=8192)
    assert next(iter(found)) == "x0"
    assert [found[name].whole for name in CUBE.names] == pytest.approx([12 / 19, 3.5 / 19, 3.5 / 19], abs=0.02)
    assert [found[name].alone for name in CUBE.names] == pytest.approx([12 / 19, 3 / 19, 3 / 19], abs=0.02)
    assert 1 - sum(share.alone for share in found.values()) == pytest.approx(1 / 19, abs=0.02)


def test_shares_add_up_to_one_and_see_interactions():
    study = told(CUBE, 20, classifier=Known(lambda x: ((x[:, 0] > 0.5) ^ (x[:, 1] > 0.5)).double()))
    found = pictures.shares(study)
    assert sum(share.whole for share in found.values()) == pytest.approx(1, abs=1e-9)
    assert found["x0"].whole == pytest.approx(0.5, abs=0.03)
    assert max(share.alone for share in found.values()) < 0.01  # neither says anything alone
    assert found["x2"].whole == 0
    assert found["x0"].together == found["x0"].whole - found["x0"].alone


def test_a_conditional_parameter_has_its_share_where_it_is_active():
    space = SearchSpace(
        {"kind": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("kind", "a")), "idle": Real(0, 1)}
    )
    study = told(space, 20, classifier=Known(lambda x: x[:, 1]))  # kind switches x on
    found = pictures.shares(study, samples=4096)
    whole, alone = 5 / 48, 1 / 48  # Var(b u) with b of a coin; of E[b u | u] = u / 2
    assert found["x"].alone == pytest.approx(alone / whole, abs=0.03)
    assert found["kind"].alone == pytest.approx(1 / 16 / whole, abs=0.03)
    assert found["idle"].whole == 0


def test_nothing_learned_has_no_shares():
    assert all(share.whole == 0 for share in pictures.shares(told(CUBE, [1.0])).values())
    constant = told(CUBE, 20, classifier=Known(lambda x: torch.full((len(x),), 0.5, dtype=torch.float64)))
    assert all(share.whole == 0 for share in pictures.shares(constant).values())


# --- from labels to values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("labels", [None, RankGradedLabels()])
def test_graded_labels_are_led_back_to_the_values_that_they_were_made_of(direction, labels):
    study = told(CUBE, 40, direction=direction, labels=labels)
    found = Translation.of(study)
    assert found.says == BY_DEFINITION
    z, values = labels_of(study).z.mean(-1).numpy(), values_of(study)
    graded = z > z.min()  # beyond the last threshold of ranks values have one label
    assert found(z)[graded] == pytest.approx(values[graded])
    steps = np.diff(found(np.linspace(0, 1, 99)))
    assert (steps <= 0).all() if direction == "minimize" else (steps >= 0).all()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_binary_labels_are_calibrated_on_unseen_trials(direction):
    study = told(CUBE, 60, direction=direction, labels=ThresholdLabels(), classifier=Known(lambda x: x.sum(-1) / 3))
    assert Translation.of(study) is None
    values = values_of(study)
    unseen = (-values if direction == "minimize" else values) + 10.0  # whatever its scale
    found = Translation.of(study, unseen)
    assert found.says == BY_CALIBRATION
    assert found(unseen) == pytest.approx(values)
    shuffled = np.random.default_rng(0).permutation(unseen)  # it says nothing: all is expected to be in the middle
    assert np.std(Translation.of(study, shuffled)(shuffled)) < np.std(values) / 2


def test_failures_rank_last_in_a_calibration():
    values = [*np.linspace(0, 1, 20), *[NAN] * 10]
    study = told(CUBE, values, labels=ThresholdLabels())
    unseen = np.array([*np.linspace(1, 0.5, 20), *[0.1] * 10])
    assert Translation.of(study, unseen)(np.array([0.1, 1.0])) == pytest.approx([1.0, 0.0])


def test_isotonic_regression_is_that_of_scikit_learn():
    y = np.random.default_rng(0).normal(size=200) + np.linspace(0, 2, 200)
    assert isotonic(y) == pytest.approx(IsotonicRegression().fit_transform(np.arange(200), y))


def test_several_objectives_have_no_translation():
    study = told(CUBE, 20)
    study.observations.directions = ("minimize", "minimize")
    assert Translation.of(study) is None


# --- unseen trials ---------------------------------------------------------------------------------------------------


def test_no_trial_is_predicted_by_a_classifier_that_has_seen_it():
    study = told(CUBE, 30, classifier=Memory())
    study.observations.reserve(CUBE.sample(2, torch.Generator().manual_seed(1)))
    found = held_out(study)
    assert found[:30].tolist() == [0.5] * 30
    assert np.isnan(found[30:]).all()  # pending


@pytest.mark.slow
def test_a_classifier_predicts_unseen_trials_of_a_smooth_function():
    study = told(CUBE, 60)
    found, z = held_out(study, epochs=2), labels_of(study).z.mean(-1).numpy()
    assert np.corrcoef(found, z)[0, 1] > 0.8
    assert held_out(study, epochs=2).tolist() == found.tolist()


def test_a_classifier_that_carries_weights_is_not_held_out():
    network = torch.nn.Linear(3, 1)
    with pytest.raises(SettingError, match="network of your own"):
        anew(Known(network))
    assert anew(MLPClassifier(hidden=(8,))).ready is False


def test_too_few_trials_are_not_held_out():
    with pytest.raises(SettingError, match="5 folds need 10 finished trials, but there are 3"):
        held_out(told(CUBE, 3))


# --- times -----------------------------------------------------------------------------------------------------------


def test_times_are_kept_of_what_ran_and_not_of_what_waited(tmp_path):
    timed = Timed(SerialEvaluator(lambda params: time.sleep(0.05) or params["x"]), tmp_path / "times")
    for row in range(3):
        timed.submit(Trial(row, {"x": 1.0}))
    while timed.outstanding:
        timed.collect()
    lines = [json.loads(line) for line in (tmp_path / "times").read_text().splitlines()]
    assert [line["trial"] for line in lines] == [0, 1, 2]
    assert all(a["ended"] <= b["began"] + 0.001 for a, b in itertools.pairwise(lines))


def test_what_is_withdrawn_or_dropped_has_no_time(tmp_path):
    timed = Timed(SerialEvaluator(abs), tmp_path / "nowhere" / "times")
    for row in range(3):
        timed.submit(Trial(row, {}))
    assert len(timed.withdraw()) == 3
    assert timed.free == timed.workers == 1
    timed.submit(Trial(9, {"x": 1}))
    assert timed.collect()[0].outcome.has_failed  # a file that can't be written does not matter
    timed.close()


@pytest.mark.slow
def test_times_of_workers_overlap(tmp_path):
    study = Study(CUBE)
    evaluator = Timed(ProcessEvaluator(_slow, workers=2), tmp_path / "times")
    study.optimize(evaluator, 4, batch_size=2)
    spans = [json.loads(line) for line in (tmp_path / "times").read_text().splitlines()]
    assert max(a["began"] for a in spans[:2]) < min(a["ended"] for a in spans[:2])


def _slow(params):
    time.sleep(0.3)
    return params["x0"]


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "space", [MIXED, CUBE, SearchSpace({"x": Real(1, 100, log=True)})], ids=["mixed", "cube", "line"]
)
def test_a_report_of_a_study_says_what_its_classifier_has_learned(space):
    study = told(space, [float(k % 7) if k % 5 else NAN for k in range(24)])
    page = pictures.report(study, title="mine", facts={"when": "today"}, configuration="seed: 0")
    for said in (
        "<h1>mine</h1>",
        "today",
        "seed: 0",
        "Slices: predicted value",
        "Predictions of unseen trials",
        "Failures",
    ):
        assert said in page
    assert ("Importance" in page) == ("Pairs: predicted value" in page) == (len(space) > 1)
    assert len(page) < 2_300_000


def test_a_study_and_its_journal_have_one_record(tmp_path):
    from deepbore.data.replay import read_record

    study = told(MIXED, [1.0, NAN, 2.0], journal=tmp_path / "run.jsonl")
    assert record_of(study).trials == read_record(tmp_path / "run.jsonl").trials
    assert record_of(study).space == read_record(tmp_path / "run.jsonl").space


def test_what_users_write_is_escaped():
    evil = "<script>alert('x')</script>&"
    space = SearchSpace({evil: Categorical([evil, "b"]), "x": Real(0, 1)})
    page = pictures.report(told(space, [2.0, 1.0, 3.0]), title=evil, facts={evil: evil}, configuration=evil)
    assert "<script>alert" not in page


@pytest.mark.parametrize("values", [[], [NAN, NAN], [1.0], [1.0, 1.0]])
def test_a_report_of_a_run_without_anything_learned_says_so(values):
    page = pictures.report(told(MIXED, values))
    assert "nothing to learn" in page or "nothing to tell apart" in page
    assert "<h2>History</h2>" in page
