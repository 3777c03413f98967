"""The journal as other processes, full disks and vandals meet it."""

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace, Study
from deepbore.data import added
from deepbore.data.history import replay
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations
from deepbore.data.outcomes import Outcome
from deepbore.errors import JournalError

ROOT = Path(__file__).parent.parent
KEPT = Path(__file__).parent / "journals"  # written by version 0.1, with what it said of them
SPACE = SearchSpace(
    {"x": Real(0.1, 1, log=True), "c": Categorical(["a", "b"]), "k": Integer(1, 9, when=Condition("c", "b"))}
)


def written(path, trials=6):
    """A journal with every kind of event."""
    study = Study(SPACE, seed=0, journal=path)
    study.add({"x": [0.5, 0.2], "c": ["a", "b"], "k": [None, 3]}, [1.0, float("nan")])
    study.enqueue({"x": 0.3, "c": "a"})
    for trial in study.ask(trials):
        study.tell(trial, float(trial.id), failed=trial.id % 3 == 0)
    study.close()
    return study


def header(space=SPACE, directions=("minimize",)):
    return {"space": space.to_dict(), "directions": list(directions), "seed": 0}


def begun(path, directions=("minimize",), space=SPACE):
    """Observations that a new journal keeps."""
    return Observations(space, directions, Journal.begin(path, header(space, directions)))


def known(observations):
    """All that observations know, as plain data; NaN as text, so that equal is equal."""
    tensors = ("points", "values", "constraints", "budgets", "tasks", "status", "feasible")
    told = {name: str(getattr(observations, name).tolist()) for name in tensors}
    counted = {name: getattr(observations, name) for name in ("n_asked", "n_failed", "n_complete", "n_distinct")}
    trials = [repr(observations.trial(row)) for row in range(len(observations))]
    best = observations.best if observations.k == 1 else None
    return {**told, **counted, "sorted": observations.sorted_values.tolist(), "trials": trials, "best": repr(best)}


def loaded(path):
    """What the journal at a path says."""
    return known(replay(Journal(path)).observations)


def run(code, *args, timeout=120):
    """What a program prints that has this deepbore."""
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)


def test_a_second_writer_is_refused_while_readers_are_welcome(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(SPACE, seed=0, journal=path)
    (trial,) = study.ask()
    other = Study.load(path)
    assert other.trials == study.trials
    with pytest.raises(JournalError, match="another study in this one"):
        other.tell(trial, 1.0)
    code = "import sys; from deepbore.data.journal import Journal; "
    refused = run(code + "Journal(sys.argv[1]).write({'event': 'failed', 'trial': 0})", path)
    assert "JournalError: another process" in refused.stderr
    study.tell(trial, 2.0)
    assert [each.value for each in Study.load(path).trials] == [2.0]
    study.close()
    with pytest.raises(JournalError, match="since it was read"):
        other.ask()
    (again,) = Study.load(path).ask()
    assert again.id == 1


def test_a_dead_writer_leaves_no_lock(tmp_path):
    path = tmp_path / "run.jsonl"
    code = "import os, sys; from deepbore.data.journal import Journal\n"
    assert run(code + "Journal.begin(sys.argv[1], {}); os.kill(os.getpid(), 9)", path).returncode == -9
    Journal(path).write({"event": "failed", "trial": 0})
    assert len(path.read_text().splitlines()) == 2


FULL = """
import resource, signal, sys
from deepbore import Real, SearchSpace, Study
from deepbore.errors import JournalError
path = sys.argv[1]
study = Study(SearchSpace({"x": Real(0, 1)}), journal=path)
study.tell(study.ask()[0], 1.0)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = len(open(path).read()) + 20
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
calls = []
try:
    study.optimize(calls.append, 3)
except JournalError as error:
    print(calls, error)
"""


@pytest.mark.slow
def test_a_full_disk_ends_the_run_before_an_evaluation(tmp_path):
    path = tmp_path / "run.jsonl"
    done = run(FULL, path)
    assert done.stdout.startswith("[] "), done.stderr
    assert "can't be written" in done.stdout
    assert path.read_bytes().endswith(b"\n")
    assert len(Study.load(path).trials) == 1


def test_half_an_event_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    journal = Journal.begin(path, {})
    before = path.read_bytes()

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(JournalError, match=r"Not written: .*told.*0\.25"):
        journal.write({"event": "told", "trial": 0, "value": 0.25})
    assert path.read_bytes() == before


def test_a_torn_line_is_reported(tmp_path, caplog):
    path = tmp_path / "run.jsonl"
    study = written(path)
    with path.open("a") as file:
        file.write('{"event": "as')
    with caplog.at_level(logging.WARNING, logger="deepbore"):
        loaded = Study.load(path)
    assert loaded.trials == study.trials
    assert [record for record in caplog.records if "is torn" in record.message]
    loaded.ask()
    assert all(json.loads(line) for line in path.read_text().splitlines())


HOSTILE = [
    '{"event": "told", "trial": 2, "value": NaN}',
    '{"event": "told", "trial": 2, "value": 1e999}',
    '{"event": "told", "trial": 2, "value": [1, 2]}',
    '{"event": "told", "trial": 2, "value": 1, "constraints": "many"}',
    '{"event": "told", "trial": 0, "value": 1.0}',
    '{"event": "told", "trial": 99, "value": 1.0}',
    '{"event": "asked", "trial": 8, "params": {"x": 7, "c": "a"}}',
    '{"event": "asked", "trial": 8, "params": {"x": 0.5, "c": "a", "k": 2}}',
    '{"event": "asked", "trial": 8, "params": {"x": 0.5, "c": "a"}, "budget": "all"}',
    '{"event": "asked", "trial": 8, "params": null}',
    '{"event": "asked", "trial": 8, "params": {"x": 1' + "0" * 5000 + "}}",
    '{"event": "asked"}',
    '{"event": ["asked"]}',
    '{"event": "added", "params": [1], "value": 1}',
    '{"event": "added", "params": {"x": 0.5, "c": "a"}, "value": {"a": 1}}',
    '{"event": "added", "left": 0, "columns": {"x": [0.5], "c": ["a"], "k": [null]}, "values": [1, 2]}',
    '{"event": "added", "left": 0, "columns": {"x": [0.5], "c": ["a"]}, "values": [1]}',
    '{"event": "added", "left": 0, "columns": [], "values": []}',
    '{"event": "enqueued", "params": {"__class__": "os.system"}}',
    '{"event": "created", "version": 2, "id": "again"}',
    "[" * 100_000,
    "",
]


@pytest.mark.parametrize("line", HOSTILE)
def test_hostile_lines_are_refused_in_old_journals_by_what_they_say(tmp_path, line):
    path = tmp_path / "run.jsonl"
    shutil.copy(KEPT / "conditional.jsonl", path)
    replay(Journal(path))
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(JournalError, match=rf"line .* of {path}|{path} must"):
        replay(Journal(path))


@pytest.mark.parametrize("line", HOSTILE)
def test_hostile_lines_are_refused_by_their_checksum_and_by_what_they_say(tmp_path, line):
    path = tmp_path / "run.jsonl"
    written(path)
    content = path.read_bytes()
    path.write_bytes(content + line.encode() + b"\n")
    with pytest.raises(JournalError, match=rf"line \d+ of {path}"):
        Study.load(path)
    path.write_bytes(content + sealed(line.encode(), content) + b"\n")
    with pytest.raises(JournalError, match=rf"line \d+ of {path}"):
        Study.load(path)


def sealed(body, before):
    """A line with the checksum that the README of the format gives it, after the lines before."""
    crc = int(before[-11:-3], 16)
    return body[:-1] + b', "crc": "%08x"}' % zlib.crc32(body, crc)


def mutated(content, rng):
    """A journal with bytes changed, cut out, doubled, or whole lines and numbers exchanged."""
    content = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(content)), rng.randint(1, 30)
        match rng.randrange(6):
            case 0:
                content[at] = rng.randrange(256)
            case 1:
                del content[at : at + length]
            case 2:
                content[at:at] = content[at : at + length]
            case 3:
                content[at:at] = rng.choice([b"null", b"1e999", b"-1", b"{}", b"[", b"\n", b'"x"', b"\xff", b"9" * 400])
            case 4:
                lines = content.split(b"\n")
                rng.shuffle(lines)
                content = bytearray(b"\n".join(lines))
            case 5:
                content = content[: at + 1]
        content = content or bytearray(b"\n")
    return bytes(content)


@pytest.mark.parametrize("tries", [300, pytest.param(100_000, marks=pytest.mark.slow)])
def test_damage_gives_a_journal_error_or_a_study(tmp_path, tries, caplog):
    path = tmp_path / "run.jsonl"
    written(path)
    whole, rng, refused = path.read_bytes(), random.Random(tries), 0
    caplog.set_level(logging.CRITICAL)
    for _ in range(tries):
        path.write_bytes(mutated(whole, rng))
        try:
            Study.load(path)
        except JournalError:
            refused += 1
    assert tries // 2 < refused < tries


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
    observations.reserve(observations.space.sample(1, torch.Generator().manual_seed(0)))
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
@settings(max_examples=25, deadline=None)
def test_what_is_replayed_is_what_was_known_bit_by_bit(tmp_path_factory, steps):
    path = tmp_path_factory.mktemp("journal") / "run.jsonl"
    observations, generator = begun(path, ("minimize", "maximize")), torch.Generator().manual_seed(len(steps))
    for step in steps:
        match step:
            case "ask", q, budget:
                observations.reserve(SPACE.sample(q, generator), budget)
            case "tell", which, outcome if len(pending := observations.pending_rows):
                observations.tell(int(pending[which % len(pending)]), outcome)
            case "add", rows, task:
                table = np.array(rows)
                columns = SPACE.decode_columns(SPACE.sample(len(rows), generator))
                observations.add(columns, table[:, :2], constraints=table[:, 2:], budgets=len(rows), task=task)
    assert loaded(path) == known(observations)
    assert replay(Journal(path)).observations.values.numpy().tobytes() == observations.values.numpy().tobytes()
    observations.journal.close()


def test_every_type_of_choice_comes_back(tmp_path):
    choices = [1, 1.5, "1", True, None, "", "a\n\u2028\ud800", -0.25, 2**53, "NaN"]
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


# --- damage ----------------------------------------------------------------------------------------------------------


TINY = SearchSpace({"x": Real(0, 1)})


def small(path):
    """A journal with a line of each kind, and what it says."""
    observations = begun(path, space=TINY)
    observations.reserve(TINY.encode([{"x": 0.5}, {"x": 0.2}]))
    observations.tell(0, 0.25)
    observations.tell(1, failed=True)
    observations.add({"x": [0.75]}, [7.0])
    observations.journal.close()
    return known(observations)


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_no_flipped_bit_loads_other_data(tmp_path, caplog, stride):
    path = tmp_path / "run.jsonl"
    told = small(path)
    content = path.read_bytes()
    caplog.set_level(logging.CRITICAL)
    for bit in range(0, 8 * len(content), stride):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(JournalError):
            pytest.fail(f"bit {bit % 8} of byte {bit // 8} is not missed: {loaded(path) == told}")


def test_no_line_is_lost_doubled_or_moved_unnoticed(tmp_path):
    path = tmp_path / "run.jsonl"
    small(path)
    whole = path.read_bytes().splitlines(keepends=True)
    for i in range(len(whole) - 1):
        for changed in (
            whole[:i] + whole[i + 1 :],
            whole[: i + 1] + whole[i:],
            [*whole[:i], whole[i + 1], whole[i], *whole[i + 2 :]],
        ):
            path.write_bytes(b"".join(changed))
            with pytest.raises(JournalError, match=r"lost|must begin"):
                replay(Journal(path))


def test_wherever_the_file_is_cut_the_lines_before_are_there(tmp_path, caplog):
    path = tmp_path / "run.jsonl"
    small(path)
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        caplog.clear()
        if cut < first:
            with pytest.raises(JournalError, match="is empty"):
                replay(Journal(path))
            continue
        assert len(list(Journal(path).read())) == content[:cut].count(b"\n")
        assert ("is torn" in caplog.text) == (content[cut - 1 : cut] != b"\n")


def test_rows_that_were_added_at_once_are_there_whole_or_not_at_all(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(added, "BLOCK", 2)
    path = tmp_path / "run.jsonl"
    observations = begun(path)
    observations.add({"x": [0.9], "c": ["a"], "k": [None]}, [0.0])
    before, one = path.read_bytes(), known(observations)
    observations.add(SPACE.decode_columns(SPACE.sample(7, torch.Generator())), list(range(7)))
    observations.journal.close()
    content = path.read_bytes()
    assert content.count(b"\n") == before.count(b"\n") + 4
    ends = [i + 1 for i in range(len(before), len(content)) if content[i : i + 1] == b"\n"]
    for cut in (*ends[:3], ends[2] + 5):
        path.write_bytes(content[:cut])
        assert loaded(path) == one
        assert "is torn" in caplog.text
    history = replay(Journal(path))
    history.observations.journal = history.journal
    history.observations.add({"x": [0.8], "c": ["a"], "k": [None]}, [1.0])
    assert path.read_bytes().startswith(before)
    assert loaded(path) == known(history.observations)


# --- files that change hands -----------------------------------------------------------------------------------------


def test_a_change_of_directory_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    observations = begun("run.jsonl")
    monkeypatch.chdir("elsewhere")
    observations.reserve(SPACE.sample(1, torch.Generator()))
    assert loaded(tmp_path / "run.jsonl") == known(observations)
    assert not list((tmp_path / "elsewhere").iterdir())


def replace(path):
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("run.jsonl", Path.unlink, "was deleted while it was in use"),
        ("run.jsonl", replace, "was replaced by another file while it was in use"),
        ("run.jsonl", lambda path: path.write_bytes(path.read_bytes() + b"x"), "another has written"),
        ("run.jsonl", lambda path: os.truncate(path, 20), "another has written"),
        ("run.jsonl.lock", Path.unlink, r"the lock .*run.jsonl.lock was deleted or replaced"),
        ("run.jsonl.lock", replace, r"the lock .*run.jsonl.lock was deleted or replaced"),
    ],
)
def test_files_that_are_changed_while_in_use_are_not_written_to(tmp_path, name, change, says):
    observations = begun(tmp_path / "run.jsonl")
    observations.reserve(SPACE.sample(2, torch.Generator()))
    observations.tell(0, 1.0)
    change(tmp_path / name)
    before, content = known(observations), {path: path.read_bytes() for path in tmp_path.iterdir()}
    for act in (
        lambda: observations.tell(1, 2.0),
        lambda: observations.reserve(SPACE.sample(1, torch.Generator())),
        lambda: observations.add({"x": 0.5, "c": "a"}, 1.0),
    ):
        with pytest.raises(JournalError, match=f"{says}.*Nothing was written"):
            act()
    assert known(observations) == before
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == content


def test_journals_whose_names_differ_in_the_last_part_share_nothing(tmp_path):
    one, other = begun(tmp_path / "exp.0"), begun(tmp_path / "exp.1")
    one.reserve(SPACE.sample(1, torch.Generator()))
    other.reserve(SPACE.sample(1, torch.Generator()))
    assert {path.name for path in tmp_path.iterdir()} == {"exp.0", "exp.0.lock", "exp.1", "exp.1.lock"}


@pytest.mark.parametrize("content", [b"my notes\n", b"no end of line", b'{"event": "told"}\n', b"\0" * 99])
def test_files_of_somebody_else_are_not_touched(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    for act in (
        lambda: Journal.begin(path, header()),
        lambda: Journal(path).write({"event": "failed", "trial": 0}),
        lambda: Journal(path).open(),
        lambda: Study(SPACE, journal=path),
        lambda: Study.load(path),
    ):
        with pytest.raises(JournalError, match=r"notes\.txt"):
            act()
    assert path.read_bytes() == content


def test_a_journal_that_was_never_begun_is_not_written(tmp_path):
    with pytest.raises(JournalError, match="can't be read"):
        Journal(tmp_path / "none.jsonl").write({"event": "failed", "trial": 0})
    assert not (tmp_path / "none.jsonl").exists()


def test_an_empty_file_can_be_begun_and_a_failed_beginning_repeated(tmp_path):
    path = tmp_path / "run.jsonl"
    with pytest.raises(JournalError, match="plain JSON data"):
        Journal.begin(path, {"space": {1, 2}})
    assert path.read_bytes() == b""
    assert begun(path).reserve(SPACE.sample(1, torch.Generator())) == [0]


# --- interrupts ------------------------------------------------------------------------------------------------------

COLUMNS = SPACE.decode_columns(SPACE.sample(3, torch.Generator().manual_seed(9)))
ACTS = {
    "reserve": lambda observations: observations.reserve(SPACE.sample(2, torch.Generator().manual_seed(2)), 3),
    "tell": lambda observations: observations.tell(
        0, Outcome(-5, constraints=[1, 2], budget=2, attributes={"a": 1}, reason="b")
    ),
    "fail": lambda observations: observations.tell(0, failed=True, reason="no"),
    "add": lambda observations: observations.add(COLUMNS, [1, -9, None], constraints=[[0, 0]] * 3, budgets=1),
    "add to a task": lambda observations: observations.add(COLUMNS, [1, 3, None], task="old"),
}


def three(path):
    """Observations with some rows, in a journal if there is a path."""
    observations = begun(path) if path else Observations(SPACE)
    observations.reserve(SPACE.sample(3, torch.Generator()))
    observations.tell(1, 0.5)
    return observations


WRITING = tuple(f"deepbore/data/{room}.py" for room in ("observations", "journal", "lines", "buffers", "added"))


def interrupted(act, at):
    """Lets the n-th line of the rooms that take part raise KeyboardInterrupt; whether it came to that."""
    left = at

    def trace(frame, event, arg):
        nonlocal left
        if not frame.f_code.co_filename.endswith(WRITING):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("name", ACTS)
def test_an_interrupt_at_any_line_leaves_both_or_none(tmp_path, name, kept, stride):
    act = ACTS[name]
    untouched = three(None)
    before = known(untouched)
    act(untouched)
    after = known(untouched)
    seen, at = set(), 1 - stride
    while True:
        at += stride
        path = tmp_path / f"{at}.jsonl" if kept else None
        observations = three(path)
        if not interrupted(lambda: act(observations), at):  # noqa: B023  # called at once
            break
        now = known(observations)
        assert now in (before, after), f"line {at} leaves half of it"
        if kept:
            assert loaded(path) == now, f"line {at} leaves the journal at odds with the memory"
        seen.add(now == after)
        if now == before:
            act(observations)
        assert known(observations) == after
        if kept:
            assert loaded(path) == after
            observations.journal.close()
    assert at > 20
    assert stride > 1 or seen == {True, False}


@pytest.mark.parametrize("name", ACTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_real_signal_during_the_fsync_leaves_both_or_none(tmp_path, monkeypatch, name, when):
    observations = three(tmp_path / "run.jsonl")
    before, fsync, act = known(observations), os.fsync, ACTS[name]

    def hit(descriptor):
        if when == "after":
            fsync(descriptor)
        signal.raise_signal(signal.SIGINT)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", hit)
    with pytest.raises(KeyboardInterrupt):
        act(observations)
    monkeypatch.undo()
    assert loaded(tmp_path / "run.jsonl") == known(observations) == before
    act(observations)
    assert loaded(tmp_path / "run.jsonl") == known(observations) != before


def test_an_interrupt_of_the_clearing_up_is_made_up_for(tmp_path, monkeypatch):
    observations = three(tmp_path / "run.jsonl")
    before = known(observations)

    def hit(*args):
        monkeypatch.setattr("deepbore.data.journal._cut", hit)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", hit)
    with pytest.raises(KeyboardInterrupt):
        observations.tell(0, 1.0)
    monkeypatch.undo()
    assert known(observations) == before
    assert b'"trial": 0, "value"' in (tmp_path / "run.jsonl").read_bytes()  # it could not be taken back
    observations.tell(0, 2.0)
    assert observations.trial(0).value == 2.0
    assert loaded(tmp_path / "run.jsonl") == known(observations)


def test_signals_at_any_time_leave_both_or_none(tmp_path):
    path = tmp_path / "run.jsonl"
    observations, generator, rng = begun(path), torch.Generator().manual_seed(0), random.Random(0)
    hits = 0
    for _ in range(150):
        timer = threading.Timer(rng.uniform(0, 0.004), signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()
            for row in observations.reserve(SPACE.sample(2, generator)):
                observations.tell(row, rng.random())
            timer.join()
        except KeyboardInterrupt:
            hits += 1
        timer.join()
    assert hits > 50
    assert loaded(path) == known(observations)


# --- many rows -------------------------------------------------------------------------------------------------------

MANY = """
import resource, sys, time
import numpy as np
import torch
torch.set_num_threads(1)  # threads that wait for each other on a busy machine would count as work
from deepbore import Categorical, Condition, Integer, Real, SearchSpace
from deepbore.data.history import replay
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations
path, n = sys.argv[1], int(sys.argv[2])
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
numbers = {"a": Real(0, 1), "b": Real(1e-5, 1, log=True), "c": Real(-3, 7), "k": Integer(1, 1000)}
space = SearchSpace({**numbers, "o": Categorical(["x", "y"])})
rng = np.random.default_rng(0)
if len(sys.argv) > 3:
    a, b, c, values = rng.random((4, n))
    columns = {"a": a, "b": 10 ** (-5 * b), "c": c, "k": rng.integers(1, 1001, n), "o": ["x", "y"] * (n // 2)}
    header = {"space": space.to_dict(), "directions": ["minimize"], "seed": 0}
    observations = Observations(space, journal=Journal.begin(path, header))
    before, start = used(), time.process_time()
    observations.add(columns, values)
else:
    before, start = used(), time.process_time()
    observations = replay(Journal(path)).observations
print(len(observations), observations.best.id, time.process_time() - start, used() - before)
"""


@pytest.mark.slow
def test_a_million_rows_are_kept_and_read_in_seconds_and_in_little_memory(tmp_path):
    results = [run(MANY, tmp_path / "run.jsonl", 1_000_000, *extra, timeout=600) for extra in (["add"], [])]
    assert not any(result.stderr for result in results), results[0].stderr
    for n, _, seconds, megabytes in (map(float, result.stdout.split()) for result in results):
        assert n == 1_000_000
        assert seconds < 8  # of processor time: other programs of the machine do not count
        assert megabytes < 1000
    assert len({result.stdout.split()[1] for result in results}) == 1
