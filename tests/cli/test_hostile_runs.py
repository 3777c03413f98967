"""Looking at, and loading, a run from elsewhere: whatever its files hold, nothing runs, hangs or fills the memory."""

import pytest

import hostile


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


def test_no_mutated_run_executes_anything_or_ends_in_an_error_of_python(folder):
    faults, looks = hostile.campaign(folder, seed=0, count=150)
    assert faults == []
    assert looks > 200


@pytest.mark.slow
def test_thousands_of_mutated_runs_execute_nothing(folder):
    faults, looks = hostile.campaign(folder, seed=7, count=10_000, seconds=50)
    assert faults == []
    assert looks > 500


def test_the_watch_sees_what_it_watches_for(folder, tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text(hostile.CANARY.format(path=str(tmp_path / "PWNED")))
    monkeypatch.syspath_prepend(tmp_path)

    def door(run):
        import evil

        evil.f()
        raise KeyError("raw")

    heard = hostile.Heard()
    assert "KeyError" in hostile.look(door, tmp_path, hostile.WATCH, heard)
    seen = " ".join(hostile.WATCH.seen)
    assert "imports evil" in seen
    assert "writes" in seen
    assert "raw" in hostile.look(lambda run: print("\x1b[2J"), tmp_path, hostile.WATCH, heard)
