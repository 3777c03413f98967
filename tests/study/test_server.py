"""Many clients of one study: threads, coroutines, and clients of actors of real engines."""

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from alone import alone
from deepbore import Budget, Integer, Real, SearchSpace, Study
from deepbore.errors import SettingError, SpaceExhausted, TrialError
from deepbore.study.server import AsyncStudyServer, StudyServer

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


class Counted(Study):
    """A study that counts how many trials each `ask` is for."""

    def ask(self, q=1):
        self.__dict__.setdefault("asks", []).append(q)
        return super().ask(q)


def value(trial):
    return trial.params["x"] + trial.params["y"]


def test_two_hundred_threads_that_ask_at_the_same_time_are_one_ask():
    server, together = StudyServer(Counted(PLANE, seed=0), window=0.2), threading.Barrier(200)

    def client():
        for _ in range(2):
            together.wait(60)
            trial = server.ask()
            server.tell(trial, value(trial))

    threads = [threading.Thread(target=client) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    trials = server.study.trials
    assert len({trial.id for trial in trials}) == 400
    assert [trial.value for trial in trials] == [value(trial) for trial in trials]
    assert len(server.study.asks) <= 8
    assert sum(server.study.asks) == 400
    assert server.best_trial().value == min(trial.value for trial in trials)


def test_what_was_told_before_an_ask_is_learned_from():
    server, study = StudyServer(Study(PLANE, seed=0), window=0), Study(PLANE, seed=0)
    for _ in range(12):
        trial, expected = server.ask(), study.ask_one()
        assert trial.params == expected.params
        server.tell(trial, value(trial))
        study.tell(expected, value(expected))


def test_the_last_configurations_go_to_the_first_clients_and_the_others_are_told():
    server = StudyServer(Study({"n": Integer(1, 5)}, seed=0), window=0.2)

    def client(_):
        try:
            return server.ask().params["n"]
        except SpaceExhausted:
            return None

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(client, range(8)))
    assert sorted(n for n in found if n is not None) == [1, 2, 3, 4, 5]
    assert found.count(None) == 3


def test_errors_reach_the_client_that_has_made_them():
    server = StudyServer(Study(PLANE, seed=0))
    trial = server.ask()
    with pytest.raises(TrialError):
        server.tell(7, 0.0)
    server.tell(trial, failed=True)
    with pytest.raises(TrialError):
        server.tell(trial, 0.0)
    lost = server.ask()
    server.withdraw(lost, "its client has died")
    assert server.study.pending == []


def test_reports_promote_as_those_of_the_study_do():
    server = StudyServer(Study({"x": Real(0, 1)}, budget=Budget("epochs", 1, 9)))
    assert [server.report(server.ask(), value, step=1) for value in (0.0, 1.0, 2.0)] == [False, False, False]
    assert server.ask().resume_from is not None


@pytest.mark.parametrize("wrong", [{"window": -1}, {"window": None}, {"study": 7}, {"study": lambda: 7}])
def test_settings_are_checked(wrong):
    with pytest.raises((SettingError, TypeError)):
        StudyServer(**{"study": Study(PLANE)} | wrong)


def test_coroutines_are_one_ask_and_one_that_is_cancelled_takes_no_trial():
    async def clients():
        server = AsyncStudyServer(partial(Counted, PLANE, seed=0), window=0.2)
        asks = [asyncio.ensure_future(server.ask()) for _ in range(100)]
        await asyncio.sleep(0)
        asks[3].cancel()
        found = await asyncio.gather(*asks, return_exceptions=True)
        trials = [each for each in found if not isinstance(each, BaseException)]
        await asyncio.gather(*(server.tell(trial, value(trial)) for trial in trials))
        goes_on = await server.report(await server.ask(), 0.5, step=1)
        await server.withdraw(99)
        return trials, goes_on, (await server.best_trial()).value

    trials, goes_on, best = asyncio.run(clients())
    assert sorted(trial.id for trial in trials) == list(range(99))
    assert (goes_on, best) == (True, min(map(value, trials)))


class Actor(AsyncStudyServer):
    """An actor that knows how often its study was asked, and with which results."""

    def __init__(self):
        self.counted = Counted(PLANE, seed=0)
        super().__init__(self.counted, window=0.3)

    async def seen(self):
        return self.counted.asks, [trial.value for trial in self.counted.trials]


def check_rounds(asks, values):
    """Two rounds of 50 clients were asked for in a few calls, and all have told."""
    assert (sum(asks), len(values)) == (100, 100)
    assert len(asks) <= 10
    assert None not in values


@pytest.mark.slow
@alone
def test_an_actor_of_ray_serves_its_clients_together():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        server = ray.remote(Actor).options(max_concurrency=100).remote()
        for _ in range(2):
            trials = ray.get([server.ask.remote() for _ in range(50)], timeout=100)
            ray.get([server.tell.remote(trial, value(trial)) for trial in trials], timeout=100)
        check_rounds(*ray.get(server.seen.remote(), timeout=100))
        assert ray.get(server.best_trial.remote(), timeout=100).value < 1
    finally:
        ray.shutdown()


@pytest.mark.slow
@alone
def test_an_actor_of_dask_serves_its_clients_together():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        server = client.submit(Actor, actor=True).result(timeout=100)
        for _ in range(2):
            asked = [server.ask() for _ in range(50)]
            trials = [each.result(timeout=100) for each in asked]
            for told in [server.tell(trial, value(trial)) for trial in trials]:
                told.result(timeout=100)
        check_rounds(*server.seen().result(timeout=100))
        assert server.best_trial().result(timeout=100).value < 1


# regression: the trial of a client that had stopped to wait was nobody's for ever
@pytest.mark.parametrize("late", [0.0, 0.05, 0.15])
def test_the_trial_of_a_client_that_has_gone_goes_to_the_next(late, monkeypatch):
    async def clients():
        study = Study(PLANE, seed=0, strategy="random")
        ask = study.ask
        monkeypatch.setattr(study, "ask", lambda q: time.sleep(0.1) or ask(q))
        server = AsyncStudyServer(study, window=0.01)
        tasks = [asyncio.create_task(server.ask()) for _ in range(3)]
        await asyncio.sleep(late)
        for task in tasks:
            task.cancel()
        gone = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.2)
        has = {each.id for each in gone if not isinstance(each, BaseException)}
        left = {trial.id for trial in await server.pending()} - has
        trials = await asyncio.gather(*(server.ask() for _ in range(4)))
        assert left <= {trial.id for trial in trials}
        assert len({trial.id for trial in trials} | has) == 4 + len(has)
        assert {trial.id for trial in await server.pending()} == has | {trial.id for trial in trials}
        return len(left)

    assert asyncio.run(clients()) == (3 if late == 0.05 else 0)


def test_a_client_that_times_out_between_the_answer_and_its_turn_loses_no_trial():
    async def clients():
        server = AsyncStudyServer(Study(PLANE, seed=0, strategy="random"))
        task = asyncio.create_task(server.ask())
        while not await server.pending():
            await asyncio.sleep(0)
        time.sleep(0.05)  # its answer has come, and the loop was busy
        task.cancel()
        (end,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(end, asyncio.CancelledError) or end.id == 0
        trial = await server.ask()
        assert trial.id == (0 if isinstance(end, asyncio.CancelledError) else 1)

    asyncio.run(clients())


def test_a_trial_that_was_left_and_is_withdrawn_goes_to_nobody(monkeypatch):
    server = StudyServer(Study(PLANE, seed=0, strategy="random"))
    future = server._calls.ask()
    trial = future.result()
    server._calls.give_up(future)
    server.withdraw(trial)
    assert server.ask().id == 1


def test_a_thread_that_is_interrupted_leaves_its_trial_to_the_next(monkeypatch):
    server = StudyServer(Study(PLANE, seed=0, strategy="random"))
    result = Future.result

    def interrupted(self, timeout=None):
        result(self, timeout)
        monkeypatch.setattr(Future, "result", result)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.ask()
    assert [server.ask().id for _ in range(2)] == [0, 1]
    assert [trial.id for trial in server.pending()] == [0, 1]


def test_a_server_that_is_closed_says_so_and_frees_the_journal(tmp_path):
    with StudyServer(Study(PLANE, seed=0, journal=tmp_path / "run.jsonl")) as server:
        server.tell(server.ask(), 1.0)
    server.close()  # a second time
    for call in (server.ask, server.ask, server.pending, server.best_trial):
        with pytest.raises(SettingError, match="closed"):
            call()

    async def again():
        async with AsyncStudyServer(lambda: Study.load(tmp_path / "run.jsonl")) as later:
            await later.tell(await later.ask(), 2.0)
        with pytest.raises(SettingError, match="closed"):
            await later.ask()

    asyncio.run(again())
    assert [trial.value for trial in Study.load(tmp_path / "run.jsonl").trials] == [1.0, 2.0]
