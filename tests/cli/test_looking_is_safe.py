"""Looking at runs from elsewhere: regular files within limits, escaped text, and one bad folder is one line."""

import json
import os
from pathlib import Path

import pytest

from deepbore import Study
from deepbore.cli.compare import grouped
from deepbore.cli.load import load_run
from deepbore.cli.main import main
from deepbore.data.journal import LONGEST_LINE, Journal, replace_file
from deepbore.data.replay import read_record
from deepbore.data.runs import Run, plain_data
from deepbore.errors import DeepBoreError, JournalError, SettingError
from written_runs import SPACE, append_lines, write_journal, write_run

NAME = "lr\x1b]0;owned\x07\x1b[2J"
LINE = {"x": {"type": "real", "low": 0, "high": 1}}
FILES = ["journal.jsonl", "config.yaml", "journal.jsonl.times", "journal.jsonl.lock"]


def pipe(path):
    os.mkfifo(path)


def endless(path):
    path.symlink_to("/dev/zero")


def loop(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [pipe, Path.mkdir, endless, loop], ids=["pipe", "folder", "device", "loop"])
def test_what_stands_in_the_place_of_a_file_is_not_waited_for(name, place, tmp_path, capsys):
    run = write_run(tmp_path / "runs" / "bad", [1.0, 2.0])
    write_run(tmp_path / "runs" / "good", [1.0, 2.0])
    append_lines(run, 2)
    (run / name).unlink(missing_ok=True)
    place(run / name)
    assert main(["list", str(tmp_path / "runs")]) == 0
    listed = capsys.readouterr().out.splitlines()
    is_run = name != FILES[0] or place in (pipe, Path.mkdir)  # links are passed over
    assert [line.split()[0] for line in listed[1:]] == ["bad", "good"][not is_run :]
    for command in (["best"], ["report", "--quick"], ["watch", "--quick", "--every", "0.01"]):
        assert main([*command, str(run)]) in (0, 2)


BOMB = "z0: &z0 {a: 1}\n" + "".join(
    f"z{k}: &z{k} {{{', '.join(f'k{j}: *z{k - 1}' for j in range(9))}}}\n" for k in range(1, 10)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(f"a{k}: &a{k} {{<<: [*a{k - 1}, *a{k - 1}]}}\n" for k in range(1, 40))


@pytest.mark.parametrize(
    "text",
    [BOMB + "loop: *z9", MERGED + "loop: *a39", "loop: &a [*a]", "[" * 5000, "loop: 2026-99-99", "x: !!int y", "x: 0b_",
     "x: !!timestamp y", "\x00", "!!python/object/apply:os.system ['touch PWNED']", "x: " + "9" * 5000,
     "- 1\n" * 50_000],
    ids=range(12),
)  # fmt: skip
def test_a_hostile_configuration_is_none(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = write_run(tmp_path / "run", [1.0, 2.0], config=text)
    other = write_run(tmp_path / "other", [1.0, 2.0])
    with pytest.raises(SettingError):
        plain_data(text)
    assert Run(run).settings == {}
    assert len(grouped([Run(run), Run(other)])) == 2
    assert not Path("PWNED").exists()


def test_keys_of_any_kind_are_compared(tmp_path):
    text = "loop: {1: 2, a: 3, null: 4, 2026-01-01: 5}"
    runs = [Run(write_run(tmp_path / name, [1.0], config=text)) for name in ("x-1", "x-2")]
    assert len(grouped(runs)) == 1


def test_a_line_of_a_gigabyte_is_not_read(tmp_path):
    write_journal(tmp_path / "run.jsonl", [], space=LINE)
    with (tmp_path / "run.jsonl").open("r+b") as file:
        file.truncate(10**9)  # of zeros, which take no place on the disk
    with pytest.raises(JournalError, match=f"line 2 of .* must have at most {LONGEST_LINE:,} bytes"):
        read_record(tmp_path / "run.jsonl")
    journal = Journal.begin(tmp_path / "other.jsonl", {"space": LINE})
    with pytest.raises(JournalError, match="an event must have at most"):
        journal.write({"event": "annotated", "attributes": {"all": "x" * LONGEST_LINE}})
    journal.write({"event": "annotated", "attributes": {}})
    journal.close()


@pytest.mark.parametrize(
    "budget",
    [{"low": 1e-300, "high": 1e300, "factor": 1.0000001}, {"low": 1, "high": 10**400}, {"low": 1, "high": 1e999}],
    ids=["many rungs", "a long number", "infinite"],
)
def test_a_budget_without_end_is_refused(budget, tmp_path):
    write_journal(tmp_path / "run.jsonl", [], space=LINE)
    header = json.loads((tmp_path / "run.jsonl").read_text())
    line = json.dumps({**header, "version": 1, "budget": {"unit": "e", **budget}}).replace("Infinity", "1e999")
    (tmp_path / "run.jsonl").write_text(line + "\n")
    with pytest.raises(JournalError, match="declares no run"):
        read_record(tmp_path / "run.jsonl")


def test_no_control_character_reaches_the_terminal_or_the_page(tmp_path, capsys, caplog):
    folder = tmp_path / "run\x1b[31m\u202e"
    events = [
        {"event": "asked", "trial": 0, "params": {NAME: 0.5, "c\u202e": "a\x1b[2J\nb"}},
        {"event": "told", "trial": 0, "value": 1.0, "attributes": {"\x9b": "\x1b"}},
        {"event": "asked", "trial": 1, "params": {NAME: 0.7, "c\u202e": "a\x1b[2J\nb"}},
        {"event": "failed", "trial": 1, "reason": "\x1b[2Jout\u2066", "attributes": {"traceback": "\x1b"}},
    ]
    choices = {"type": "categorical", "choices": ["a\x1b[2J\nb", "\u202e"]}
    space = {NAME: {"type": "real", "low": 0, "high": 1}, "c\u202e": choices}
    foreign = {"labels": {"class_path": "evil\x1b[2J.C"}, "classifier": {"class_path": "evil\x1b.C"}}
    write_journal(folder / "journal.jsonl", events, space=space, recipe=foreign)
    (folder / "config.yaml").write_text("# \x1b[2J \u202e")
    other = tmp_path / "other" / "journal.jsonl"
    write_journal(other, [{"event": "asked", "trial": 0, "params": {"\x1b": 1}}], space=LINE)
    for command in ("best", "report --quick", "plot", "report"):
        assert main([*command.split(), str(folder)]) == 0
    assert main(["list", str(tmp_path)]) == 0
    assert main(["compare", str(folder), str(folder), "--output", str(tmp_path / "both.png")]) == 0
    assert main(["best", str(other.parent)]) == 2
    shown = "".join(capsys.readouterr()) + caplog.text
    assert {c for c in shown if not c.isprintable()} <= {"\n"}
    page = (folder / "report.html").read_text().partition('<script id="data"')[0]
    assert {c for c in page.partition("<body>")[2] if not c.isprintable()} <= {"\n"}


DAMAGED = {
    "no class_path": {"labels": {"init_args": {}}},
    "a number": {"classifier": 5},
    "a list": [1],
    "an unknown part": {"z": 1},
    "an unknown setting": {"labels": {"class_path": "deepbore.labels.ThresholdLabels", "init_args": {"a": 1}}},
    "a text for turns": {"turns": "Turns"},
    "a part that was not kept": {"given": ["candidates"]},
    "another kind": {"labels": {"class_path": "deepbore.classifiers.KernelPLS", "init_args": {}}},
    "settings in a list": {"labels": {"class_path": "deepbore.labels.ThresholdLabels", "init_args": [1]}},
    "half a wrapper": {"labels": {"class_path": "deepbore.labels.EmphasiseChanges", "init_args": {}}},
}


@pytest.mark.parametrize("recipe", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_recipe_is_refused_clearly(recipe, tmp_path):
    run = write_run(tmp_path / "run", [1.0, 2.0], recipe=recipe)
    for door in (Study.load, load_run):
        with pytest.raises(DeepBoreError):
            door(run)
    assert main(["report", "--quick", str(run)]) in (0, 2)


@pytest.mark.parametrize(
    "space",
    [[], {"x": {}}, {"x": {"type": "real"}}, {"x": {"type": "real", "low": "0", "high": 1}}, {"x": {"type": ["real"]}},
     {"x": {"type": "real", "low": 1, "high": 0}}, {"x": {"type": "categorical", "choices": "ab"}},
     {"x": {"type": "integer", "low": 0, "high": 10**400}}, {"x": {"type": "ordinal", "choices": [[1], [2]]}}],
    ids=range(9),
)  # fmt: skip
def test_a_damaged_space_is_refused_clearly(space, tmp_path):
    write_journal(tmp_path / "journal.jsonl", [], space=space)
    for door in (read_record, Study.load, load_run):
        with pytest.raises(DeepBoreError):
            door(tmp_path / "journal.jsonl")


@pytest.mark.parametrize("value", ["0.5", [0.5], None, True, {"a": 1}, 10**400])
def test_a_value_of_another_kind_is_refused_clearly(value, tmp_path):
    events = [{"event": "asked", "trial": 0, "params": {"x": value}}]
    write_journal(tmp_path / "asked.jsonl", events, space=LINE)
    write_journal(
        tmp_path / "added.jsonl",
        [{"event": "added", "columns": {"x": [0.5, value or ""]}, "values": [1, 2]}],
        space=LINE,
    )
    for name in ("asked", "added"):
        with pytest.raises(JournalError, match="can't have the value"):
            read_record(tmp_path / f"{name}.jsonl")


@pytest.mark.parametrize(
    "line",
    ['{"trial": 1e999, "began": 0, "ended": 1}', '{"trial": 0, "began": 0, "ended": 1e300}', "[" * 5000, "9" * 5000],
)
def test_a_line_of_times_that_says_nothing_is_passed_over(line, tmp_path):
    run = write_run(tmp_path / "run", [1.0, 2.0])
    append_lines(run, 2)
    with (run / "journal.jsonl.times").open("a") as file:
        file.write("\n" + line)
    assert main(["report", "--quick", str(run)]) == 0
    assert "Timeline of workers" in (run / "report.html").read_text()


def test_a_folder_that_cant_be_read_hides_no_other(tmp_path, capsys, monkeypatch):
    write_run(tmp_path / "good", [1.0])
    (tmp_path / "secret").mkdir()
    (tmp_path / "x.jsonl").mkdir()
    (tmp_path / "y.jsonl").write_bytes(b"\x00\xff")
    whole = Path.iterdir

    def iterdir(self):
        if self.name == "secret":
            raise PermissionError(13, "denied", str(self))
        return whole(self)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert main(["list", str(tmp_path)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["good"]


def test_a_disk_that_has_become_read_only_is_named(tmp_path, monkeypatch):
    def refuse(self, *args, **more):
        raise OSError(30, os.strerror(30), str(self))

    for name in ("open", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    with pytest.raises(JournalError, match="Read-only file system"):
        replace_file(tmp_path / "run.jsonl.ckpt", b"x")


def test_a_space_of_all_types_is_read(tmp_path):
    assert len(read_record(write_run(tmp_path / "run", [1.0, None, "pending"]) / "journal.jsonl").space) == len(SPACE)


@pytest.mark.parametrize("settings", [{"iterations": 10**9}, {"rows": 1e300}, {"length_scale": 10**400}])
def test_a_page_trains_no_model_of_settings_without_measure(settings, tmp_path, caplog):
    part = {"class_path": "deepbore.classifiers.KernelPLS", "init_args": settings}
    run = write_run(tmp_path / "run", [1.0, 2.0], recipe={"classifier": part})
    assert load_run(run).classifier.iterations < 10**4
    assert "which may take long" in caplog.text
