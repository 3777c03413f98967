"""A run goes on as if nothing had happened: its snapshot, its queue, and what was lost with a process."""

import hashlib
import json
import logging
import pickle
import resource
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import torch

import cases
from deepbore import (
    DeepEnsemble,
    ExpectedImprovementBelow,
    KernelPLS,
    MLPClassifier,
    Real,
    SearchSpace,
    Study,
    Training,
    minimize,
)
from deepbore.compute.devices import stream_seed
from deepbore.data.observations import Status
from deepbore.errors import JournalError, PointError
from deepbore.loop.engine import Engine
from deepbore.loop.state import MAGIC
from deepbore.study.study import reseed
from deepbore.testing import TOY_SPACES
from objectives import bowl
from plane import DESIGN, LINE, PLANE, SQUARE

HALF_LOG = SearchSpace({"x": Real(-1, 1), "y": Real(1e-3, 1, log=True)})


def basin(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.2) ** 2


def go_on(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, basin(trial.params))


def test_a_snapshot_belongs_to_its_journal_alone(tmp_path, caplog):
    for name in ("exp.0", "exp.1"):
        study = Study(HALF_LOG, n_initial=4, seed=5, journal=tmp_path / name)
        go_on(study, 7)
        study.close()
    assert {path.name for path in tmp_path.glob("*.ckpt")} == {"exp.0.ckpt", "exp.1.ckpt"}
    (tmp_path / "exp.0.ckpt").replace(tmp_path / "exp.1.ckpt")
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(Study.load(tmp_path / "exp.1"), 1)
    assert "it is of another run" in caplog.text


@pytest.mark.parametrize("kept", [0, 3, 100])
def test_a_snapshot_that_was_cut_off_is_made_anew(tmp_path, caplog, kept):
    go_on(study := Study(HALF_LOG, n_initial=4, journal=tmp_path / "run.jsonl"), 6)
    study.close()
    snapshot = tmp_path / "run.jsonl.ckpt"
    snapshot.write_bytes(snapshot.read_bytes()[:kept])
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(Study.load(tmp_path / "run.jsonl"), 1)
    assert "it is damaged" in caplog.text
    assert snapshot.stat().st_size > 1000


def test_a_users_own_file_is_not_overwritten(tmp_path):
    (tmp_path / "model.jsonl.ckpt").write_bytes(b"weights of a week")
    study = Study(HALF_LOG, n_initial=4, journal=tmp_path / "model.jsonl")
    with pytest.raises(JournalError, match="not a snapshot of deepbore"):
        study.ask()
    assert (tmp_path / "model.jsonl.ckpt").read_bytes() == b"weights of a week"


def events(journal):
    """All events but the first, which has the run's own id, and without the checksums, which depend on it."""
    lines = journal.read_text().splitlines()[1:]
    return [json.loads(line, parse_constant=pytest.fail) | {"crc": None} for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["KernelPLS", "RandomForest"])
def test_a_loaded_study_goes_on_bit_for_bit(tmp_path, name):
    make = cases.CLASSIFIERS[name]
    whole, part = (
        Study(HALF_LOG, seed=3, classifier=make(), n_initial=6, journal=tmp_path / f"{k}.jsonl") for k in "ab"
    )
    go_on(whole, 30)
    go_on(part, 15)
    part.close()
    loaded = Study.load(tmp_path / "b.jsonl", classifier=make(), n_initial=6)
    go_on(loaded, 15)
    assert torch.equal(loaded.observations.points, whole.observations.points)
    assert events(tmp_path / "a.jsonl") == events(tmp_path / "b.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("name", cases.CLASSIFIERS)
def test_every_classifier_goes_on_bit_for_bit_at_any_moment(tmp_path, name):
    make, space = cases.CLASSIFIERS[name], TOY_SPACES["mixed"]
    whole = Study(space, seed=1, classifier=make(), n_initial=4)
    part = Study(space, seed=1, classifier=make(), n_initial=4, journal=tmp_path / "run.jsonl")
    for k in range(14):
        for study in (whole, part):
            (trial,) = study.ask()
            study.tell(trial, len(str(trial.params)) + trial.params["lr"])
        if k in (2, 6, 9):
            part.close()
            part = Study.load(tmp_path / "run.jsonl", classifier=make(), n_initial=4)
    assert torch.equal(part.observations.points, whole.observations.points)


def test_what_was_chosen_but_not_journaled_is_asked_next(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(HALF_LOG, seed=0, n_initial=4, journal=path)
    go_on(study, 6)
    asked = study.ask(3)
    study.close()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-2]))  # the process died when the first of three was written
    loaded = Study.load(path, n_initial=4)
    assert [trial.status for trial in loaded.trials][-1] is Status.PENDING
    assert loaded.ask(2) == asked[1:]
    assert path.read_text() == "".join(lines)


@pytest.mark.parametrize("damage", ["missing", "torn", "older", "foreign", "hostile"])
def test_without_its_snapshot_a_study_learns_anew_and_says_so(tmp_path, caplog, damage):
    path, snapshot = tmp_path / "run.jsonl", tmp_path / "run.jsonl.ckpt"
    study = Study(HALF_LOG, seed=0, n_initial=4, journal=path)
    go_on(study, 8)
    older = snapshot.read_bytes()
    go_on(study, 3)
    study.close()
    if damage == "missing":
        snapshot.unlink()
    elif damage == "hostile":
        payload = pickle.dumps(Path("x"))  # an object that is no tensor, well wrapped
        snapshot.write_bytes(MAGIC + hashlib.sha256(payload).digest() + payload)
    elif damage != "foreign":
        snapshot.write_bytes(older if damage == "older" else snapshot.read_bytes()[:500])
    other = cases.CLASSIFIERS["MLPClassifier"]() if damage == "foreign" else None
    loaded = Study.load(path, n_initial=4, classifier=other)
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        go_on(loaded, 3)
    said = [record.message for record in caplog.records if "trained from scratch" in record.message]
    assert len(said) == 1
    assert len({str(trial.params) for trial in loaded.trials}) == len(loaded.trials) == 14
    assert loaded.best_trial.value < 0.05


def test_a_snapshot_is_written_whole_or_not_at_all_and_its_lack_ends_no_run(tmp_path, caplog):
    path, snapshot = tmp_path / "run.jsonl", tmp_path / "run.jsonl.ckpt"
    study = Study(HALF_LOG, seed=0, n_initial=4, journal=path)
    go_on(study, 7)
    kept, (soft, hard) = snapshot.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    (tmp_path / "run.jsonl.ckpt.part").write_text("somebody's own")
    beside = sorted(tmp_path.iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) // 2, hard))  # as of a disk that is full
    try:
        go_on(study, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert snapshot.read_bytes() == kept
    assert sorted(tmp_path.iterdir()) == beside
    assert (tmp_path / "run.jsonl.ckpt.part").read_text() == "somebody's own"
    assert caplog.text.count("could not be written") == 1
    go_on(study, 1)  # with room on the disk there is one again
    study.close()
    caplog.clear()
    Study.load(path, n_initial=4).ask()
    assert "trained from scratch" not in caplog.text


@pytest.mark.parametrize("seconds", [0.3, 60.0])
def test_a_snapshot_that_another_program_holds_open_ends_no_run(tmp_path, monkeypatch, caplog, seconds):
    study = Study(HALF_LOG, seed=0, n_initial=4, journal=tmp_path / "run.jsonl")
    go_on(study, 5)
    own, held_until = Path.replace, time.monotonic() + seconds

    def replace(path, target):  # as Windows does
        if str(target).endswith(".ckpt") and time.monotonic() < held_until:
            raise PermissionError(13, "[WinError 32] in use by another process", str(target))
        return own(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    go_on(study, 3)
    assert caplog.text.count("could not be written") == (seconds > 1)  # said once
    assert len(study.trials) == 8
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
    monkeypatch.undo()
    go_on(study, 1)
    caplog.clear()
    study.close()
    go_on(Study.load(tmp_path / "run.jsonl"), 1)
    assert "trained from scratch" not in caplog.text


@pytest.mark.parametrize("place", ["folder", "file"])
def test_what_stands_in_the_place_of_a_snapshot_later_is_kept_and_ends_no_run(tmp_path, caplog, place):
    study = Study(HALF_LOG, seed=0, n_initial=4, journal=tmp_path / "run.jsonl")
    go_on(study, 5)
    snapshot = tmp_path / "run.jsonl.ckpt"
    snapshot.unlink()
    if place == "folder":
        (snapshot / "inside").mkdir(parents=True)
    else:
        snapshot.write_bytes(b"weights of a week")
    go_on(study, 3)
    assert len(study.trials) == 8
    assert caplog.text.count("could not be written") == 1
    assert (snapshot / "inside").is_dir() if place == "folder" else snapshot.read_bytes() == b"weights of a week"


def test_the_snapshot_stays_small(tmp_path):
    n = 100_000
    rng = np.random.default_rng(0)
    study = Study(HALF_LOG, journal=tmp_path / "run.jsonl")
    study.observations.journal, journal = None, study.observations.journal
    study.add({"x": rng.random(n), "y": rng.random(n).clip(0.01)}, rng.random(n))
    study.observations.journal = journal
    study.ask()
    assert (tmp_path / "run.jsonl.ckpt").stat().st_size < 100_000


def test_enqueued_configurations_are_asked_first_and_survive(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(HALF_LOG, seed=0, journal=path)
    for x in (0.25, 0.5, 0.75):
        study.enqueue({"x": x, "y": 0.1})
    with pytest.raises(PointError):
        study.enqueue({"x": 7, "y": 0.1})
    assert study.ask()[0].params == {"x": 0.25, "y": 0.1}
    study.close()
    loaded = Study.load(path)
    assert [trial.params["x"] for trial in loaded.ask(3)][:2] == [0.5, 0.75]
    assert len(loaded.trials) == 4
    loaded.enqueue({"x": -0.5, "y": 0.1})
    assert loaded.optimize(basin, 2).study.trials[4].params["x"] == -0.5


def test_what_is_enqueued_several_times_is_tried_as_often_after_an_end_at_any_moment(tmp_path):
    study = Study(HALF_LOG, seed=0, journal=tmp_path / "run.jsonl")
    twice, once = {"x": 0.25, "y": 0.5}, {"x": 0.5, "y": 0.5}
    for params in (twice, twice, once):
        study.enqueue(params)
    study.ask()
    study.close()
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))  # it died before the journal had it
    loaded = Study.load(path)
    assert [trial.params for trial in loaded.ask(3)] == [twice, twice, once]


def test_what_a_loaded_study_has_left_pending_is_evaluated_first(tmp_path):
    study = Study(HALF_LOG, seed=0, n_initial=4, journal=tmp_path / "run.jsonl")
    first, second, third = study.ask(3)
    study.close()
    loaded = Study.load(tmp_path / "run.jsonl", n_initial=4)
    loaded.tell(second.id, 0.5)  # by the user, before
    seen = []
    loaded.optimize(lambda params: seen.append(params) or basin(params), 2)
    assert seen[:2] == [first.params, third.params]
    assert len(loaded.trials) == loaded.observations.ledger.statistics.n_complete == 5
    assert loaded.trials[second.id].value == 0.5


def value(params):
    return (params["x"] - 0.3) ** 2 + params["y"]


# regression: each of these was wrong once
@pytest.mark.slow
def test_a_loop_of_ones_own_goes_on_with_what_it_was_at(tmp_path):
    def loop():
        study = Study(SQUARE, seed=0, journal=tmp_path / "mine.jsonl", if_exists="load")
        while len(study.trials) < 15 or study.pending:
            (trial,) = study.pending or study.ask()
            if trial.id in (5, 8) and trial.id not in interrupted:
                interrupted.append(trial.id)
                study.close()
                raise KeyboardInterrupt
            study.tell(trial, value(trial.params))
        return study

    interrupted = []
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            loop()
    study = loop()
    assert [str(trial.status) for trial in study.trials] == ["complete"] * 15
    undisturbed = minimize(value, SQUARE, 15, seed=0)
    assert [trial.value for trial in study.trials] == undisturbed.values.tolist()


# regression: two journals share a snapshot; a user's file is overwritten
def test_a5_snapshots_are_named_after_the_whole_journal_and_foreign_files_stay(tmp_path):
    (tmp_path / "model.ckpt").write_bytes(b"mine")
    for name in ("exp.0", "exp.1", "model.jsonl"):
        minimize(bowl, PLANE, 2, journal=tmp_path / name, n_initial=DESIGN)
    assert (tmp_path / "model.ckpt").read_bytes() == b"mine"
    assert (tmp_path / "exp.0.ckpt").read_bytes() != (tmp_path / "exp.1.ckpt").read_bytes()
    assert not (tmp_path / "exp.ckpt").exists()


LOWEST = 0.3


def valley(params):
    return (params["x"] - LOWEST) ** 2


def banana(params):
    return (params["y"] - params["x"] ** 2) ** 2 / 10 + (params["x"] - LOWEST) ** 2


def proposed(study):
    return [trial.params for trial in study.trials]


class Killed(BaseException):
    pass


def without_the_last(path, n):
    """A journal as it is if the process dies between the snapshot of n trials and their lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    assert all(b'"asked"' in line for line in lines[-n:])
    path.write_bytes(b"".join(lines[:-n]))


def test_an_enqueued_configuration_of_many_digits_is_asked_once(tmp_path):
    with closing(Study(LINE, seed=0, journal=tmp_path / "run.jsonl")) as study:
        study.enqueue({"x": 1 / 3})
        study.ask()
    without_the_last(tmp_path / "run.jsonl", 1)
    first, second = Study.load(tmp_path / "run.jsonl").ask(2)
    assert first.params["x"] == pytest.approx(1 / 3)
    assert second.params["x"] != pytest.approx(1 / 3)


def test_proposals_that_a_death_has_lost_wait_however_often_a_run_is_loaded(tmp_path):
    whole, part = (Study(LINE, seed=0, n_initial=3, journal=tmp_path / f"{name}.jsonl") for name in "ab")
    for study in (whole, part):
        for trial in study.ask(3):
            study.tell(trial, valley(trial.params))
        study.ask(3)
        study.close()
    without_the_last(tmp_path / "b.jsonl", 3)
    for _ in range(3):  # one trial a job
        with closing(Study.load(tmp_path / "b.jsonl")) as job:
            (trial,) = job.ask()
            job.tell(trial, valley(trial.params))
    assert proposed(Study.load(tmp_path / "b.jsonl")) == proposed(whole)


@pytest.mark.parametrize("make", [MLPClassifier, KernelPLS])
def test_a_run_that_dies_with_a_queue_goes_on_as_if_it_had_not(tmp_path, make):
    def enqueues(study, trial):
        if trial.id == 6:
            for k in (0.2, 0.5, 0.8):
                study.enqueue({"x": k, "y": k})

    def dies(params):
        if len(study.trials) == 8:  # with one more in the queue
            raise Killed
        return banana(params)

    whole = Study(SQUARE, seed=0, n_initial=4, classifier=make())
    whole.optimize(banana, 13, callbacks=[enqueues])
    study = Study(SQUARE, seed=0, n_initial=4, classifier=make(), journal=tmp_path / "run.jsonl")
    with pytest.raises(Killed):
        study.optimize(dies, 13, callbacks=[enqueues])
    study.close()
    again = Study.load(tmp_path / "run.jsonl", classifier=make(), n_initial=4)
    again.optimize(banana, 13 - len(again.trials), callbacks=[enqueues])
    assert proposed(again) == proposed(whole)


WIDE = SearchSpace({"x": Real(-5, 5), "y": Real(-5, 5)})


def far_bowl(params):
    return (params["x"] - 1) ** 2 + (params["y"] - 2) ** 2


@pytest.mark.slow
def test_a_proposal_that_was_dropped_is_made_again(tmp_path):
    rule, whole = ExpectedImprovementBelow(0.05, proposals=1), Study(WIDE, seed=0)
    whole.optimize(far_bowl, 25)
    kept = Study(WIDE, seed=0, journal=tmp_path / "run.jsonl")
    kept.optimize(far_bowl, 25, stop_when=rule)
    kept.close()
    (found,) = kept.ask()
    assert found.params == whole.trials[found.id].params


@pytest.mark.slow
def test_a_study_goes_on_where_it_was_interrupted_as_one_that_is_loaded(tmp_path, monkeypatch):
    propose, interrupts = Engine.propose, iter([True])

    def interrupted(self, q):
        points = propose(self, q)
        if len(self.state.observations) == 10 and next(interrupts, False):
            raise KeyboardInterrupt
        return points

    def settings():
        return {"seed": 0, "n_initial": 6, "classifier": DeepEnsemble(training=Training(steps=5))}

    whole = Study(WIDE, **settings())
    whole.optimize(far_bowl, 14)
    study = Study(WIDE, **settings())
    monkeypatch.setattr(Engine, "propose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(far_bowl, 14)
    study.optimize(far_bowl, 14 - len(study.trials))
    assert [trial.params for trial in study.trials] == [trial.params for trial in whole.trials]


def test_a_stream_that_was_begun_anew_goes_on_after_loading(tmp_path):
    ahead = {}
    for name in ("live", "loaded"):
        study = Study(LINE, seed=0, journal=tmp_path / f"{name}.jsonl")
        reseed(study, 7)
        for trial in study.ask(2):
            study.tell(trial, 0.0)
        if name == "loaded":
            study.close()
            study = Study.load(tmp_path / "loaded.jsonl")
        ahead[name] = [trial.params for trial in study.ask(2)]
    assert ahead["live"] == ahead["loaded"]
    assert study.state.seed == 7


def told(path, n=12):
    study = Study(LINE, seed=0, journal=path)
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2)
    return study


@pytest.mark.slow
def test_a_first_ask_that_is_interrupted_leaves_queue_and_snapshot_to_the_next(tmp_path, monkeypatch):
    for name in ("one", "other"):
        study = told(tmp_path / name)
        study.enqueue({"x": 0.123})
        study.close()
    one, other = (Study.load(tmp_path / name) for name in ("one", "other"))
    with monkeypatch.context() as patch:
        patch.setattr(torch, "load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.ask()
    proposals = [[study.ask()[0].params for _ in range(3)] for study in (one, other)]
    assert proposals[0] == proposals[1]
    assert proposals[0][0] == {"x": 0.123}


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_a_snapshot_that_can_not_be_read_is_said(tmp_path, caplog):
    told(tmp_path / "run").close()
    (tmp_path / "run.ckpt").unlink()
    (tmp_path / "run.ckpt").mkdir()
    Study.load(tmp_path / "run").ask()  # nor written
    assert "can't be used: it can't be read" in caplog.text
    assert "could not be written" in caplog.text


def test_a_state_with_the_keys_of_version_0_2_loads():
    state = Study(SearchSpace({"x": Real(0, 1)}))._state
    former = {"rehearsals": 3, "promised": [(0, 3.0)], "disappointed": {"rule": 2}}
    state.load_state_dict({"queue": [], "generator": state.generator.get_state(), **former})
    assert (state.warmup_epochs, state.pending_promotions, state.low_gain_streaks) == (3, [(0, 3.0)], {"rule": 2})


# regression: of a seed torch's generators take 32 bits, so that others gave the same run
@pytest.mark.parametrize(
    ("one", "other"), [(5, 5 + 2**32), (0, 2**62), (-1, 2**32 - 1), (0, -(2**63)), (1, 1 + 2**33), (2**32, 2**33)]
)
def test_all_bits_of_a_seed_count(one, other):
    def points(seed, strategy=None):
        return [trial.params for trial in Study(SQUARE, seed=seed, strategy=strategy).ask(3)]

    for strategy in (None, "random", "sobol"):
        assert points(one, strategy) != points(other, strategy)
        assert points(other, strategy) == points(other, strategy)
    assert not torch.equal(SQUARE.points.sobol(4, seed=one), SQUARE.points.sobol(4, seed=other))
    study = Study(SQUARE, seed=one, strategy="random")
    reseed(study, other)
    assert [trial.params for trial in study.ask(3)] == points(other, "random")


def test_seeds_of_32_bits_are_as_they_were():
    assert [stream_seed(seed) for seed in (0, 7, 2**32 - 1)] == [0, 7, 2**32 - 1]
    assert len({stream_seed(seed) for seed in [*range(2**40, 2**40 + 1000), *range(-1000, 1000)]}) == 3000
