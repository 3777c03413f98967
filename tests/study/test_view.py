"""What there is to read of a study."""

from deepbore import Budget, Categorical, Integer, Real, SearchSpace, Study
from deepbore.cli.inspect import summary
from plane import LINE


# regression: each of these was wrong once
def test_trials_are_what_each_is_by_itself():
    space = SearchSpace({"x": Real(0, 1), "k": Integer(1, 4), "act": Categorical(["a", None], when={"k": [1, 2]})})
    study = Study(space, direction="maximize", seed=0, budget=Budget("epochs", 1, 9))
    study.add({"x": [0.1, 0.2], "k": [1, 3], "act": [None, "a"]}, [1.0, 3.0], budgets=[1, 3])
    for number in range(14):
        (trial,) = study.ask()
        if number % 3 == 0:
            study.tell(trial, failed=True)
        elif number % 5:
            study.tell(trial, float(number), noise=0.1)
    assert study.trials == [study.observations.trial(row) for row in range(len(study.observations))]
    assert [trial.id for trial in study.pending] == study.observations.columns.pending_rows.tolist() != []


def test_why_there_is_no_best_value_is_told_as_it_is():
    several = Study(LINE, directions=["minimize", "minimize"])
    (trial,) = several.ask()
    several.tell(trial, [1.0, 2.0], constraints=[1.0])
    assert summary(several.observations.ledger) == "no feasible value yet (1 trials)"
    earlier = Study(LINE)
    earlier.add({"x": [0.1, 0.2]}, [1.0, 2.0], task="old")
    assert summary(earlier.observations.ledger) == "no value yet (2 trials)"
