"""What a journal says without torch: the same trials, and the same complaints, as with it."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import deepbore as db
from deepbore import Budget, Integer, Outcome, Real, SearchSpace, Study
from deepbore.data.journal import Journal
from deepbore.data.log import written
from deepbore.data.observations import Observations
from deepbore.data.replay import read_record, replay
from deepbore.data.trial import checked_directions
from deepbore.errors import JournalError, SettingError
from deepbore.plots import report
from deepbore.plots.sources import record_of
from plane import LINE
from processes import ROOT

NAN = float("nan")

JOURNALS = ROOT / "tests" / "journals"

SPACE = SearchSpace({"x": Real(0, 1), "k": Integer(1, 9)})


@pytest.fixture
def journal(tmp_path):
    """A journal with all that a line may say."""
    path = tmp_path / "run.jsonl"
    study = Study(SPACE, seed=1, journal=path)
    study.add({"x": [0.1, 0.2, 0.3], "k": [1, 2, 3]}, [3.0, NAN, 1.0])
    study.add({"x": 0.5, "k": 5}, 0.01, task="last year")
    study.enqueue({"x": 0.25, "k": 7})
    study.enqueue({"x": 0.75, "k": 8})
    first, second, third, _ = study.ask(4)
    study.tell(first, Outcome(0.5, constraints=[-1.0, 0.0], attributes={"epochs": 3}))
    study.tell(second, Outcome(0.25, constraints=[1.0, 0.0]))
    study.tell(third, Outcome.failure("out of memory"))
    study.enqueue({"x": 1.0, "k": 9})
    study.close()
    return path


def test_a_record_has_the_trials_of_the_study(journal):
    record, study = read_record(journal), Study.load(journal)
    assert record.trials == study.trials
    assert record.best == study.best_trial
    assert (record.best.id, record.n_asked, len(record.queue)) == (4, 4, 1)
    assert SearchSpace.from_dict(record.space) == study.space


@pytest.mark.parametrize("name", ["conditional", "maximize"])
def test_journals_of_version_0_1_are_read(name):
    record, study = read_record(JOURNALS / f"{name}.jsonl"), Study.load(JOURNALS / f"{name}.jsonl")
    assert record.trials == study.trials
    assert record.best == study.best_trial
    assert record.directions == study.observations.directions


def test_many_earlier_results_with_constraints_and_a_conditional_parameter(tmp_path):
    space = SearchSpace.from_dict(
        {
            "act": {"type": "categorical", "choices": ["relu", None]},
            "slope": {"type": "real", "low": 0, "high": 1, "when": {"act": ["relu"]}},
        }
    )
    study = Study(space, journal=tmp_path / "run.jsonl")
    columns = {"act": ["relu", None, "relu"], "slope": [0.5, None, 0.25]}
    study.observations.add(columns, [1.0, 2.0, 3.0], constraints=[[1.0], [NAN], [-1.0]], budgets=[1, NAN, 9])
    study.close()
    assert read_record(tmp_path / "run.jsonl").trials == study.trials


def test_a_space_with_forbidden_combinations_and_fixed_values_is_read(tmp_path):
    space = SearchSpace({"a": Integer(1, 9), "b": Integer(1, 9)}, constraints=["a < b"])
    study = Study(space, journal=tmp_path / "run.jsonl")
    study.fix({"a": 2})
    for trial in study.ask(3):
        study.tell(trial, trial.params["b"])
    study.close()
    record = read_record(tmp_path / "run.jsonl")
    assert list(record.space) == ["a", "b"]
    assert record.trials == study.trials


def test_reading_needs_no_torch(journal):
    code = (
        "import sys; from pathlib import Path; from deepbore.data.replay import read_record; "
        f"read_record(Path({str(journal)!r})); print({{'torch', 'lightning'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def complaint(read):
    """What is said of a journal, without the words for rows and the like that the two readers choose."""
    try:
        read()
    except JournalError as error:
        return str(error).split(":")[0]
    return None


def test_damage_is_noticed_as_by_a_study(journal):
    content = journal.read_bytes()
    draws = random.Random(0)
    for _ in range(60):
        place, bit = draws.randrange(len(content)), 1 << draws.randrange(8)
        journal.write_bytes(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
        noticed = complaint(lambda: read_record(journal))
        assert noticed == complaint(lambda: Study.load(journal))
        assert noticed is not None or place >= len(content) - 1
    for place in range(0, len(content), 97):  # a crash leaves a beginning
        journal.write_bytes(content[:place])
        assert complaint(lambda: read_record(journal)) == complaint(lambda: Study.load(journal))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"event": "asked", "trial": 7, "params": {}}, "the next trial is 15"),
        ({"event": "asked", "trial": 15, "params": {"y": 1}}, "parameters must be among"),
        ({"event": "told", "trial": 99, "value": 1.0}, "but got 99"),
        ({"event": "told", "trial": 0, "value": 1.0}, "told once"),
        ({"event": "told", "trial": 14, "value": "much"}, "must be a number"),
        ({"event": "added", "params": {"x": 0.5, "k": 1}, "value": [1.0, 2.0]}, "objective values"),
        ({"event": "shouted"}, "can't come here"),
    ],
)
def test_what_contradicts_is_refused_by_line(tmp_path, line, says):
    path = tmp_path / "run.jsonl"
    lines = (JOURNALS / "maximize.jsonl").read_text().splitlines()[:-1]  # without the torn one
    path.write_text("\n".join([*lines, json.dumps(line)]) + "\n")
    with pytest.raises(JournalError, match=says) as caught:
        read_record(path)
    assert f"at line {len(lines) + 1} of {path}" in str(caught.value)


def front_of(values, second):
    """The rows of the front of values to minimise by the first, and by the second in this direction."""
    observations = Observations(LINE, ["minimize", second])
    observations.add({"x": [0.1 * k for k in range(len(values))]}, values)
    return [trial.id for trial in observations.front]


def test_several_values_have_a_front_and_no_best(tmp_path):
    values = [(1.0, 1.0), (2.0, 2.0), (2.0, 3.0), (0.5, 1.0), (1.0, 1.0)]
    assert front_of(values, "maximize") == [3, 2]
    assert front_of(values, "minimize") == [3]
    assert front_of(values[:2] + values[4:], "minimize") == [0]
    (tmp_path / "run.jsonl").write_text(
        json.dumps(
            {"event": "created", "version": 1, "space": SPACE.to_dict(), "directions": ["minimize"] * 2, "seed": 0}
        )
        + "\n"
    )
    with pytest.raises(SettingError, match="no single best trial"):
        _ = read_record(tmp_path / "run.jsonl").best


def test_directions_are_checked():
    assert checked_directions("maximize") == ("maximize",)
    for wrong in ("up", [], ["minimize", 1]):
        with pytest.raises(SettingError):
            checked_directions(wrong)


# regression: each of these was wrong once
def test_a_record_has_later_notes_of_the_trial_that_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"
    space = db.SearchSpace({"x": db.Real(0, 1)})
    study = db.Study(space, budget=db.Budget("epochs", 1, 9), n_initial=3, journal=path)
    for trial in study.ask(3):
        study.tell(trial, trial.id)
    (promoted,) = study.ask()
    study.annotate(promoted.resume_from, {"host": "n7"})
    study.close()
    assert read_record(Path(path)).trials[3].resume_from.attributes == {"host": "n7"}


def test_the_record_of_a_study_is_that_of_its_journal(by_budget):
    study, record = by_budget
    made = record_of(study)
    assert made.best.id == record.best.id == study.best_trial.id == 3
    assert made.header == {name: value for name, value in record.header.items() if name in made.header}
    assert "0.3 in trial 3" in report(study)


NINE_EPOCHS = Budget("epochs", 1, 9)

RUN = {"event": "created", "version": 2, "id": "a", "space": LINE.to_dict(), "directions": ["minimize"], "seed": 0}

ASKED = [{"event": "asked", "trial": row, "params": {"x": 0.1 + row / 10}} for row in range(2)]


@pytest.mark.parametrize(
    "events",
    [
        [
            RUN,
            *ASKED,
            {"event": "told", "trial": 0, "value": 1.0, "constraints": [1.0, 2.0]},
            {"event": "told", "trial": 1, "value": 1.0, "constraints": [1.0]},
        ],
        [{**RUN, "budget": NINE_EPOCHS.to_dict()}, {**ASKED[0], "budget": 5}],
        [
            {**RUN, "budget": NINE_EPOCHS.to_dict()},
            {"event": "added", "columns": {"x": [0.1, 0.2]}, "values": [1.0, 2.0], "budgets": [9.0, 5.0]},
        ],
        [RUN, *ASKED, {"event": "annotated", "trial": 2, "attributes": {"seen": True}}],
    ],
    ids=["constraints", "rung", "rung of a result", "attributes"],
)
def test_a_record_says_what_a_replay_says_of_a_contradictory_journal(tmp_path, events):
    path, crc, lines = Path(tmp_path / "run.jsonl"), 0, b""
    for event in events:
        line, crc = written(event, 2, crc)
        lines += line
    path.write_bytes(lines)
    said = []
    for look in (read_record, lambda path: replay(Journal(path))):
        with pytest.raises(JournalError) as error:
            look(path)
        said.append(str(error.value))
    assert said[0] == said[1]
