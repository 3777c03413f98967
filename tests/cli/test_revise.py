"""`deepbore withdraw` and `deepbore correct`: what they write, show and refuse."""

import fcntl
import json
import subprocess
import sys

import pytest

from deepbore.cli.main import main
from deepbore.data.replay import read_record
from deepbore.data.trial import Status
from written_runs import write_run


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of four trials, the second failed and the last pending."""
    monkeypatch.chdir(tmp_path)
    return write_run(tmp_path / "runs" / "mine", [3.0, None, -1e6, "pending"])


def shown(capsys, *args, status=0):
    """What a command prints; its errors, if these are expected."""
    assert main([str(arg) for arg in args]) == status
    printed = capsys.readouterr()
    return printed.err if status else printed.out


def test_a_trial_is_withdrawn(run, capsys):
    assert "best value -1000000 in trial 2" in shown(capsys, "best", run)
    said = shown(capsys, "withdraw", run, 2, 3, "--reason", "it had diverged")
    assert said.startswith("withdrawn: 2, 3\nbest value 3 in trial 0 (4 trials, 1 failed, 2 withdrawn)")
    record = read_record(run / "journal.jsonl")
    assert [trial.status for trial in record.trials[2:]] == [Status.WITHDRAWN] * 2
    assert [trial.reason for trial in record.trials[2:]] == ["it had diverged"] * 2
    head, _ = shown(capsys, "list", "runs").splitlines()
    assert head.split()[:5] == ["run", "trials", "failed", "withdrawn", "best"]


def test_an_outcome_is_corrected(run, capsys):
    said = shown(capsys, "correct", run, 2, "-1e-3", "--noise", "0.5")
    assert said.startswith("corrected: trial 2, which was -1000000\nbest value -0.001 in trial 2")
    assert "corrected: trial 1, which was failed" in shown(capsys, "correct", run, 1, "7")
    shown(capsys, "correct", run, 0, "--failed")
    shown(capsys, "correct", run, 2, "nan")
    assert "best value 7 in trial 1" in shown(capsys, "best", run)


def test_a_page_shows_both_values_and_strikes_out_what_was_withdrawn(run, capsys):
    shown(capsys, "withdraw", run, 2, "--reason", "<b>diverged</b>")
    shown(capsys, "correct", run, 0, 4)
    shown(capsys, "report", run, "--quick")
    page = (run / "report.html").read_text()
    table = json.loads(page.split('<script id="data" type="application/json">')[1].split("</script>")[0])["table"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    assert (rows[0]["value"], rows[0]["former value"]) == (4.0, 3.0)
    assert (rows[2]["value"], rows[2]["former value"], rows[2]["status"]) == (None, -1e6, "withdrawn")
    assert rows[2]["withdrawn because"] == "<b>diverged</b>"
    assert "<b>diverged</b>" not in page
    assert "tr.withdrawn" in page
    assert "Withdrawn trials are struck out" in page
    assert "<b>withdrawn</b><span>1</span>" in page


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["withdraw", "runs/mine", "9"], "trials 0 ... 3 exist, but got 9"),
        (["withdraw", "runs/mine", "1", "1"], "a trial is withdrawn once"),
        (["withdraw", "runs/mine", "x"], "invalid int value: 'x'"),
        (["withdraw", "runs/none", "1"], "can't be read"),
        (["correct", "runs/mine", "3", "1"], "trial 3 is pending"),
        (["correct", "runs/mine", "0"], "what is right, but got nothing"),
        (["correct", "runs/mine", "0", "1", "2"], "the number of objective values must be 1"),
        (["correct", "runs/mine", "0", "1", "--noise", "-1"], "a noise is a standard deviation"),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_written(run, capsys, args, says):
    before = (run / "journal.jsonl").read_bytes()
    assert says in shown(capsys, *args, status=2)
    assert (run / "journal.jsonl").read_bytes() == before


def test_a_run_that_is_being_written_is_left_alone(run, capsys):
    before = (run / "journal.jsonl").read_bytes()
    with (run / "journal.jsonl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "writes the journal" in shown(capsys, "withdraw", run, 0, status=2)
    assert (run / "journal.jsonl").read_bytes() == before


def test_it_needs_no_torch(run):
    program = f"import sys; from deepbore.cli.main import main; main(['withdraw', {str(run)!r}, '0'])"
    told = f"{program}; print({{'torch', 'lightning'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
