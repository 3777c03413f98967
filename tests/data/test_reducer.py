"""One reducer of events: what a look shows and what a study goes on with are the same."""

from deepbore import Outcome, Real, SearchSpace
from deepbore.data.journal import Journal
from deepbore.data.observations import Observations
from deepbore.data.replay import read_record, replay

SPACE = SearchSpace({"x": Real(0, 1)})


def test_results_with_constraints_that_come_after_trials_without(tmp_path):
    journal = Journal.begin(tmp_path / "run.jsonl", {"space": SPACE.to_dict(), "directions": ["minimize"], "seed": 0})
    observations = Observations(SPACE, journal=journal)
    first, second, third = observations.reserve(SPACE.encode([{"x": each} for each in (0.25, 0.5, 0.75)]))
    observations.tell(second, Outcome(2.0, attributes={"a": 1}))
    observations.annotate(first, {"b": 2})
    observations.annotate(second, {"a": 3, "c": 4})
    observations.add({"x": [0.1, 0.2]}, [5.0, 0.5], constraints=[[1.0], [-1.0]])
    observations.tell(first, Outcome(3.0, constraints=[0.5]))
    observations.tell(third, failed=True, reason="lost")
    journal.close()
    again = replay(Journal(tmp_path / "run.jsonl")).observations
    assert again.trials() == observations.trials() == read_record(tmp_path / "run.jsonl").trials
    assert again.ledger.ranking.n_since_best == observations.ledger.ranking.n_since_best == 2
    assert again.best.id == observations.best.id == read_record(tmp_path / "run.jsonl").best.id == 4
    assert [list(trial.attributes) for trial in again.trials()[:2]] == [["b"], ["a", "c"]]
