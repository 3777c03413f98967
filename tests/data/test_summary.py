"""A run in ten lines: what was found, what limits it, what to do next; from a study, and from its journal alone."""

import json
import re
from html import unescape

import numpy as np
import pytest

from deepbore import Categorical, Integer, Outcome, Real, SearchSpace, Study, plots
from deepbore.cli.main import main
from deepbore.errors import PointError, SettingError, TrialError

SPACE = {"lr": Real(1e-5, 1e-1, log=True), "k": Integer(1, 9)}


def told(objective, n=30, space=SPACE, **options):
    study = Study(space, seed=0, strategy="random", **options)
    for trial in study.ask(n):
        study.tell(trial, objective(trial))
    return study


def lines_of(study):
    return dict(line.partition(": ")[::2] for line in study.summary().lines)


def inside(trial):
    return (np.log10(trial.params["lr"]) + 3) ** 2 + (trial.params["k"] - 5) ** 2


def test_it_says_what_was_found_in_ten_lines_at_most():
    study = told(inside)
    said = lines_of(study)
    best = study.best_trial
    assert f"in trial {best.id}: lr={best.params['lr']:.6g}, k={best.params['k']}" in said["found"]
    assert said["trials"] == "30, of which 30 complete"
    assert said["progress"] == f"the best came {29 - best.id} trials ago"
    assert "limit" not in said
    assert len(study.summary().lines) <= 10
    assert str(study.summary()) == repr(study.summary()) == "\n".join(study.summary().lines)
    assert "<table>" in study.summary()._repr_html_()


@pytest.mark.parametrize(
    ("objective", "name", "end"),
    [
        (lambda trial: -trial.params["lr"], "lr=0.1", "high of lr"),
        (lambda trial: trial.params["k"], "k=1", "low of k"),
        (lambda trial: np.log(trial.params["lr"]), "lr=1e-05", "low of lr"),
    ],
)
def test_a_bound_that_the_best_trials_lie_on_is_to_be_widened(objective, name, end):
    study = told(objective, n=400)
    assert lines_of(study)["limit"] == f"bounds: the best trials lie at {name}"
    assert f"widen the range, if that makes sense: {end}" in study.summary().advice


def test_a_choice_and_a_best_trial_inside_have_no_bound():
    for objective in (inside, lambda trial: abs(trial.params["k"] - 2)):
        assert not any("bounds" in line for line in told(objective, n=150).summary().lines)


def test_failures_are_counted_with_their_reason_and_come_first():
    def fails(trial):
        return Outcome.failure("out of memory\nmore") if trial.id % 2 else inside(trial)

    study = told(fails)
    assert lines_of(study)["failed"] == "15, 15 of them with: out of memory"
    assert study.summary().advice[0].startswith("mend what fails; study.trials.rerun")


def test_noise_is_the_limit_where_equal_configurations_differ_as_the_best_do():
    draw = np.random.default_rng(0)
    study = Study({"k": Integer(1, 9)}, seed=0)
    study.add({"k": np.repeat(np.arange(1, 10), 4)}, draw.normal(0, 1, 36) + np.repeat(np.arange(9), 4) / 10)
    assert "noise: equal configurations deviate by" in lines_of(study)["limit"]
    assert any("noisy=True" in each for each in study.summary().advice)
    calm = Study({"k": Integer(1, 9)}, seed=0)
    calm.add({"k": np.repeat(np.arange(1, 10), 4)}, draw.normal(0, 1e-3, 36) + np.repeat(np.arange(9.0), 4))
    assert "noise" not in str(calm.summary())


def test_doubted_trials_are_named():
    study = told(lambda trial: -100.0 if trial.id == 3 else inside(trial), n=12)
    assert [trial.id for trial in study.suspicious] == [3]
    assert lines_of(study)["doubted"] == "trial 3"
    assert "study.withdraw(3)" in study.summary().advice[0]


def test_studies_without_values_and_of_several_objectives_have_one():
    assert lines_of(Study(SPACE))["found"] == "no value yet"
    front = told(lambda trial: {"a": trial.params["lr"], "b": 1.0}, directions={"a": "minimize", "b": "minimize"})
    assert lines_of(front)["found"] == "1 trials that no other beats in every value"
    never = told(lambda trial: Outcome(1.0, constraints=[1.0]))
    assert lines_of(never)["found"] == "no feasible value yet"


def test_a_shell_says_the_same_of_a_journal(tmp_path, capsys):
    path = tmp_path / "run.jsonl"
    with told(lambda trial: -trial.params["lr"], n=60, journal=path) as study:
        said = str(study.summary())
    assert main(["summary", str(path)]) == 0
    assert capsys.readouterr().out.strip() == said
    assert main(["report", str(path), "--quick"]) == 0
    printed = capsys.readouterr()
    assert printed.out.strip() == str(tmp_path / "run.html")
    assert printed.err.strip().endswith(said)


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_a_study_as_json_has_all_trials_and_reads_back(tmp_path):
    def objective(trial):
        if trial.id == 1:
            return Outcome.failure("why")
        return Outcome(inside(trial), attributes={"host": "a"}, constraints=[-1.0], reports={1: 0.5, 2: float("nan")})

    study = told(objective, n=4)
    study.ask()
    study.withdraw(2, reason="wrong")
    kept = json.loads(study.to_json(tmp_path / "study.json"))
    assert kept == json.loads((tmp_path / "study.json").read_text())
    assert SearchSpace.from_dict(kept["space"]) == study.space
    assert kept["best"] == [study.best_trial.id]
    assert [trial["status"] for trial in kept["trials"]] == ["complete", "failed", "withdrawn", "complete", "pending"]
    first = kept["trials"][0]
    assert first["values"] == [study.trials[0].value]
    assert first["reports"] == [[1, 0.5], [2, None]]
    assert (first["attributes"], first["constraints"]) == ({"host": "a"}, [-1.0])
    assert kept["trials"][2]["former"][0]["values"] == [inside(study.trials[2])]
    assert json.loads(study.best_trial.to_json()) == kept["trials"][study.best_trial.id]


def test_choices_that_are_objects_have_their_names_in_json():
    from deepbore import Categorical

    study = Study({"layers": Categorical({"one": [64], "two": [64, 64]})}, seed=0)
    trial = study.ask_one()
    study.tell(trial, 1.0)
    assert json.loads(study.to_json())["trials"][0]["params"]["layers"] in ("one", "two")
    json.loads(trial.to_json())


# --- once more -------------------------------------------------------------------------------------------------------


def test_failed_trials_run_again_and_nothing_is_learned_from_their_failures(tmp_path):
    path = tmp_path / "run.jsonl"
    with told(lambda trial: Outcome.failure("bug") if trial.id in (1, 4) else inside(trial), 6, journal=path) as study:
        study.trials.rerun("failed")
        assert [trial.status.name for trial in study.trials].count("WITHDRAWN") == 2
        again = study.ask(2)
        assert [trial.params for trial in again] == [study.trials[row].params for row in (1, 4)]
    loaded = Study.load(path)
    assert [trial.params for trial in loaded.pending] == [trial.params for trial in again]


def test_a_complete_trial_that_runs_again_stays():
    study = told(inside, 3)
    study.trials.rerun(1)
    study.trials.rerun([study.trials[2]])
    assert [trial.params for trial in study.ask(2)] == [study.trials[1].params, study.trials[2].params]
    assert study.trials[1].value == inside(study.trials[1])


@pytest.mark.parametrize(("trials", "error"), [(99, TrialError), ("lost", SettingError), (3, TrialError)])
def test_what_can_not_run_again_is_refused_before_anything_changes(trials, error):
    study = told(inside, 3)
    study.ask()
    with pytest.raises(error):
        study.trials.rerun(trials)
    with pytest.raises(TrialError):
        study.trials.rerun([0, trials])
    assert study.trials[0].status.name == "COMPLETE"


def test_a_shell_queues_failed_trials_again(tmp_path, capsys):
    path = tmp_path / "run.jsonl"
    told(lambda trial: Outcome.failure("bug") if trial.id == 1 else inside(trial), 4, journal=path).close()
    assert main(["rerun", str(path), "0"]) == main(["rerun", str(path)]) == 0
    assert capsys.readouterr().out.splitlines() == ["queued again: 0", "queued again: 1"]
    assert main(["rerun", str(path)]) == 0
    assert capsys.readouterr().out.strip() == "queued again: none"
    assert main(["rerun", str(path), "99"]) == 2
    study = Study.load(path)
    assert [trial.params for trial in study.ask(2)] == [study.trials[0].params, study.trials[1].params]
    assert study.trials[1].status.name == "WITHDRAWN"


def test_a_trial_that_is_named_twice_runs_again_once(tmp_path, capsys):
    for name in ("study", "shell"):
        told(lambda trial: Outcome.failure("bug"), 2, journal=tmp_path / f"{name}.jsonl").close()
    assert main(["rerun", str(tmp_path / "shell.jsonl"), "1", "1"]) == 0
    assert capsys.readouterr().out.strip() == "queued again: 1"
    with Study.load(tmp_path / "study.jsonl") as study:
        study.trials.rerun([1, study.trials[1]])
    for name in ("study", "shell"):
        study = Study.load(tmp_path / f"{name}.jsonl")
        assert [trial.status.name for trial in study.trials] == ["FAILED", "WITHDRAWN"]
        assert study.observations.ledger.queue == [study.trials[1].params]
        study.close()


def conditional():
    """Two branches, one of them with a branch of its own, and a parameter of both."""
    return {
        "optimizer": Categorical(["sgd", "adam"]),
        "momentum": Real(0, 1, when={"optimizer": ["sgd"]}),
        "nesterov": Categorical(["yes", "no"], when={"momentum": ">= 0.5"}),
        "beta": Real(0, 1, when={"optimizer": ["adam"]}),
        "lr": Real(0, 1),
    }


def test_an_edit_drops_what_it_makes_inactive_and_leaves_open_what_it_makes_active():
    study = Study(conditional(), seed=0)
    whole = {"optimizer": "sgd", "momentum": 0.7, "nesterov": "no", "lr": 0.5}
    study.enqueue(whole)
    trial = study.ask_one()
    study.trials.edit(trial, {"momentum": 0.25})
    trial = study.ask_one()
    assert trial.params == {"optimizer": "sgd", "momentum": 0.25, "lr": 0.5}
    study.trials.edit(trial, {"optimizer": "adam", "momentum": None})
    trial = study.ask_one()
    assert trial.params == {"optimizer": "adam", "beta": trial.params["beta"], "lr": 0.5}
    with pytest.raises(PointError, match="inactive parameters must be left out, but 'momentum'"):
        study.trials.edit(trial, {"momentum": 0.1})
    with pytest.raises(PointError, match="parameters must be among"):
        study.trials.edit(trial, {"momentu": 0.1})
    assert study.trials[trial.id].status.name == "PENDING"
    study.trials.edit(trial, {"optimizer": "sgd", "momentum": 0.7, "nesterov": "no"})
    assert study.ask_one().params == whole


def test_a_trial_is_edited_before_it_runs():
    study = told(inside, 2)
    first, second = study.ask(2)
    study.trials.edit(first, {"k": 9})
    assert study.trials[first.id].reason == "edited before it ran"
    assert study.ask_one().params == {**first.params, "k": 9}
    assert [trial.id for trial in study.pending] == [second.id, 4]
    with pytest.raises(TrialError, match="before it runs"):
        study.trials.edit(0, {"k": 1})
    with pytest.raises(PointError):
        study.trials.edit(second, {"k": 99})
    assert study.trials[second.id].status.name == "PENDING"


def test_the_page_and_notebooks_begin_with_the_ten_lines(tmp_path):
    path = tmp_path / "run.jsonl"
    study = Study({"<b>lr": Real(0, 1)}, seed=0, journal=path)
    for k, trial in enumerate(study.ask(4)):
        study.tell(trial, Outcome.failure("<script>alert(1)</script>") if k else 1.0)
    study.close()
    page = plots.report(study.state.observations.ledger.described(study.state.header()))
    first = page.partition("<section>")[2].partition("</section>")[0]
    assert "<h2>In ten lines</h2>" in first
    drawn = unescape(re.sub("<[^>]*>", "", first.replace("</b><span>", ": ").replace("<div><b>", "\n")))
    assert drawn.split("\n")[3:] == [*str(study.summary()).splitlines(), ""]
    assert "<script>" not in first
    assert "&lt;b&gt;lr=" in first
    assert study.summary()._repr_html_() in study._repr_html_()
    assert main(["report", str(path), "--quick"]) == 0
    assert first in path.with_suffix(".html").read_text()


@pytest.mark.parametrize("kind", ["empty", "preferences", "several"])
def test_runs_of_all_kinds_have_ten_lines_at_most(kind):
    more = {"preferences": {"preferences": True}, "several": {"directions": ["minimize", "maximize"]}}.get(kind, {})
    study = Study({"x": Real(0, 1)}, seed=0, **more)
    trials = study.ask(3)
    if kind == "preferences":
        study.prefer(trials[0], trials[1])
    elif kind == "several":
        study.tell(trials[0], [1.0, 2.0])
    page = plots.report(study.state.observations.ledger.described(study.state.header()))
    lines = page.partition('<div class="lines">')[2].partition("</section>")[0].count("<div>")
    assert 3 <= lines == len(str(study.summary()).splitlines()) <= 10
