"""A journal that is being written is read bit by bit, with what `read_record` finds in the end."""

import os

import numpy as np
import pytest

from deepbore import Real, SearchSpace, Study
from deepbore.dashboard.following import Follower, Tail
from deepbore.data.replay import read_record


def whole(path):
    """Reads all that is there."""
    follower = Follower(path)
    while follower.look():
        pass
    return follower


def same(ledger, other):
    assert len(ledger) == len(other)
    for name in ("values", "status", "budgets", "tasks", "constraints"):
        assert np.array_equal(getattr(ledger, name), getattr(other, name), equal_nan=True), name
    assert ledger.trials == other.trials


def test_each_look_takes_in_what_is_new(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(SearchSpace({"x": Real(0, 1)}), seed=0, journal=path)
    study.ask_one()
    follower = whole(path)
    assert len(follower.ledger) == 1
    before = follower.version
    assert not follower.look()
    assert follower.version == before
    for k in range(5):
        study.tell(study.ask_one(), k)
        follower.look()
        assert follower.version > before
        before = follower.version
        same(follower.ledger, read_record(path))
    study.withdraw(1)
    study.add({"x": [0.25, 0.75]}, [1.0, 2.0], task="old")
    follower.look()
    same(follower.ledger, read_record(path))
    study.close()


def test_half_a_line_waits_for_its_rest(tmp_path):
    path, part = tmp_path / "run.jsonl", tmp_path / "part.jsonl"
    study = Study(SearchSpace({"x": Real(0, 1)}), seed=0, journal=path)
    for k in range(3):
        study.tell(study.ask_one(), k)
    study.close()
    content = path.read_bytes()
    follower = Follower(part)
    for end in range(1, len(content) + 1, 7):
        part.write_bytes(content[:end])
        follower.look()
        assert not follower.error
    part.write_bytes(content)
    follower.look()
    same(follower.ledger, read_record(path))


def test_a_block_of_rows_counts_when_all_of_it_is_there(tmp_path):
    path, part = tmp_path / "run.jsonl", tmp_path / "part.jsonl"
    study = Study(SearchSpace({"x": Real(0, 1)}), seed=0, journal=path)
    study.add({"x": np.linspace(0, 1, 100_000).tolist()}, np.linspace(0, 1, 100_000).tolist())
    study.close()
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) > 2, "one line: the block is not split"
    part.write_bytes(b"".join(lines[:-1]))
    follower = whole(part)
    assert len(follower.ledger) == 0
    with part.open("ab") as file:
        file.write(lines[-1])
    follower.look()
    assert len(follower.ledger) == 100_000


def test_lines_that_the_writer_takes_back_are_forgotten(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study(SearchSpace({"x": Real(0, 1)}), seed=0, journal=path)
    for k in range(4):
        study.tell(study.ask_one(), k)
    study.close()
    follower = whole(path)
    lines = path.read_bytes().splitlines(keepends=True)
    os.truncate(path, sum(map(len, lines[:-2])))
    follower.look()
    same(follower.ledger, read_record(path))


def test_another_journal_in_its_place_is_read_anew(tmp_path):
    path = tmp_path / "run.jsonl"
    for n in (3, 5):
        path.unlink(missing_ok=True)
        study = Study(SearchSpace({"x": Real(0, 1)}), seed=n, journal=path)
        for k in range(n):
            study.tell(study.ask_one(), k)
        study.close()
        if n == 3:
            follower = whole(path)
    while follower.look():
        pass
    assert len(follower.ledger) == 5


@pytest.mark.parametrize("n", [1, 4, 9])  # shorter than what was read, as long, and longer
@pytest.mark.parametrize("seen", [True, False])
def test_a_journal_that_was_emptied_and_begun_anew_shows_the_new_content(tmp_path, n, seen):
    path, other = tmp_path / "run.jsonl", tmp_path / "other.jsonl"
    for which, seed, count in ((path, 0, 4), (other, 1, n)):
        with Study(SearchSpace({"x": Real(0, 1)}), seed=seed, journal=which) as study:
            for k in range(count):
                study.tell(study.ask_one(), k + seed)
    follower = whole(path)
    before = follower.version
    os.truncate(path, 0)
    if seen:
        follower.look()
        assert follower.ledger is None
        assert follower.version > before
    with path.open("r+b") as file:
        file.write(other.read_bytes())
    follower.look()
    assert not follower.error
    same(follower.ledger, read_record(other))


@pytest.mark.parametrize("damage", [b"no JSON\n", b'{"event": "told"}\n', b'{"event": "conquered", "trial": 3}\n'])
def test_damage_is_said_and_its_end_noticed(tmp_path, damage):
    path = tmp_path / "run.jsonl"
    study = Study(SearchSpace({"x": Real(0, 1)}), seed=0, journal=path)
    study.tell(study.ask_one(), 1)
    study.close()
    content = path.read_bytes()
    path.write_bytes(content + damage)
    follower = whole(path)
    assert "line 4" in follower.error
    path.write_bytes(content)
    while follower.look():
        pass
    assert not follower.error
    assert len(follower.ledger) == 1


def test_a_link_in_the_place_of_a_journal_is_not_followed(tmp_path):
    secret, link = tmp_path / "secret", tmp_path / "run.jsonl"
    secret.write_text("secret", encoding="utf-8")
    link.symlink_to(secret)
    follower = Follower(link)
    follower.look()
    assert "link" in follower.error
    assert "secret" not in follower.error.replace(str(secret), "")


def test_a_tail_gives_whole_lines_alone(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nthr")
    tail = Tail(path)
    assert tail.lines() == [b"one\n", b"two\n"]
    assert tail.lines() == []
    with path.open("ab") as file:
        file.write(b"ee\n")
    assert tail.lines() == [b"three\n"]
    assert not tail.is_replaced
