"""`DistributedStudy`: ask and tell in a program of several real processes."""

import json
import os
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import deepbore
import forked
from commands import LAUNCHERS
from deepbore import DistributedStudy, MLPClassifier, Study
from deepbore.compute.distributed import Ranks
from deepbore.errors import SettingError, TrialError, ValueTypeError
from plane import LINE, PLANE, SQUARE
from thread_ranks import on_ranks
from tried import net


@pytest.mark.parametrize("setting", [{"if_exists": "load"}, {"preferences": True}])
def test_a_suggester_takes_the_parts_of_a_run_and_nothing_else(setting):
    says = f"a DistributedStudy does not take {next(iter(setting))}; other settings may be"
    with pytest.raises(SettingError, match=says):
        DistributedStudy(SQUARE, **setting)


SUGGESTER = """
import json, sys
from functools import partial
from pathlib import Path
from torch import distributed
from deepbore import Budget, DeepEnsemble, Outcome, Real, SearchSpace, DistributedStudy

def bowl(x, y):
    return (x - 0.3) ** 2 + (y + 0.2) ** 2 if y < 0.9 else None

def plain(trial):
    return bowl(**trial.params)

def front(trial):
    return [trial.params["x"], bowl(**trial.params)] if trial.params["y"] < 0.9 else None

def budget(trial):
    before = trial.resume_from.attributes["spent"] if trial.resume_from else 0
    return Outcome(trial.params["x"] ** 2 + 1 / trial.budget, attributes={"spent": trial.budget, "before": before})

KINDS = {
    "plain": (plain, {}),
    "front": (front, {"directions": ["minimize", "minimize"]}),
    "budget": (budget, {"budget": Budget("epochs", 1, 9)}),
    "members": (plain, {"classifier": DeepEnsemble(members=3)}),
}

if __name__ == "__main__":
    distributed.init_process_group("gloo")
    kind, rounds, journal = sys.argv[1], int(sys.argv[2]), Path("run.jsonl")
    evaluate, settings = KINDS[kind]
    space = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
    if journal.exists():
        suggester = DistributedStudy.load(journal)
    else:
        suggester = DistributedStudy(space, journal=journal, seed=3, n_initial=6, **settings)
    for _ in range(rounds):
        mine = suggester.share(suggester.ask(3))
        suggester.tell({trial.id: evaluate(trial) for trial in mine})
        with Path(f"mine-{suggester.ranks.rank}").open("a") as file:
            file.writelines(f"{trial.id}\\n" for trial in mine)
    seen = [[t.params, list(t.values or ()), t.budget, dict(t.attributes)] for t in suggester.study.trials]
    Path(f"seen-{suggester.ranks.rank}").write_text(json.dumps(seen))
    distributed.destroy_process_group()
"""


by_torchrun = partial(forked.run, launcher=True, timeout=180)


def suggested(folder, kind, rounds):
    folder.mkdir(exist_ok=True)
    (folder / "tune.py").write_text(SUGGESTER)
    command = [*LAUNCHERS["torchrun"][:-2], "tune.py", kind, str(rounds)]
    env = os.environ | {"PYTHONPATH": str(Path(deepbore.__file__).parents[1])}
    done = by_torchrun(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"seen-{rank}").read_text()) for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "front", "budget", "members"])
def test_a_suggester_is_one_study_on_all_ranks_and_goes_on_as_one(kind, tmp_path):
    first, second = suggested(tmp_path / "whole", kind, 6)
    assert first == second
    assert len(first) == 18
    shares = [{int(line) for line in (tmp_path / "whole" / f"mine-{rank}").read_text().split()} for rank in range(2)]
    assert shares[0] | shares[1] == set(range(18))
    assert not shares[0] & shares[1]
    kept = Study.load(tmp_path / "whole" / "run.jsonl").trials
    assert [[trial.params, list(trial.values or ()), trial.budget, dict(trial.attributes)] for trial in kept] == first
    if kind == "budget":
        assert max(budget for _, _, budget, _ in first) == 9
        assert all(attributes["before"] == (budget // 3 if budget > 1 else 0) for _, _, budget, attributes in first)

    suggested(tmp_path / "parts", kind, 4)
    assert suggested(tmp_path / "parts", kind, 2) == [first, first]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("DistributedStudy(space, journal='run.jsonl', seed=distributed.get_rank())", "seed is 1, not 0"),
        ("DistributedStudy(space).ask(1 + distributed.get_rank())", "q is 2, not 1"),
        ("s = DistributedStudy(space); s.tell({trial.id: 1.0 for trial in s.ask(2)})", "several ranks tell 0"),
    ],
)
def test_ranks_that_do_not_go_together_are_told_so(line, says, tmp_path):
    head = SUGGESTER.split("def bowl", maxsplit=1)[0]
    start = "distributed.init_process_group('gloo')\nspace = SearchSpace({'x': Real(-1, 1)})\n"
    (tmp_path / "tune.py").write_text(f"{head}{start}{line}\n")
    command = [*LAUNCHERS["torchrun"][:-2], "tune.py"]
    env = os.environ | {"PYTHONPATH": str(Path(deepbore.__file__).parents[1])}
    done = by_torchrun(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode != 0
    assert says in done.stderr
    assert not (tmp_path / "run.jsonl").exists()


def test_a_suggester_tells_all_values_or_none():
    suggester = DistributedStudy(PLANE, n_initial=4)
    suggester.ask(3)
    with pytest.raises(ValueTypeError, match=r"^trial 1: an objective value must be a number, but got 'oops'"):
        suggester.tell({0: 1.0, 1: "oops", 2: 3.0})
    with pytest.raises(TrialError, match="trials 0"):
        suggester.tell({0: 1.0, 7: 2.0})
    suggester.tell({0: 1.0, 1: 2.0, 2: None})
    assert [trial.value for trial in suggester.study.trials] == [1.0, 2.0, None]


def test_in_one_process_a_suggester_is_a_study():
    study, suggester = Study(PLANE, seed=1, n_initial=4), DistributedStudy(PLANE, seed=1, n_initial=4)
    for _ in range(3):
        trials, same = study.ask(2), suggester.ask(2)
        assert [trial.params for trial in trials] == [trial.params for trial in same]
        assert suggester.share(same) == same
        for trial in trials:
            has_failed = trial.params["y"] > 0
            study.tell(trial, None if has_failed else trial.params["x"], failed=has_failed)
        suggester.tell({t.id: None if t.params["y"] > 0 else t.params["x"] for t in same})
    assert suggester.study.trials == study.trials


@pytest.mark.slow
def test_a_study_on_one_rank_of_a_program_of_many_waits_for_nobody():
    script = (
        "from torch import distributed\n"
        "from deepbore import Real, SearchSpace, Study\n"
        "distributed.init_process_group('gloo')\n"
        "if distributed.get_rank() == 0:\n"
        "    Study(SearchSpace({'x': Real(0, 1)}), n_initial=2).optimize(lambda params: params['x'], 5)\n"
        "distributed.destroy_process_group()\n"
    )
    command = [*LAUNCHERS["torchrun"][:-2], "--no-python", sys.executable, "-c", script]
    env = os.environ | {"PYTHONPATH": str(Path(deepbore.__file__).parents[1])}
    by_torchrun(command, env=env, check=True)


def on_two_ranks(task, monkeypatch):
    """What task(rank) returns on each of two ranks, whose suggesters find each other."""
    own = threading.local()
    monkeypatch.setattr(Ranks, "found", classmethod(lambda _: own.ranks))

    def run(ranks):
        own.ranks = ranks
        return task(ranks.rank)

    return on_ranks(run)


# regression: each of these was wrong once
def test_ranks_may_have_a_network_of_the_user_s_own(monkeypatch):
    def task(_rank):
        suggester = DistributedStudy(LINE, classifier=MLPClassifier(network=net()), seed=1)
        return [trial.params for trial in suggester.ask(2)]

    one, other = on_two_ranks(task, monkeypatch)
    assert one == other


def test_ranks_with_other_parts_are_told_which(monkeypatch):
    def task(rank):
        with pytest.raises(SettingError) as refused:
            DistributedStudy(
                LINE, classifier=MLPClassifier(network=net(), activation=("relu", "tanh")[rank]), n_initial=5 + rank
            )
        return str(refused.value)

    one, other = on_two_ranks(task, monkeypatch)
    assert one == other
    assert "on rank 1, unlike 0, classifier is MLPClassifier(" in one
    assert "n_initial is 6, not 5" in one
    assert "labels" not in one
