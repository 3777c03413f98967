"""What trials report to, also from other processes."""

import errno
import json
import math
import pickle
import socket
import threading
import time

import pytest

from deepbore import Trial, TrialPruned
from deepbore.data.trial import Status
from deepbore.errors import TrialError
from deepbore.worker.objective import evaluate
from deepbore.worker.reporting import JudgeServer, LocalJudge, RemoteJudge, Reporting

ASKED = []


def judge(row, reports):
    """Ends what has reported more than 10."""
    ASKED.append((row, dict(reports)))
    return max(reports.values()) > 10


@pytest.fixture
def server():
    ASKED.clear()
    served = JudgeServer(judge)
    yield served
    served.close()


def test_decisions_come_over_a_socket(server):
    remote = pickle.loads(pickle.dumps(Reporting(server.address)))  # as in another process
    trial = Trial(7, {}, reporter=remote)
    trial.report(1.0, step=1)
    trial.report(math.inf, step=2)
    assert not trial.should_prune()
    assert not trial.should_prune()  # nothing new: not asked again
    trial.report(11.0, step=3)
    assert trial.should_prune()
    (first, second) = ASKED
    assert (first[0], list(first[1]), second) == (7, [1, 2], (7, {3: 11.0}))
    assert math.isnan(first[1][2])
    assert RemoteJudge.from_text(server.address.as_text)(3, {1: 12.0})


def test_a_default_timeout_of_the_program_ends_no_server():
    socket.setdefaulttimeout(0.05)
    try:
        server = JudgeServer(lambda row, reports: True)
    finally:
        socket.setdefaulttimeout(None)
    time.sleep(0.2)
    try:
        assert pickle.loads(pickle.dumps(server.address))(1, {1.0: 0.5})
    finally:
        server.close()


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.EMFILE, errno.ENOBUFS])
def test_a_connection_that_cant_be_taken_ends_no_server(server, number, monkeypatch):
    real, failures = server._socket, [OSError(number, "as if")]

    class Once:
        def accept(self):
            if failures:
                raise failures.pop()
            return real.accept()

        def __getattr__(self, name):
            return getattr(real, name)

    monkeypatch.setattr(server, "_socket", Once())
    for _ in range(2):  # the first wakes the thread that already waits
        assert pickle.loads(pickle.dumps(server.address))(1, {1.0: 20.0})
    assert not failures


def test_a_closed_server_ends_its_thread():
    server = JudgeServer(lambda row, reports: True)
    mine = [each for each in threading.enumerate() if each.name == "deepbore-reports"]
    server.close()
    for each in mine:
        each.join(5)
    assert not any(each.is_alive() for each in mine)


def test_nobody_without_the_key_is_answered(server):
    stranger = RemoteJudge(server.address.hosts, server.address.port, "another key")
    assert stranger(1, {1: 20.0}) is False
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=10) as connection:
        stream = connection.makefile("rwb")
        assert "challenge" in json.loads(stream.readline())
        stream.write(b'{"answer": "?"}\n{"trial": 1, "steps": [1], "values": [20.0]}\n')
        stream.flush()
        assert stream.readline() == b""
    assert ASKED == []


DEEP = b"[" * 100_000 + b"\n"


@pytest.mark.parametrize("line", [DEEP, b'{"answer":' * 50_000 + b"\n", b"\xff\n", b"[]\n", b"3\n"])
def test_what_a_stranger_sends_ends_its_connection_and_no_thread_with_an_error(server, line, monkeypatch):
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with socket.create_connection(("127.0.0.1", server.address.port), timeout=10) as connection:
        stream = connection.makefile("rwb")
        stream.readline()
        stream.write(line)
        stream.flush()
        assert stream.readline() == b""
    assert RemoteJudge.from_text(server.address.as_text)(1, {1: 20.0})
    assert raised == []


@pytest.mark.parametrize("line", [DEEP, b'{"prune":' * 50_000 + b"\n", b"[]\n", b'{"no": 1}\n'])
def test_a_trial_goes_on_whatever_answers_in_place_of_the_study(line):
    stranger, ended = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def answer():
        connection, _ = stranger.accept()
        with connection:
            connection.sendall(line)
            ended.wait(10)

    thread = threading.Thread(target=answer)
    thread.start()
    trial = Trial(1, {}, reporter=Reporting(RemoteJudge(("127.0.0.1",), stranger.getsockname()[1], "key")))
    trial.report(99.0, step=1)
    assert not trial.should_prune()
    ended.set()
    thread.join()
    stranger.close()


def test_a_trial_goes_on_where_the_study_cant_be_reached(server, caplog):
    server.close()
    trial = Trial(1, {}, reporter=Reporting(server.address))
    trial.report(99.0, step=1)
    assert not trial.should_prune()
    assert "goes on" in caplog.text


def test_a_judge_stays_in_its_process():
    assert pickle.loads(pickle.dumps(LocalJudge(judge))) is None
    again = pickle.loads(pickle.dumps(Trial(1, {}, reporter=Reporting(LocalJudge(judge)))))
    again.report(99.0, step=1)
    assert not again.should_prune()
    with pytest.raises(TrialError, match="a record"):
        Trial(1, {}).report(1.0, step=1)


class TrialPrunedElsewhere(Exception):
    """As that of another library."""


TrialPrunedElsewhere.__name__ = "TrialPruned"


@pytest.mark.parametrize("error", [TrialPruned, TrialPruned("hopeless"), TrialPrunedElsewhere("hopeless")])
def test_a_pruned_trial_is_no_failure_and_its_reports_come_with_it(error):
    def objective(params, trial):
        trial.report(0.5, step=1)
        raise error

    outcome = evaluate(objective, Trial(0, {}))
    assert (outcome.status, outcome.reports, outcome.has_failed) == (Status.PRUNED, {1: 0.5}, False)
    assert outcome.reason in (None, "hopeless")


def test_each_attempt_reports_anew():
    attempts = []

    def objective(params, trial):
        for step in range(1, 4 - len(attempts)):
            trial.report(float(step), step=step)
        attempts.append(trial)
        return 1.0

    trial = Trial(0, {}, reporter=Reporting())
    assert [list(evaluate(objective, trial).reports) for _ in range(2)] == [[1, 2, 3], [1, 2]]


@pytest.mark.parametrize(("value", "step"), [("a", 1), (1.0, -1), (1.0, "a"), (None, 1)])
def test_what_is_no_number_is_a_wrong_report(value, step):
    outcome = evaluate(lambda params, trial: trial.report(value, step), Trial(0, {}))
    assert outcome.has_failed
    assert "must be" in outcome.reason
