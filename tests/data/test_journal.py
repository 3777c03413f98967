"""What a journal carries: all that was told, bit by bit, from version 0.1 on, and a million rows."""

import json
import os
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Integer, Ordinal, SearchSpace, Study, minimize
from deepbore.data.journal import Journal
from deepbore.data.outcome import Outcome
from deepbore.data.replay import replay
from deepbore.errors import JournalError, JournalInUse
from kept_observations import KEPT, SPACE, begun, header, known, loaded
from objectives import bowl
from plane import DESIGN, LINE, PLANE
from processes import run

# --- what a journal carries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["conditional", "maximize"])
def test_journals_of_version_0_1_load_and_go_on(tmp_path, name, caplog):
    path = tmp_path / "run.jsonl"
    shutil.copy(KEPT / f"{name}.jsonl", path)
    said = json.loads((KEPT / f"{name}.json").read_text())
    history = replay(Journal(path))
    observations = history.observations
    trials = [observations.trial(row) for row in range(len(observations))]
    assert observations.directions == (said["direction"],)
    assert observations.best.id == said["best"]
    assert [
        {"id": t.id, "params": t.params, "value": t.value, "status": t.status.name.lower()} for t in trials
    ] == said["trials"]
    assert history.header["directions"] == [said["direction"]]
    assert ("is torn" in caplog.text) == (name == "maximize")
    assert [observations.space.decode(point[None])[0] for point in history.queue] == (
        [{"lr": 0.005, "optimizer": None, "beta": 0.9, "layers": 2, "width": 33}] if name == "conditional" else []
    )
    observations.journal = history.journal
    observations.reserve(observations.space.points.sample(1, torch.Generator().manual_seed(0)))
    observations.tell(len(observations) - 1, 0.5)
    observations.add(trials[0].params, 0.25)
    assert loaded(path) == known(observations)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert events[0]["version"] == 1
    assert not any("crc" in event for event in events)


def test_a_journal_says_everything_and_only_what_is_there(tmp_path):
    path = tmp_path / "run.jsonl"
    observations = begun(path, ("minimize", "maximize"))
    points = SPACE.encode([{"x": 0.5, "c": "a"}, {"x": 0.2, "c": "b", "k": 3}, {"x": 0.3, "c": "a"}])
    observations.reserve(points[:2], budget=3)
    observations.reserve(points[2:])
    observations.tell(0, Outcome([1, 2], constraints=[-1.0, 0.5], budget=2.5, attributes={"loss": (1, 2)}))
    observations.tell(1, failed=True, reason="out of memory")
    columns = {"x": [0.5, 0.2], "c": ["a", "b"], "k": [None, 3]}
    observations.add(columns, [[1, 2], [3, None]], constraints=[[0, 0], [1, 1]], budgets=9, task="last year")
    events = [json.loads(line, parse_constant=pytest.fail) for line in path.read_text().splitlines()]
    assert [event.pop("event") for event in events] == ["created", "asked", "asked", "asked", "told", "failed", "added"]
    assert all(len(event.pop("crc")) == 8 for event in events)
    assert len(events[0].pop("id")) == 32
    assert events == [
        {"version": 2, **header(directions=["minimize", "maximize"])},
        {"trial": 0, "params": {"x": 0.5, "c": "a"}, "budget": 3.0},
        {"trial": 1, "params": {"x": 0.2, "c": "b", "k": 3}, "budget": 3.0},
        {"trial": 2, "params": {"x": 0.3, "c": "a"}},
        {"trial": 0, "values": [1.0, 2.0], "constraints": [-1.0, 0.5], "budget": 2.5, "attributes": {"loss": [1, 2]}},
        {"trial": 1, "reason": "out of memory"},
        {
            "left": 0,
            "task": "last year",
            "columns": columns,
            "values": [[1.0, 2.0], [None, None]],
            "constraints": [[0.0, 0.0], [1.0, 1.0]],
            "budgets": [9.0, 9.0],
        },
    ]
    assert loaded(path) == known(observations)


VALUES = st.floats(allow_nan=True) | st.just(0.1)

OUTCOMES = st.builds(
    Outcome,
    st.lists(VALUES, min_size=2, max_size=2),
    constraints=st.lists(VALUES, min_size=1, max_size=1),
    budget=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    reason=st.none() | st.text(),
    attributes=st.dictionaries(st.text(), st.none() | st.floats() | st.text() | st.lists(st.booleans()), max_size=2),
)

ROWS = st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=7)

STEPS = st.lists(
    st.tuples(st.just("ask"), st.integers(1, 3), st.none() | st.floats(0, 1e9))
    | st.tuples(st.just("tell"), st.integers(0, 99), OUTCOMES)
    | st.tuples(st.just("add"), ROWS, st.sampled_from([None, "old", "older"])),
    max_size=12,
)


@given(STEPS)
@settings(max_examples=25)
def test_what_is_replayed_is_what_was_known_bit_by_bit(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("journal") / "run.jsonl"
    observations, generator = begun(path, ("minimize", "maximize")), torch.Generator().manual_seed(len(steps))
    for step in steps:
        match step:
            case "ask", q, budget:
                observations.reserve(SPACE.points.sample(q, generator), budget)
            case "tell", which, outcome if len(pending := observations.columns.pending_rows):
                observations.tell(int(pending[which % len(pending)]), outcome)
            case "add", rows, task:
                table = np.array(rows)
                columns = SPACE.points.decode_columns(SPACE.points.sample(len(rows), generator))
                observations.add(columns, table[:, :2], constraints=table[:, 2:], budgets=len(rows), task=task)
    assert loaded(path) == known(observations)
    assert replay(Journal(path)).observations.values.numpy().tobytes() == observations.values.numpy().tobytes()
    observations.journal.close()


def test_every_type_of_choice_comes_back(tmp_path):
    choices = [1, 1.5, "1", True, None, "", "a\n\u2028", -0.25, 2**53, "NaN"]
    space = SearchSpace({"c": Categorical(choices), "o": Ordinal([0, False, "0"]), "i": Integer(-(2**40), 2**40)})
    observations = begun(tmp_path / "run.jsonl", space=space)
    columns = {"c": choices, "o": [0, False, "0", *[0] * 7], "i": [-(2**40), 2**40, *range(8)]}
    observations.add(columns, list(range(10)))
    for name, choice in enumerate(choices):
        observations.reserve(space.encode([{"c": choice, "o": False, "i": name}]))
    again = replay(Journal(tmp_path / "run.jsonl")).observations
    assert known(again) == known(observations)
    came = [again.trial(row).params["c"] for row in range(20)]
    assert [(type(each), each) for each in came] == [(type(each), each) for each in choices * 2]


# --- many rows -------------------------------------------------------------------------------------------------------

MANY = """
import json, resource, sys, time
import numpy as np
import torch
torch.set_num_threads(1)  # threads that wait for each other on a busy machine would count as work
from deepbore import Categorical, Condition, Integer, Real, SearchSpace
from deepbore.data.replay import replay
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations
path, n = sys.argv[1], int(sys.argv[2])
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
numbers = {"a": Real(0, 1), "b": Real(1e-5, 1, log=True), "c": Real(-3, 7), "k": Integer(1, 1000)}
space = SearchSpace({**numbers, "o": Categorical(["x", "y"])})
rng = np.random.default_rng(0)
a, b, c, values = rng.random((4, n))
columns = {"a": a, "b": 10 ** (-5 * b), "c": c, "k": rng.integers(1, 1001, n), "o": ["x", "y"] * (n // 2)}
before, start = used(), time.process_time()
if len(sys.argv) > 3:
    header = {"space": space.to_dict(), "directions": ["minimize"], "seed": 0}
    observations = Observations(space, journal=Journal.begin(path, header))
    observations.add(columns, values)
else:
    observations = replay(Journal(path)).observations
seconds, megabytes = time.process_time() - start, used() - before
start = time.process_time()
json.loads(json.dumps([list(column) for column in [*columns.values(), values]], default=int))
print(len(observations), observations.best.id, seconds / (time.process_time() - start), megabytes)
"""


@pytest.mark.slow
def test_a_million_rows_are_kept_and_read_about_as_fast_as_json_and_in_little_memory(tmp_path):
    results = [run(MANY, tmp_path / "run.jsonl", 1_000_000, *extra, timeout=600, cold=True) for extra in (["add"], [])]
    assert not any(result.stderr for result in results), results[0].stderr
    for n, _, in_units_of_json, megabytes in (map(float, result.stdout.split()) for result in results):
        assert n == 1_000_000
        assert in_units_of_json < 3  # .9 and .6; a record of each row alone would take four
        assert megabytes < 1000
    assert len({result.stdout.split()[1] for result in results}) == 1


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(JournalError, match=r"a journal is a file, but .* is a directory\. Name a file in it"):
        Study(SPACE, journal=tmp_path)
    assert list(tmp_path.iterdir()) == []


def events(path):
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


# regression: chdir sends events elsewhere
def test_a3_a_change_of_directory_within_the_objective_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def moves(params):
        (tmp_path / "other").mkdir(exist_ok=True)
        os.chdir(tmp_path / "other")
        return bowl(params)

    minimize(moves, PLANE, 3, journal="run.jsonl", n_initial=DESIGN)
    assert events(tmp_path / "run.jsonl") == ["created", *["asked", "told"] * 3]
    assert not list((tmp_path / "other").iterdir())


# regression: an interrupt during the write leaves an event twice
@pytest.mark.parametrize("call", ["ask", "tell", "annotate"])
def test_a4_an_interrupt_during_the_fsync_and_the_call_again_leave_one_event(tmp_path, monkeypatch, call):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, journal=path, n_initial=DESIGN)
    (trial,) = study.ask()
    calls = {
        "ask": study.ask,
        "tell": lambda: study.tell(trial, 1.0),
        "annotate": lambda: study.annotate(trial, {"a": 1}),
    }
    whole, left = os.fsync, [1]

    def interrupted(descriptor):
        if left and os.readlink(f"/proc/self/fd/{descriptor}") == str(path):
            left.pop()
            raise KeyboardInterrupt
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    calls[call]()
    study.close()
    assert not left
    assert Study.load(path).trials == study.trials
    assert events(path)[2:] == [{"ask": "asked", "tell": "told", "annotate": "annotated"}[call]]


# regression: a journal, or its lock, that is deleted or replaced
@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.lock"])
def test_a6_a_deleted_or_replaced_file_is_not_written_to(tmp_path, name):
    study = Study(PLANE, journal=tmp_path / "run.jsonl", n_initial=DESIGN)
    study.ask()
    kept = (tmp_path / name).read_bytes()
    (tmp_path / name).unlink()
    with pytest.raises(JournalError, match="was deleted"):
        study.ask()
    (tmp_path / name).write_bytes(kept)
    with pytest.raises(JournalError, match="replaced"):
        study.ask()
    assert (tmp_path / name).read_bytes() == kept


# regression: retries, exceptions that cannot be shown, huge messages, processes that stay
def test_a15_a_huge_message_does_not_swell_the_journal(tmp_path):
    def raises(params):
        raise ValueError("!" * 5_000_000)

    path = tmp_path / "run.jsonl"
    with pytest.warns(RuntimeWarning, match="failed"):
        minimize(raises, PLANE, 3, journal=path, n_initial=DESIGN, max_failures=None)
    assert path.stat().st_size < 20_000


# regression: a million rows
def test_a20_many_rows_are_few_lines(tmp_path):
    x = np.linspace(-1, 1, 25_000)
    study = Study(PLANE, journal=tmp_path / "run.jsonl")
    study.add({"x": x, "y": x}, x**2)
    assert events(tmp_path / "run.jsonl") == ["created", *["added"] * 3]


# regression: each of these was wrong once
@pytest.mark.parametrize("name", ["a\0b", "a" * 300])
@pytest.mark.parametrize("if_exists", ["error", "load"])
def test_a_path_that_no_file_has_is_refused(tmp_path, name, if_exists):
    with pytest.raises(JournalError, match="Name another file"):
        Study(LINE, journal=tmp_path / name, if_exists=if_exists)


@pytest.mark.parametrize("size", [1, 10, 60])
@pytest.mark.parametrize("if_exists", ["error", "load"])
def test_half_a_first_line_is_no_run(tmp_path, size, if_exists):
    Study(LINE, journal=tmp_path / "whole.jsonl").close()
    (tmp_path / "run.jsonl").write_bytes((tmp_path / "whole.jsonl").read_bytes()[:size])
    with pytest.raises(JournalError, match="first line is missing, or torn"):
        Study.load(tmp_path / "run.jsonl")
    study = Study(LINE, journal=tmp_path / "run.jsonl", if_exists=if_exists)
    study.ask()
    study.close()
    assert len(Study.load(tmp_path / "run.jsonl").trials) == 1


# regression: each name of a file had a lock and a snapshot of its own
def test_a_link_to_a_journal_is_that_journal(tmp_path, caplog):
    path, link = tmp_path / "run.jsonl", tmp_path / "latest.jsonl"
    study = Study(LINE, journal=path)
    study.ask()
    link.symlink_to(path.name)
    with pytest.raises(JournalInUse):
        Study.load(link).ask()
    study.close()
    again = Study.load(link)
    again.ask()
    again.close()
    assert "can't be used" not in caplog.text
    assert sorted(each.name for each in tmp_path.glob("latest*")) == ["latest.jsonl"]
