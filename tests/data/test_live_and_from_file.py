"""Drawn histories: the live study, the loaded study and the torch-free record say the same of each trial."""

import math
import random
from dataclasses import dataclass, fields

import pytest
import torch

from deepbore import Budget, Categorical, Integer, Outcome, Real, SearchSpace, Study
from deepbore.data.replay import read_record
from deepbore.errors import DeepBoreError

KINDS = {
    "values": {},
    "maximised": {"direction": "maximize"},
    "budget": {"budget": Budget("epochs", 1, 9)},
    "objectives": {"directions": ["minimize", "maximize"]},
    "preferences": {"preferences": True},
}
OPERATIONS = (
    *("ask", "ask", "tell", "tell", "tell", "constrained", "fail", "prune", "report", "annotate", "withdraw"),
    *("correct", "add", "fix", "enqueue", "prefer"),
)
NUMBERS = (math.nan, math.inf, 0.0, -0.0, 1e300)


@dataclass
class History:
    """A study, and the random numbers by which operations on it are drawn; some of them are refused."""

    study: Study
    draw: random.Random

    @property
    def row(self):
        return self.draw.randrange(len(self.study.trials))

    @property
    def waiting(self):
        return self.draw.choice(self.study.pending) if self.study.pending else self.row

    @property
    def value(self):
        k = self.study.observations.k
        values = [self.draw.choice([self.draw.gauss(0, 1), self.draw.gauss(0, 1), *NUMBERS]) for _ in range(k)]
        return values if k > 1 else values[0]

    def ask(self):
        self.study.ask(self.draw.randint(1, 3))

    def tell(self):
        noise = {"noise": abs(self.draw.gauss(0, 1))} if self.draw.random() < 0.2 else {}
        self.study.tell(self.waiting, self.value, **noise)

    def constrained(self):
        self.study.tell(self.waiting, self.value, constraints=[self.draw.gauss(0, 1)])

    def fail(self):
        self.study.tell(self.waiting, Outcome.failure(self.draw.choice([None, "bad"])))

    def prune(self):
        self.study.tell(self.waiting, pruned=True)

    def report(self):
        self.study.report(self.waiting, self.draw.gauss(0, 1), step=self.draw.randint(1, 12))

    def annotate(self):
        self.study.annotate(self.row, {self.draw.choice("ab"): self.draw.random()})

    def withdraw(self):
        rows = [self.row, *([self.row] if self.draw.random() < 0.3 else [])]
        self.study.withdraw(rows, reason=self.draw.choice([None, "why"]))

    def correct(self):
        about = {"failed": True} if self.draw.random() < 0.2 else {}
        about |= {"constraints": [self.draw.gauss(0, 1)]} if self.draw.random() < 0.3 else {}
        self.study.correct(self.row, self.value if self.draw.random() < 0.8 else None, **about)

    def add(self):
        m, space = self.draw.randint(1, 4), self.study.space
        points = space.points.sample(m, torch.Generator().manual_seed(self.draw.randrange(10**6)))
        about = {"task": self.draw.choice([None, None, "old"])}
        if self.draw.random() < 0.3:
            about["constraints"] = [[self.draw.choice([self.draw.gauss(0, 1), math.nan])] for _ in range(m)]
        if self.draw.random() < 0.2:
            about["noise"] = [abs(self.draw.gauss(0, 1)) for _ in range(m)]
        if self.draw.random() < 0.5:
            about["budgets"] = [self.draw.choice([1, 3, 9]) for _ in range(m)]
        self.study.add(space.points.decode_columns(points), [self.value for _ in range(m)], **about)

    def fix(self):
        self.study.fix(self.draw.choice([{}, {"n": 2}, {"x": 0.5}]))

    def enqueue(self):
        self.study.enqueue(self.draw.choice([{"n": 3}, {"x": 0.25, "n": 1, "c": "b"}]))

    def prefer(self):
        self.study.prefer(self.row, self.row)

    def go_on(self):
        """One drawn operation; whether it was accepted."""
        try:
            getattr(self, self.draw.choice(OPERATIONS))()
        except (DeepBoreError, ValueError):
            return False
        return True


def begun(seed, path):
    """A history of a drawn kind, nothing done yet."""
    draw = random.Random(seed)
    choices = ["a", None, 3] if draw.random() < 0.3 else ["a", "b"]
    space = {"x": Real(0, 1), "n": Integer(1, 5), "c": Categorical(choices)}
    if draw.random() < 0.4:
        space["w"] = Real(1, 9, log=True, when={"c": "a"})
    about = KINDS[draw.choice(list(KINDS))]
    return History(Study(SearchSpace(space), seed=seed, journal=path, strategy="random", **about), draw)


def told(trial, params):
    """All that a trial says, as plain data in which NaN equals NaN."""
    said = {each.name: getattr(trial, each.name) for each in fields(trial) if each.compare}
    former = [repr(each) for each in trial.former]
    resumed = None if trial.resume_from is None else trial.resume_from.id
    reports = {step: str(value) for step, value in trial.reports.items()}
    said |= {"attributes": dict(trial.attributes), "former": former, "resume_from": resumed, "reports": reports}
    return said | {"params": params}


def known(study):
    """What a study knows, as plain data."""
    observations = study.observations
    names = ("n_failed", "n_complete", "n_pruned", "n_withdrawn", "n_earlier")
    tensors = ("points", "values", "constraints", "budgets", "tasks", "status", "first_rows", "noise")
    read = {name: getattr(observations.columns, name) for name in tensors}
    columns = {name: str(None if each is None else each.tolist()) for name, each in read.items()}
    return (
        {name: getattr(observations.ledger.statistics, name) for name in names}
        | columns
        | {"n_asked": observations.ledger.n_asked, "preferences": observations.preferences}
        | {"n_since_best": observations.ledger.ranking.n_since_best}
        | {
            "trials": [told(trial, study.space.points.plain(trial.params)) for trial in study.trials],
            "best": [best_of(study.best_trial)] if observations.k == 1 else [each.id for each in study.pareto_front],
            "shape": tuple(observations.constraints.shape),
            "finished": observations.ledger.finished,
        }
    )


def best_of(trial):
    return None if trial is None else trial.id


@pytest.mark.parametrize(
    "seeds",
    [*(range(k, k + 10) for k in range(0, 60, 10)), *(pytest.param(range(k, k + 60), marks=pytest.mark.slow)
                                                      for k in range(60, 300, 60))],
    ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}",
)  # fmt: skip
def test_they_say_the_same(tmp_path, seeds):
    accepted = 0
    for seed in seeds:
        path = tmp_path / f"{seed}.jsonl"
        history = begun(seed, path)
        accepted += sum(history.go_on() for _ in range(history.draw.randint(5, 40)))
        history.study.close()
        live, again, record = known(history.study), known(Study.load(path)), read_record(path)
        assert again == live, seed
        assert [told(trial, trial.params) for trial in record.trials] == live["trials"], seed
        if record.k == 1:
            assert [best_of(record.best)] == live["best"], seed
    assert accepted > 40  # so that something was compared
