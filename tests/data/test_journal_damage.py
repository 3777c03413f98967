"""The journal as vandals meet it: torn and hostile lines, flipped bits, lines that are lost or moved."""

import json
import logging
import random
import shutil
import zlib

import pytest
import torch

from deepbore import Outcome, Study
from deepbore.data import imported
from deepbore.data.journal import Journal
from deepbore.data.replay import replay
from deepbore.errors import JournalError
from kept_observations import KEPT, SPACE, begun, known, loaded
from plane import DESIGN, LINE, PLANE


def written(path, trials=6):
    """A journal with every kind of event."""
    study = Study(SPACE, seed=0, journal=path)
    study.add({"x": [0.5, 0.2], "c": ["a", "b"], "k": [None, 3]}, [1.0, float("nan")])
    study.enqueue({"x": 0.3, "c": "a"})
    for trial in study.ask(trials):
        study.tell(trial, float("nan") if trial.id % 3 == 0 else float(trial.id))
    study.close()
    return study


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


@pytest.mark.parametrize("tries", [300, pytest.param(30_000, marks=pytest.mark.slow)])
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


def small(path):
    """A journal with a line of each kind, and what it says."""
    observations = begun(path, space=LINE)
    observations.reserve(LINE.encode([{"x": 0.5}, {"x": 0.2}]))
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


# regression: the message named no way out
def test_what_stands_before_a_damaged_line_is_a_run(tmp_path):
    path = tmp_path / "run.jsonl"
    small(path)
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:3], b"damage" + whole[3], *whole[4:]]))
    with pytest.raises(JournalError, match=r"line 4 of .* is damaged.* head -n 3\."):
        replay(Journal(path))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
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
            with pytest.raises(JournalError, match="first line is missing"):
                replay(Journal(path))
            continue
        assert len(list(Journal(path).read())) == content[:cut].count(b"\n")
        assert ("is torn" in caplog.text) == (content[cut - 1 : cut] != b"\n")


def test_rows_that_were_added_at_once_are_there_whole_or_not_at_all(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(imported, "BLOCK", 2)
    path = tmp_path / "run.jsonl"
    observations = begun(path)
    observations.add({"x": [0.9], "c": ["a"], "k": [None]}, [0.0])
    before, one = path.read_bytes(), known(observations)
    observations.add(SPACE.points.decode_columns(SPACE.points.sample(7, torch.Generator())), list(range(7)))
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


# regression: a flipped bit loads other data
def test_a8_no_flipped_bit_in_notes_and_failures_loads_other_data(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(PLANE, journal=path, n_initial=DESIGN)
    one, other = study.ask(2)
    study.annotate(one, {"host": "node7"})
    study.tell(other, Outcome.failure("diverged"))
    study.close()
    whole = path.read_bytes()
    for at in range(0, 8 * len(whole), 61):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(JournalError):
            Study.load(path)
