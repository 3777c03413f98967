"""Defects that reading and attacking the code has found, each with what it promised."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import deepbore as db
from deepbore.acquisition import LogExpectedImprovement
from deepbore.candidates import Search
from deepbore.classifiers.papers import logistic
from deepbore.errors import PointError
from deepbore.testing import TOY_SPACES, fit, toy_data

SQUARE = db.SearchSpace({"x": db.Real(0, 1), "y": db.Real(0, 1)})
BELOW_A_REAL = db.SearchSpace({"a": db.Real(0, 100), "b": db.Real(0, 1, when=db.Condition("a", "> 50"))})


def told(study, n, value=lambda params: (params["x"] - 0.3) ** 2 + params["y"]):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, value(trial.params))
    return study


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_earlier_results_keep_what_hangs_on_a_real_parameter():
    study = db.Study(BELOW_A_REAL)
    study.add({"a": [60.0, 40.0], "b": [0.7, 0.7]}, [1.0, 2.0])
    assert [trial.params for trial in study.trials] == [{"a": 60.0, "b": 0.7}, {"a": 40.0}]


@pytest.mark.parametrize("space", [*TOY_SPACES.values(), BELOW_A_REAL])
def test_columns_come_back_as_the_points_that_they_were(space):
    points = space.sobol(50, seed=0)
    torch.testing.assert_close(space.encode_columns(space.decode_columns(points)), points)


@pytest.mark.parametrize("kind", [db.Categorical, db.Ordinal])
def test_a_frame_may_have_nan_for_the_choice_none(kind):
    pandas = pytest.importorskip("pandas")
    space = db.SearchSpace({"k": kind([1, None, 3]), "x": db.Real(0, 1)})
    study = db.Study(space)
    study.add(pandas.DataFrame({"k": [1, None], "x": [0.1, 0.2]}), [1, 2])
    assert [trial.params["k"] for trial in study.trials] == [1, None]
    frame = study.to_frame()
    again = db.Study(space)
    again.add(frame[["k", "x"]], frame["value"])
    assert [trial.params for trial in again.trials] == [trial.params for trial in study.trials]
    with pytest.raises(PointError, match="nan"):
        db.Study(db.SearchSpace({"k": kind([1, 3])})).add({"k": [float("nan")]}, [1.0])


# --- searches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [db.GreedyBatch, db.ThompsonBatch, db.Ambitious], ids=lambda base: base.__name__)
@pytest.mark.parametrize("name", ["mixed", "finite"])
def test_a_relaxed_search_goes_with_any_search_of_the_box(base, name):
    spaces = {
        "mixed": db.SearchSpace({"x": db.Real(0, 1), "c": db.Categorical(["a", "b", "c"])}),
        "finite": db.SearchSpace({"k": db.Ordinal([0, 1, 2, 3]), "l": db.Ordinal([0, 1, 2, 3, 4])}),
    }
    head = db.Relaxed(db.DeepEnsemble(members=2, training=db.Training(steps=5)))
    study = db.Study(spaces[name], n_initial=4, classifier=head, candidates=db.RelaxedSearch(base()))
    told(study, 5, lambda params: float(len(str(params))))
    asked = [trial.params for trial in study.ask(3)]
    seen = [trial.params for trial in study.trials[:5]]
    assert all(asked.count(params) == 1 and params not in seen for params in asked)


@pytest.mark.parametrize("search", [db.MultiStartLBFGS, db.BoTorchBatch], ids=lambda search: search.__name__)
def test_botorch_climbs_what_an_ambitious_search_asks_for(search):
    study = db.Study(SQUARE, seed=0)
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(0, 0.4, 5), np.linspace(0, 1, 5)))
    study.add({"x": x, "y": y}, 1 + 0.01 * (y - 0.3) ** 2 - 0.01 * x)
    head = study.fit()
    stream = torch.Generator().manual_seed(0)
    usual = Search(LogExpectedImprovement(), head, study.observations, stream)
    ambitious = replace(usual, ambition=0.5)
    proposed = search().propose(usual, 1)
    bold = db.Ambitious(search(), share=1.0, margin=0.5).propose(usual, 1)
    assert ambitious.values(bold) > ambitious.values(proposed) + 0.1
    assert usual.values(bold) < usual.values(proposed) - 0.1


# --- heads -----------------------------------------------------------------------------------------------------------

NETWORKS = (db.MLPClassifier, db.DeepEnsemble, db.HyperDeepEnsemble, db.MCDropout, db.LaplaceGGN)


@pytest.mark.parametrize("head", NETWORKS, ids=lambda head: head.__name__)
def test_a_study_with_a_network_goes_through_pickle(head):
    study = told(db.Study(SQUARE, seed=0, n_initial=3, classifier=head(training=db.Training(steps=5))), 5)
    again = pickle.loads(pickle.dumps(study))
    assert again.ask()[0].params == study.ask()[0].params


class WithASpareLayer(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.used, self.spare = nn.Linear(features, outputs), nn.Linear(features, 7)

    def forward(self, x):
        return self.used(x)


def test_a_network_may_have_parameters_that_its_output_does_not_hang_on():
    head = db.MLPClassifier(network=WithASpareLayer, training=db.Training(steps=3))
    assert fit(head, toy_data(SQUARE)).ready


def test_a_network_of_the_users_own_leaves_every_global_stream_alone(monkeypatch):
    reseeded = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", reseeded.append)
    before = torch.get_rng_state()
    head = db.MLPClassifier(network=WithASpareLayer)
    head.generator = torch.Generator().manual_seed(0)
    head.bind(SQUARE)
    assert torch.equal(torch.get_rng_state(), before)
    assert not reseeded


@pytest.mark.slow
def test_pending_trials_do_not_weaken_the_prior_of_a_laplace_network():
    head = db.LaplaceGGN(training=db.Training(steps=2), prior_precision=1.0)
    study = told(db.Study(SQUARE, seed=0, n_initial=4, classifier=head), 10)
    for q in (1, 60, 1):
        study.ask(q)
        assert head.configure_optimizers().param_groups[0]["weight_decay"] == pytest.approx(0.1)


@pytest.mark.slow
def test_members_are_chosen_by_the_rows_of_this_run():
    def foretold(begin):
        head = db.HyperDeepEnsemble(training=db.Training(steps=2))
        told(begin(db.Study(SQUARE, seed=0, n_initial=4, classifier=head)), 12)
        return len(head.foretold.unique(dim=1)[0])  # before they are foretold all are alike

    assert foretold(with_a_task) == foretold(lambda study: study) == 8


def test_members_are_chosen_by_rows_that_were_told():
    head = db.HyperDeepEnsemble(training=db.Training(steps=2))
    study = told(db.Study(SQUARE, seed=0, n_initial=4, classifier=head), 10)
    study.ask(70)
    chosen = head.chosen.clone()
    study.ask()  # of none of the last rows anybody knows who was right
    assert torch.equal(head.chosen, chosen)


@pytest.mark.slow
def test_a_fourier_head_at_the_end_of_its_length_scales_stops_climbing(monkeypatch):
    tries = []
    original = logistic.maximise_bound
    monkeypatch.setattr(logistic, "maximise_bound", lambda *given: tries.append(1) or original(*given))
    study = told(db.Study(SQUARE, seed=0, n_initial=10, classifier=db.FourierLogistic()), 10, lambda p: p["x"] + p["y"])
    most = 0
    for _ in range(6):
        tries.clear()
        told(study, 1, lambda p: p["x"] + p["y"])
        most = max(most, len(tries))
    assert most <= 25


# --- earlier tasks ---------------------------------------------------------------------------------------------------


def with_a_task(study, rows=8):
    x = np.linspace(0, 1, rows)
    study.add({"x": x, "y": x[::-1]}, (x - 0.3) ** 2, task="before")
    return study


@pytest.mark.slow
def test_labels_that_remember_go_on_beside_an_earlier_task(tmp_path):
    def new(**journal):
        labels = db.EmphasiseChanges(db.ValueGradedLabels())
        return db.Study(SQUARE, seed=0, n_initial=4, labels=labels, **journal)

    path = tmp_path / "run.jsonl"
    study = told(with_a_task(new(journal=path)), 12)
    study.close()
    assert told(db.Study.load(path), 2).trials[-1].params == told(with_a_task(new()), 14).trials[-1].params


@pytest.mark.slow
def test_a_deep_copy_has_earlier_tasks_of_its_own():
    study = told(db.Study(SQUARE, seed=0, n_initial=2), 5)
    one, other = copy.deepcopy(study), copy.deepcopy(study)
    pickled = with_a_task(pickle.loads(pickle.dumps(study)))
    untouched = pickle.loads(pickle.dumps(study))
    assert with_a_task(one).ask()[0].params == pickled.ask()[0].params
    with_a_task(study)
    assert other.ask()[0].params == untouched.ask()[0].params
