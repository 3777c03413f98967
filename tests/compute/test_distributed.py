"""Ranks that are stopped, killed, cut off or slow: two real processes with gloo, forked from this one."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import traceback
from datetime import timedelta
from functools import partial

import pytest
from torch import distributed
from torch.distributed import TCPStore

from deepbore import DistributedStudy, Study
from deepbore.compute.distributed import Heartbeat
from plane import LINE
from processes import fork, is_gone

PATIENCE = 3  # seconds


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


class Ranks:
    """Two forked ranks that evaluate ten trials each; what each said last is in a file.

    Args:
        folder: for files.
        trouble: what a rank does before its k-th evaluation: (rank, k) -> anything.
        prepare: what a rank does first.
        address: of rank 0.
    """

    def __init__(self, folder, trouble, prepare=lambda rank: None, address="127.0.0.1"):
        self.folder, port = folder, free_port()
        self.pids = [fork(partial(self.run, rank, trouble, prepare, f"tcp://{address}:{port}")) for rank in (0, 1)]

    def run(self, rank, trouble, prepare, address):
        try:
            prepare(rank)
            limit = timedelta(seconds=PATIENCE)
            distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2, timeout=limit)
            study = DistributedStudy(LINE, seed=0, n_initial=100, journal=self.folder / "run.jsonl")
            for k in range(5):
                trials = study.ask(4)
                trouble(rank, k)
                study.tell({trial.id: trial.params["x"] for trial in study.share(trials)})
            said = "done"
        except BaseException:
            said = traceback.format_exc()
        (self.folder / f"said-{rank}").write_text(said)

    def said(self, rank, within=60):
        """What a rank said last; both are ended if it says nothing."""
        assert is_gone(self.pids[rank], within), self.end()
        return (self.folder / f"said-{rank}").read_text()

    def end(self):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.fixture
def ranks(tmp_path):
    begun = []

    def begin(*args, **settings):
        begun.append(Ranks(tmp_path, *args, **settings))
        return begun[0]

    yield begin
    for each in begun:
        each.end()


def on(rank, number):
    """A signal that a rank sends itself before its third evaluation."""
    return lambda own, k: own == rank and k == 2 and os.kill(os.getpid(), number)


def is_whole(folder):
    values = [trial.value for trial in Study.load(folder / "run.jsonl").trials]
    return values[:8] == [trial.params["x"] for trial in Study.load(folder / "run.jsonl").trials[:8]]


def test_a_stopped_rank_is_named_within_the_timeout_of_the_program_and_the_journal_is_whole(tmp_path, ranks):
    began = time.monotonic()
    said = ranks(on(1, signal.SIGSTOP)).said(0)
    assert "RankError: rank 0 of 2 ends, since rank 1 has given no sign of life for 3 s" in said
    assert time.monotonic() - began < 60
    assert is_whole(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "number"), [(0, signal.SIGSTOP), (0, signal.SIGKILL), (1, signal.SIGKILL)])
def test_a_rank_that_is_stopped_or_killed_is_named_also_the_first(tmp_path, ranks, rank, number):
    said = ranks(on(rank, number)).said(1 - rank)
    assert "RankError" in said
    assert f"since rank {rank}" in said or f"lost rank {rank}" in said
    assert is_whole(tmp_path)


@pytest.mark.slow
def test_a_rank_that_is_slow_is_waited_for(ranks):
    both = ranks(lambda rank, k: time.sleep(3 * PATIENCE if (rank, k) == (1, 2) else 0))
    assert [both.said(rank) for rank in (0, 1)] == ["done", "done"]


@pytest.mark.slow
def test_ranks_that_are_all_suspended_for_a_while_go_on(ranks, tmp_path):
    both = ranks(lambda rank, k: time.sleep(1 if k == 2 else 0) or (tmp_path / f"{rank}-{k}").touch())
    while not (tmp_path / "0-1").exists():
        time.sleep(0.05)
    for number, seconds in ((signal.SIGSTOP, 2 * PATIENCE), (signal.SIGCONT, 0)):
        for pid in both.pids:
            os.kill(pid, number)
        time.sleep(seconds)
    assert [both.said(rank) for rank in (0, 1)] == ["done", "done"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def two_hosts():
    """Two network namespaces with a cable between them."""
    names = [f"deepbore{os.getpid()}{k}" for k in "ab"]
    if shutil.which("ip") is None or os.geteuid():
        pytest.skip("needs root and ip")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "v0", "netns", names[0], "type", "veth", "peer", "name", "v1", "netns", names[1])
        for k, name in enumerate(names):
            ip("-n", name, "address", "add", f"10.77.0.{k + 1}/24", "dev", f"v{k}")
            ip("-n", name, "link", "set", f"v{k}", "up")
            ip("-n", name, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces: {error.stderr}")
    yield names
    for name in names:
        ip("netns", "delete", name)


@pytest.mark.slow
def test_ranks_that_are_cut_off_from_each_other_both_end(two_hosts, ranks, tmp_path, monkeypatch):
    def enter(rank):
        os.environ["GLOO_SOCKET_IFNAME"] = f"v{rank}"
        with open(f"/run/netns/{two_hosts[rank]}") as namespace:
            assert ctypes.CDLL(None).setns(namespace.fileno(), 0) == 0

    def cut(rank, k):
        if (rank, k) == (0, 2):
            ip("link", "set", "v0", "down")

    both = ranks(cut, prepare=enter, address="10.77.0.1")
    assert "since rank 1 has given no sign of life" in both.said(0)
    assert "since rank 0, or the launcher" in both.said(1)
    assert is_whole(tmp_path)


def test_the_thread_of_signs_of_life_has_ended_when_the_program_ends():
    store = TCPStore("127.0.0.1", 0, 1, is_master=True, wait_for_workers=False)
    heart = Heartbeat(store, 0, 2, patience=1e-3)
    heart.end()
    assert not [thread for thread in threading.enumerate() if getattr(thread, "_target", None) == heart._beat]
