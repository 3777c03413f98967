"""Several devices: ranks that search, evaluate and record as one."""

import json
import time
from dataclasses import replace

import pytest
import torch
from lightning.pytorch import Trainer

from commands import LAUNCHERS, on_ranks_of
from deepbore import KernelPLS, Ordinal, Real, SearchSpace, Study
from deepbore.acquisition import UpperConfidenceBound
from deepbore.candidates import (
    DifferentialEvolution,
    GreedyBatch,
    LocalSearch,
    MultiStartLBFGS,
    RandomSearch,
    Search,
    SVGDCandidates,
    ThompsonBatch,
)
from deepbore.compute.distributed import Ranks
from deepbore.data.observations import Observations, Trial
from deepbore.evaluators import SerialEvaluator
from deepbore.evaluators.ranks import SharedEvaluator
from deepbore.loop import LoopController, Recipe, RunState
from deepbore.loop.lightning import quiet
from deepbore.testing import fit, toy_data
from thread_ranks import on_ranks

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
GRID = SearchSpace({"a": Ordinal(list(range(12))), "b": Ordinal(list(range(9)))})


# --- two ranks in two threads ----------------------------------------------------------------------------------------


def new_search(space):
    data = toy_data(space, 30)
    generator = torch.Generator().manual_seed(7)
    return Search(UpperConfidenceBound(), fit(KernelPLS(), data, epochs=2), data.observations, generator)


def proposed_by_two(candidates, space, q):
    """Proposals on each of two ranks, and where the common stream stands after them."""
    searches = [new_search(space) for _ in range(2)]  # made before: Lightning is not for threads

    def task(ranks):
        search = replace(searches[ranks.rank], ranks=ranks)
        return candidates.propose(search, q), search.generator.get_state()

    return on_ranks(task)


@pytest.mark.parametrize(
    ("candidates", "q"),
    [
        (RandomSearch(), 3),
        (LocalSearch(focus=0.0), 1),
        (LocalSearch(focus=1.0), 4),
        (GreedyBatch(), 5),
        (ThompsonBatch(), 3),
        (SVGDCandidates(steps=20), 70),
        (MultiStartLBFGS(restarts=3, samples=50), 2),
        (DifferentialEvolution(evaluations=200, population=20), 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ranks_propose_the_same_again_and_again(candidates, q):
    (one, stream), (other, other_stream) = proposed_by_two(candidates, PLANE, q)
    assert torch.equal(one, other)
    assert torch.equal(stream, other_stream)
    assert len(set(PLANE.identify(one))) == q
    assert torch.equal(one, proposed_by_two(candidates, PLANE, q)[1][0])


def test_each_rank_searches_its_share_with_a_stream_of_its_own(monkeypatch):
    asked = []
    sample = SearchSpace.sample

    def counted(space, n, generator):
        points = sample(space, n, generator)
        asked.append(points)
        return points

    monkeypatch.setattr(SearchSpace, "sample", counted)
    (best, _), _ = proposed_by_two(RandomSearch(500), PLANE, 1)
    one, other = [points for points in asked if len(points) == 250]
    assert not torch.equal(one, other)
    assert torch.equal(
        best[0], new_search(PLANE).best_first(torch.cat([one, other]))[0][0]
    )  # the best of all, whoever found it


@pytest.mark.parametrize("q", [1, 5, 78])
def test_ranks_that_share_a_finite_space_find_what_one_finds(q):
    search = new_search(GRID)
    alone = LocalSearch().propose(search, q)
    (together, _), _ = proposed_by_two(LocalSearch(), GRID, q)
    assert len(set(GRID.identify(together))) == q
    assert all(search.observations.unseen(together))
    assert torch.allclose(search.values(together), search.values(alone))


def test_particles_move_as_if_one_rank_had_them_all():
    candidates = SVGDCandidates(steps=20)
    alone = candidates.propose(new_search(PLANE), 70)
    (together, _), _ = proposed_by_two(candidates, PLANE, 70)
    assert torch.allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("slow", [0, 1])
def test_ranks_share_a_batch_and_all_know_all_outcomes_in_order(slow):
    called = [[], []]

    def task(ranks):
        def objective(params):
            time.sleep(0.02 if ranks.rank == slow else 0)
            called[ranks.rank].append(params["k"])
            return params["k"] / (params["k"] != 3)

        evaluator = SharedEvaluator(SerialEvaluator(objective), ranks)
        assert evaluator.free == evaluator.workers == 2
        for k in range(5):
            evaluator.submit(Trial(k, {"k": k}))
        assert (evaluator.outstanding, evaluator.free) == (5, -3)
        rounds = [evaluator.collect() for _ in range(2)]
        assert (evaluator.outstanding, evaluator.free) == (1, 0)
        rounds.append(evaluator.collect())
        assert (evaluator.outstanding, evaluator.free) == (0, 2)
        return [
            [(trial.id, None if outcome.has_failed else outcome.values[0]) for trial, outcome in each]
            for each in rounds
        ]

    one, other = on_ranks(task)
    assert one == other == [[(0, 0.0), (1, 1.0)], [(2, 2.0), (3, None)], [(4, 4.0)]]
    assert called == [[0, 2, 4], [1, 3]]


def test_ranks_give_back_what_has_not_begun():
    def task(ranks):
        evaluator = SharedEvaluator(SerialEvaluator(lambda params: params["k"]), ranks)
        for k in range(5):
            evaluator.submit(Trial(k, {"k": k}))
        done = [trial.id for trial, _ in evaluator.collect()]
        withdrawn = [trial.id for trial in evaluator.withdraw()]
        evaluator.submit(Trial(7, {"k": 7}))
        return done, withdrawn, [trial.id for trial, _ in evaluator.collect()], evaluator.outstanding

    assert on_ranks(task) == [([0, 1], [2, 3, 4], [7], 0)] * 2


def test_an_evaluator_is_shared_once_however_often_a_run_is_set_up(monkeypatch):
    evaluator = SerialEvaluator(lambda params: params["x"])
    controller = LoopController(RunState(Observations(PLANE), Recipe.resolve(PLANE)), evaluator, n_trials=5)
    monkeypatch.setattr(Ranks, "found", classmethod(lambda cls: Ranks(0, 2, None)))
    with quiet():
        trainer = Trainer(logger=False, enable_checkpointing=False, accelerator="cpu")
    monkeypatch.setattr(Trainer, "world_size", 2)
    for _ in range(2):
        controller.setup(trainer, controller.state.classifier, "fit")
    assert controller.runner.evaluator.own is evaluator


# --- two real processes ----------------------------------------------------------------------------------------------

OBJECTIVE = """
import hashlib, os, signal, time
from pathlib import Path
import torch
from lightning.pytorch import Callback

RANK = os.environ.get("LOCAL_RANK", "0")

def objective(params):
    with Path(f"evaluated-{RANK}").open("a") as file:
        file.write(f"{params['x']!r}\\n")
    time.sleep(int.from_bytes(os.urandom(1)) / 5000)  # sometimes one rank is first, sometimes the other
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2

def deadly(params):
    calls = Path("evaluated-1").read_text().count("\\n") if Path("evaluated-1").exists() else 0
    if RANK == "1" and calls == 3:  # its fourth evaluation, while rank 0 is at its fifth
        os.kill(os.getpid(), signal.SIGKILL)
    return objective(params)

def deadly_and_slow(params):
    value = deadly(params)
    if RANK == "0" and Path("evaluated-0").read_text().count("\\n") == 5:
        time.sleep(300)
    return value

class Checksums(Callback):
    def on_train_epoch_end(self, trainer, module):
        sums = hashlib.sha256()
        for _, tensor in sorted(module.state_dict().items()):
            for part in tensor.values() if isinstance(tensor, dict) else [tensor]:
                sums.update(torch.as_tensor(part).cpu().numpy().tobytes())
        with Path(f"sums-{trainer.global_rank}").open("a") as file:
            file.write(sums.hexdigest() + "\\n")
"""
CONFIG = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: mine.objective
    space: {x: {type: real, low: -1, high: 1}, y: {type: real, low: -1, high: 1}}
loop: {n_trials: 15, n_initial: 5, seed: 3}
trainer: {devices: 2, strategy: ddp, accelerator: cpu, callbacks: [{class_path: mine.Checksums}]}
"""


def launched(launcher, folder, *args):
    """Runs `deepbore fit` on two ranks in a folder with the files above."""
    folder.mkdir(exist_ok=True)
    (folder / "mine.py").write_text(OBJECTIVE)
    (folder / "mine.yaml").write_text(CONFIG)
    config = [] if "--resume" in args else ["--config", "mine.yaml"]
    return on_ranks_of(launcher, folder, "fit", *config, *args)


def events(folder):
    """All events but the first, which has the run's own id, and without the checksums, which depend on it."""
    lines = (folder / "journal.jsonl").read_text().splitlines()[1:]
    return [json.loads(line) | {"crc": None} for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["KernelPLS", "DeepEnsemble"])
def test_a_run_on_two_ranks_is_one_run(tmp_path, model):
    done = launched("lightning", tmp_path / "one", "--model", model)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4  # one summary
    assert "recommended" not in done.stderr  # advice of Lightning's, which is about other kinds of training
    assert [path.name for path in (tmp_path / "one" / "runs").iterdir()] == ["functionproblem-1"]
    folder = tmp_path / "one" / "runs" / "functionproblem-1"
    names = {path.name for path in folder.iterdir()} - {"journal.jsonl.lock"}
    assert names == {"journal.jsonl", "journal.jsonl.ckpt", "journal.jsonl.times", "config.yaml", "metrics.csv"}
    study = Study.load(folder / "journal.jsonl")
    assert len({tuple(trial.params.items()) for trial in study.trials}) == study.observations.n_complete == 15
    for trial in study.trials:
        assert trial.value == (trial.params["x"] - 0.3) ** 2 + (trial.params["y"] + 0.2) ** 2
    first, second = ((tmp_path / "one" / f"evaluated-{rank}").read_text().splitlines() for rank in range(2))
    assert sorted(first + second) == sorted(repr(trial.params["x"]) for trial in study.trials)
    assert (len(first), len(second)) == (8, 7)
    one, other = ((tmp_path / "one" / f"sums-{rank}").read_text().splitlines() for rank in range(2))
    assert one == other
    assert len(set(one)) == len(one) == 5

    again = launched("torchrun", tmp_path / "other", "--model", model, "--run", "mine")
    assert again.returncode == 0, again.stderr
    assert events(tmp_path / "other" / "mine") == events(folder)


@pytest.mark.slow
def test_two_ranks_refuse_a_directory_with_a_run(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "journal.jsonl").write_text("somebody's\n")
    for launcher in LAUNCHERS:
        done = launched(launcher, tmp_path, "--run", "mine")
        assert done.returncode != 0
        assert "holds a run already" in done.stderr
        assert (tmp_path / "mine" / "journal.jsonl").read_text() == "somebody's\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "objective", "says"),
    [
        ("lightning", "deadly", "rank 0 of 2 has lost another one"),
        ("lightning", "deadly_and_slow", "terminated with code -9"),
        ("torchrun", "deadly_and_slow", "SIGKILL"),
    ],
)
def test_a_killed_rank_ends_the_run_and_the_journal_stays_whole(tmp_path, launcher, objective, says):
    started = time.perf_counter()
    done = launched(launcher, tmp_path, "--run", "mine", "--problem.function", f"mine.{objective}")
    assert done.returncode != 0
    assert time.perf_counter() - started < 120  # the slow one would sleep for 300 s
    assert says in done.stderr
    study = Study.load(tmp_path / "mine" / "journal.jsonl")
    assert study.observations.n_complete == 7
    assert len(study.trials) == 9


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_run_that_lost_a_rank_is_resumed_on_all_as_if_nothing_had_happened(tmp_path, launcher):
    whole = launched(launcher, tmp_path / "whole", "--run", "mine")
    assert whole.returncode == 0, whole.stderr
    broken = launched(launcher, tmp_path / "broken", "--run", "mine", "--problem.function", "mine.deadly")
    assert broken.returncode != 0
    resumed = launched(launcher, tmp_path / "broken", "--resume", "mine", "--problem.function", "mine.objective")
    assert resumed.returncode == 0, resumed.stderr
    assert events(tmp_path / "broken" / "mine") == events(tmp_path / "whole" / "mine")
    assert (tmp_path / "broken" / "mine" / "metrics-1.csv").exists()
    assert "best_value" in (tmp_path / "broken" / "mine" / "metrics.csv").read_text().splitlines()[0]
