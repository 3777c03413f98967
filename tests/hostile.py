"""Hostile run directories: files of real runs with structural mutations, every door that looks at them, and a watch.

The watch (`sys.addaudithook`) notes each import, `exec`, start of a process, socket and write that looking at a run has
no business with. As a program it runs many mutations: `python tests/hostile.py SEED COUNT`.
"""

import contextlib
import copy
import hashlib
import io
import json
import logging
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from pathlib import Path

import torch

from deepbore import Budget, Categorical, Integer, Ordinal, Outcome, Real, SearchSpace, Study
from deepbore.cli.load import load_run
from deepbore.cli.main import main
from deepbore.dashboard.artifacts import artifact_of
from deepbore.dashboard.comparing import compared as compared_on_a_page
from deepbore.dashboard.live import Live
from deepbore.dashboard.runs import Shelf
from deepbore.data import log
from deepbore.data.inbox import Inbox
from deepbore.data.outcome import Status
from deepbore.data.replay import read_record
from deepbore.errors import DeepBoreError
from deepbore.loop.state import MAGIC

SECONDS, MEGABYTES = 10, 1000  # that one look may take
CANARY = "open({path!r}, 'w').write('x')\ndef f(*args, **more): return 0\nclass C:\n    pass\n"


# --- the watch -------------------------------------------------------------------------------------------------------


class Watch:
    """Notes what looking must not do, while it is `on`."""

    def __init__(self):
        self.on, self.allowed, self.seen = False, (), []
        sys.addaudithook(self.note)  # for as long as the process lives

    def note(self, event, args):
        if not self.on:
            return
        if event == "open":
            path, mode, flags = args
            writes = (mode is not None and set(str(mode)) & set("wax+")) or (flags or 0) & (os.O_WRONLY | os.O_RDWR)
            if writes and not (isinstance(path, int) or any(part in str(path) for part in self.allowed)):
                self.seen.append(f"writes {path}")
        elif event == "import" and str(args[0]).startswith("evil"):
            self.seen.append(f"imports {args[0]}")
        elif event == "exec" and "evil" in getattr(args[0], "co_filename", ""):
            self.seen.append(f"executes {args[0].co_filename}")
        elif event == "compile" and "evil" in str(args[1]):
            self.seen.append(f"compiles {args[1]}")
        elif event in FORBIDDEN:
            self.seen.append(f"{event} {args!r:.200}")


FORBIDDEN = {
    "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.kill",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "pickle.find_class", "shutil.rmtree",
    "urllib.Request", "os.rmdir", "os.chmod", "os.symlink", "os.link",
}  # fmt: skip


class TookLong(BaseException):
    """A look has taken ten seconds of CPU."""


def _give_up(*_):
    raise TookLong


class Heard(logging.Handler):
    """All log messages."""

    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


# --- runs to begin with ----------------------------------------------------------------------------------------------

MIXED = SearchSpace(
    {
        "lr": Real(1e-5, 0.1, log=True),
        "step": Real(0, 1, step=0.25),
        "units": Integer(16, 512, log=True),
        "depth": Ordinal([1, 2, 4]),
        "optimizer": Categorical(["sgd", "adam", None]),
        "momentum": Real(0, 0.99, when={"optimizer": ["sgd"]}),
    },
    constraints=["units * depth <= 1024"],
)
PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
PICTURE = b"\x89PNG\r\n\x1a\n"
CONFIG = {
    "seed_everything": 1,
    "problem": {"class_path": "deepbore.problems.Branin", "init_args": {}},
    "model": {"class_path": "deepbore.classifiers.KernelPLS", "init_args": {"rows": 200}},
    "data": {"labels": {"class_path": "deepbore.labels.ValueGradedLabels", "init_args": {"gamma": 0.5}}},
    "loop": {"n_trials": 20, "seed": 0},
}


def write_runs(folder):
    """Four small runs of different kinds, by their names."""
    mixed = Study(MIXED, seed=0, journal=folder / "mixed" / "journal.jsonl", n_initial=4)
    for row, trial in enumerate(mixed.ask(4)):
        outcome = Outcome.failure("out of memory") if row == 1 else Outcome(row * 0.5, attributes={"epoch": row})
        mixed.tell(trial, outcome)
    (trial,) = mixed.ask()
    trial.log({"accuracy": 0.5, "loss": 2.0})
    trial.log("accuracy", 0.75)
    trial.log_artifact(b"epoch,loss", "losses.csv")
    trial.log_artifact(PICTURE, "picture.png")
    mixed.tell(trial, 0.1)
    mixed.trials.note("odd", trial, ["looked at"])
    mixed.trials.note("of the run", tags=["baseline"])
    mixed.annotate(trial, {"note": "good"})
    mixed.enqueue({"lr": 0.01, "step": 0.5, "units": 32, "depth": 1, "optimizer": "adam"})
    mixed.correct(trial, 0.2)
    mixed.withdraw(trial, "a wrong value")
    mixed.fix({"depth": 2})
    mixed.ask()
    rungs = Study(PLANE, seed=0, journal=folder / "rungs" / "journal.jsonl", budget=Budget("epochs", 1, 9), n_initial=3)
    for _ in range(5):
        (trial,) = rungs.ask()
        rungs.tell(trial, trial.params["x"])
    wishes = Study(PLANE, seed=0, journal=folder / "wishes" / "journal.jsonl", preferences=True, n_initial=3)
    first, second, third = wishes.ask(3)
    wishes.prefer(first, second)
    wishes.prefer(third, first)
    several = Study(
        PLANE, seed=0, journal=folder / "several" / "journal.jsonl", directions=["minimize", "maximize"], n_initial=3
    )
    several.add({"x": [0.1, 0.2], "y": [0.3, 0.4]}, [[1.0, 2.0], [None, None]], task="before")
    for trial in several.ask(3):
        several.tell(trial, Outcome([trial.params["x"], trial.params["y"]], constraints=[trial.params["x"] - 0.9]))
    for study in (mixed, rungs, wishes, several):
        study.close()
        write_commands(study.observations.journal)
    for run in folder.iterdir():
        (run / "config.yaml").write_text(json.dumps(CONFIG))
        (run / "journal.jsonl.times").write_text(
            "".join(json.dumps({"trial": k, "began": 100.0 + k, "ended": 101.0 + k}) + "\n" for k in range(5))
        )
    return folder


def write_commands(journal):
    """Commands that wait for a run, and one that was done."""
    inbox = Inbox(journal.path, journal.run_id)
    inbox.put("note", note="done")
    inbox.take(lambda _: None)
    for said in COMMANDS:
        inbox.put(**said)


COMMANDS = [
    {"verb": "withdraw", "trials": [0], "reason": "odd"},
    {"verb": "enqueue", "params": {"x": 0.5}},
    {"verb": "fix", "params": {"depth": 2}},
    {"verb": "note", "note": "waits", "tags": ["late"], "trial": 1},
]


# --- mutations -------------------------------------------------------------------------------------------------------

EVIL_PARTS = [
    {"class_path": path, "init_args": args}
    for path, args in [
        ("evil.C", {}),
        ("evil_package.evil.f", {}),
        ("deepbore.problems.FunctionProblem", {"function": "evil.f", "space": ""}),
        ("deepbore.problems.base.FunctionProblem", {"function": "evil.f", "space": ""}),
        ("deepbore.cli.run_cli.LightningCLI", {"args": ["fit"]}),
        ("deepbore.__main__.main", {}),
        ("deepbore.cli.__main__.main", {}),
        ("deepbore.loop.lightning.Trainer", {"callbacks": "evil.C", "logger": "evil.C"}),
        ("deepbore.evaluators.ProcessEvaluator", {"objective": "evil.f"}),
        ("deepbore.evaluators.ExecutorEvaluator", {"objective": "evil.f", "executor": "evil.C"}),
        ("deepbore.classifiers.NetworkClassifier", {"network": "evil.f"}),
        ("deepbore.classifiers.MLPClassifier", {"network": "evil.f", "hidden": [1]}),
        ("deepbore.classifiers.KernelPLS", {"rows": 100}),
        ("deepbore.classifiers.PerColumn", {"classifier": {"class_path": "evil.C"}}),
        ("deepbore.classifiers.Training", {"steps": 2}),
        ("deepbore.labels.ThresholdLabels", {"gamma": {"class_path": "evil.C"}}),
        ("deepbore.strategies.Turns", {"strategies": [{"class_path": "evil.C"}]}),
        ("deepbore.candidates.GreedyBatch", {"base": {"class_path": "deepbore.classifiers.KernelPLS"}}),
        ("deepbore.data.Budget", {"unit": "e", "low": 1e-300, "high": 1e300, "factor": 1.0000001}),
        ("os.system", {"command": "touch PWNED"}),
        ("builtins.exec", {}),
        ("", {}),
    ]
]
TEXTS = [
    "", "evil", "evil.f", "evil.C", "lr\x1b]0;owned\x07\x1b[2J", "\u202egnirts", "\x00", "a\nb\r\tc", "\ud800",
    "é" * 50, "$\\frac{$", "<script>evil</script>", "{0.__class__}", "%s%n", "a" * 10**5, "=cmd|' /C calc'!A0",
    "x" + "\u0301" * 500, "NaN", "1e999", "real", "integer", "ordinal", "categorical", "told", "failed", "asked",
    "added", "preferred", "created", "x ** 9 ** 9 <= 1", "units * units * units < 1e99", "lr == 5",
    "(" * 300 + "lr" + ")" * 300 + " < 1", "__import__('evil') < lr", "minimize",
]  # fmt: skip
NUMBERS = [
    0,
    -1,
    1,
    2,
    3,
    7,
    10**6,
    10**18,
    10**400,
    -(10**400),
    0.5,
    1e-320,
    1e-300,
    1e300,
    1e308,
    -1e308,
    1e15,
    2**63,
    -0.0,
    1.5,
]


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


def hostile(draw):
    """A value that nobody has asked for."""
    return draw.choice(
        [
            lambda: None,
            lambda: draw.random() < 0.5,
            lambda: draw.choice(NUMBERS),
            lambda: draw.choice(TEXTS),
            lambda: copy.deepcopy(draw.choice(EVIL_PARTS)),
            lambda: [],
            lambda: {},
            lambda: nested(draw.choice([3, 50, 400])),
            lambda: [draw.choice(NUMBERS)] * draw.choice([1, 2, 3, 10**4]),
            lambda: {draw.choice(TEXTS): draw.choice(NUMBERS)},
            lambda: {"unknown": draw.choice(TEXTS)},
            lambda: {"type": draw.choice(TEXTS), "low": draw.choice(NUMBERS), "high": draw.choice(NUMBERS)},
            lambda: {"unit": "e", "low": draw.choice(NUMBERS), "high": draw.choice(NUMBERS), "factor": 1.0000001},
        ]
    )()


def places(data, path=()):
    """All places in nested data."""
    yield path
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, (list, tuple)) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def at(data, path):
    for key in path:
        data = data[key]
    return data


def mutated(data, draw):
    """Nested data with one change in its structure."""
    path = draw.choice(list(places(data)))
    if not path:
        return hostile(draw) if draw.random() < 0.2 else mutated(data, draw) if data else hostile(draw)
    parent, key = at(data, path[:-1]), path[-1]
    if isinstance(parent, tuple):
        return mutated(data, draw)
    match draw.randrange(6):
        case 0 | 1:
            parent[key] = hostile(draw)
        case 2:
            del parent[key]
        case 3:
            other = copy.deepcopy(at(data, draw.choice(list(places(data)))))
            parent[key] = other
        case 4 if isinstance(parent, dict):
            parent[draw.choice(TEXTS)] = parent.pop(key)
        case 4:
            parent.insert(key, hostile(draw))
        case 5 if isinstance(parent[key], (int, float)) and not isinstance(parent[key], bool):
            parent[key] = draw.choice(NUMBERS)
        case _:
            parent[key] = [parent[key]] if draw.random() < 0.5 else str(parent[key])
    return data


def mutate_journal(path, draw):
    events = [json.loads(line) for line in path.read_text().splitlines()]
    for event in events:
        event.pop("crc")
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        row = 0 if draw.random() < 0.5 else draw.randrange(len(events))
        match draw.randrange(8):
            case 0:
                events.insert(draw.randrange(len(events)) + 1, copy.deepcopy(events[row]))
            case 1 if row:
                del events[row]
            case _:
                events[row] = mutated(events[row], draw)
    whole, crc = b"", 0
    for event in events:
        try:
            line, crc = log.written(event, 2, crc)
        except (TypeError, ValueError):
            line = b'{"event": "told", "trial": 0, "value": 1e999}\n'
        whole += line
    if draw.random() < 0.1:
        whole = mutate_bytes(whole, draw)
    path.write_bytes(whole)


def mutate_bytes(content, draw):
    content = bytearray(content)
    for _ in range(draw.choice([1, 3, 30])):
        match draw.randrange(3):
            case 0 if content:
                content[draw.randrange(len(content))] = draw.randrange(256)
            case 1:
                del content[draw.randrange(len(content) + 1) :]
            case _:
                place = draw.randrange(len(content) + 1)
                content[place:place] = draw.choice(
                    [b"\x00", b"\n", b"}", b"]", b"\xff", b"\x1b[2J", b"1" * 5000, b"[" * 5000]
                )
    return bytes(content)


BOMB = "z0: &z0 {a: 1}\n" + "".join(
    f"z{k}: &z{k} {{{', '.join(f'k{j}: *z{k - 1}' for j in range(9))}}}\n" for k in range(1, 10)
)
YAMLS = [
    BOMB,
    BOMB + "loop: *z9\n",
    "loop: &a [*a, *a]\n",
    "loop: &a\n  n_trials: *a\n",
    "a0: &a0 {x: 1}\n"
    + "".join(f"a{k}: &a{k} {{<<: [*a{k - 1}, *a{k - 1}]}}\n" for k in range(1, 40))
    + "loop: *a39\n",
    "!!python/object/apply:os.system ['touch PWNED']",
    "problem: !!python/name:evil.f\n",
    "problem: !!python/module:evil\n",
    "loop: !!python/object/new:evil.C []\n",
    "loop: 2026-99-99\nmodel: 0x\ndata: 0b2\n",
    "loop: {n_trials: !!int x}\n",
    "loop: {n_trials: !!float x}\n",
    "loop: {n_trials: !!timestamp x}\n",
    "loop: {n_trials: 190:20:30}\n",
    "loop: {n_trials: " + "9" * 5000 + "}\n",
    "loop: {n_trials: 1e999}\n",
    "? [a, b]\n: 1\n? {c: d}\n: 2\n",
    "loop: {1: 2, a: 3, null: 4, 2026-01-01: 5}\n",
    "[" * 3000,
    "{a: " * 3000,
    "- " * 3000,
    "\x00",
    "%YAML 9.9\n---\n",
    "a: b: c",
    "--- 1\n--- 2\n",
    "x" * 300_000,
    "model: {class_path: deepbore.__main__.x}\n",
    "model: {class_path: deepbore.classifiers.MLPClassifier, init_args: {network: evil.f}}\n",
    "model: {class_path: evil.C}\ndata: {labels: {class_path: evil.C}}\n",
]


def mutate_config(path, draw):
    if draw.random() < 0.5:
        path.write_text(draw.choice(YAMLS))
    elif draw.random() < 0.7:
        path.write_bytes(json.dumps(mutated(copy.deepcopy(CONFIG), draw)).encode())
    else:
        path.write_bytes(mutate_bytes(path.read_bytes(), draw))


def as_version_0_1(path):
    """The journal without what version 0.1 has not, so that the configuration says which parts the run has."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    for event in events:
        event.pop("crc")
    for name in ("id", "recipe"):
        events[0].pop(name, None)
    events[0]["version"] = 1
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


def mutate_times(path, draw):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[draw.randrange(len(lines))] = mutated(lines[draw.randrange(len(lines))], draw)
    extra = draw.choice(["", "[" * 5000, '{"trial": 1e999, "began": 0, "ended": 1}', '{"trial": ' + "9" * 5000])
    path.write_text("\n".join([*map(json.dumps, lines), extra]))


class Command:
    """Runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch PWNED",)


def mutate_snapshot(path, draw):
    content = path.read_bytes() if path.exists() else MAGIC
    payload = content[len(MAGIC) + 32 :]
    match draw.randrange(5):
        case 0:
            payload = pickle.dumps({"run": Command()})
        case 1:
            buffer = io.BytesIO()
            torch.save({"run": Command(), "points": torch.zeros(1, 2)}, buffer)
            payload = buffer.getvalue()
        case 2 if payload:
            packed = io.BytesIO()
            with zipfile.ZipFile(io.BytesIO(payload)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
                for name in old.namelist():
                    new.writestr(name, old.read(name))
            payload = packed.getvalue()
        case 3:
            payload = mutate_bytes(payload, draw)
        case _ if payload:
            kept = mutated(torch.load(io.BytesIO(payload), weights_only=True), draw)
            if isinstance(kept, dict) and draw.random() < 0.2:
                kept["points"] = torch.zeros(1, 1).expand(10**9, 2)
            if isinstance(kept, dict) and draw.random() < 0.2:
                bomb = ["a"]
                for _ in range(40):
                    bomb = [bomb, bomb]
                kept["recipe"] = bomb
            buffer = io.BytesIO()
            torch.save(kept, buffer)
            payload = buffer.getvalue()
    if draw.random() < 0.9:
        content = MAGIC + hashlib.sha256(payload).digest() + payload
    path.write_bytes(content)


def mutate_commands(run, draw):
    """Other commands, answers, or contents of artifacts."""
    files = [*(run / "journal.jsonl.inbox").iterdir(), run / "journal.jsonl.answers", *artifacts(run)]
    path = draw.choice(sorted(files))
    content = path.read_bytes()
    if path.parent.name.endswith(".inbox") and draw.random() < 0.8:
        said = mutated(json.loads(content), draw)
        with contextlib.suppress(TypeError, ValueError):  # of what JSON has not
            content = json.dumps(said).encode()
        path.write_bytes(content)
    elif draw.random() < 0.5:
        path.write_bytes(mutate_bytes(content, draw))
    else:
        replace_file(path, draw)


def artifacts(run):
    """The files of contents of a run."""
    return [path for path in (run / "journal.jsonl.artifacts").rglob("*") if path.is_file()]


FILES = [
    "journal.jsonl", "config.yaml", "journal.jsonl.times", "journal.jsonl.ckpt", "journal.jsonl.lock",
    "journal.jsonl.inbox", "journal.jsonl.answers", "journal.jsonl.artifacts",
]  # fmt: skip


def replace_file(path, draw):
    """Something else in the place of a file, or of a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    match draw.randrange(7):
        case 0:
            os.mkfifo(path)
        case 1:
            path.mkdir()
        case 2:
            path.symlink_to(path.name)  # a loop
        case 3:
            path.symlink_to("/dev/zero")
        case 4:
            path.symlink_to("/etc/passwd")
        case 5:
            with path.open("wb") as file:
                file.truncate(3 * 10**9)  # of zeros, which take no place
        case _:
            path.write_bytes(b"")


def mutate_run(run, draw):
    """Makes a run hostile; what was done, in a word."""
    kinds = {"journal": 12, "config": 3, "times": 2, "snapshot": 2, "place": 3, "old": 2, "commands": 3}
    (kind,) = draw.choices(list(kinds), list(kinds.values()))
    if kind == "old":
        as_version_0_1(run / "journal.jsonl")
        mutate_config(run / "config.yaml", draw)
    elif kind == "place":
        replace_file(run / draw.choice(FILES), draw)
    elif kind == "commands":
        mutate_commands(run, draw)
    elif kind == "journal":
        mutate_journal(run / "journal.jsonl", draw)
    elif kind == "config":
        mutate_config(run / "config.yaml", draw)
    elif kind == "times":
        mutate_times(run / "journal.jsonl.times", draw)
    else:
        mutate_snapshot(run / "journal.jsonl.ckpt", draw)
    return kind


# --- doors -----------------------------------------------------------------------------------------------------------


def load(run):
    study = Study.load(run)
    _ = study.trials, study.pending, study.to_frame()


def go_on(run):
    """Loads a run, and continues it, which takes its snapshot, too."""
    study = Study.load(run)
    try:
        if study.observations.ledger.by_preference or sum(study.observations.status == int(Status.PENDING)) > 3:
            return
        study.ask()
    finally:
        study.close()


def command(*args):
    def door(run):
        status = main([*args, str(run)])
        assert status in (0, 2), status

    door.__name__ = " ".join(args)
    return door


def listed(run):
    assert main(["list", str(run.parent)]) == 0


def compared(run):
    assert main(["compare", str(run), str(run.parent / "other"), "--output", str(run / "comparison.png")]) in (0, 2)


def read(run):
    read_record(run / "journal.jsonl")


def watched(run):
    """What the dashboard tells of a run: its line, its page, and what its trials have made."""
    live = Live(Shelf.of([str(run)]))
    while live.look():
        pass
    for key, entry in live.shelf.entries.items():
        json.dumps(live.rows[key], allow_nan=False)
        for text in (live.content(key).news([]), compared_on_a_page([entry])):
            json.loads(text, parse_constant=_refuse)
        for several in () if entry.ledger is None else entry.ledger.notes.artifacts.values():
            for each in several:
                found = artifact_of(entry, each.digest)
                assert found is None or hashlib.sha256(found[0]).hexdigest() == each.digest


def _refuse(constant):
    raise ValueError(f"{constant} is no JSON")


LOOKING = [
    listed, command("best"), read, command("report", "--quick"), command("watch", "--quick", "--every", "0.001"),
    compared, load, load_run, command("report"), go_on, watched,
    command("summary"),
]  # fmt: skip
OFTEN = [8, 8, 8, 6, 2, 2, 8, 4, 1, 2, 8, 4]
WRITTEN = ("report.html", "comparison.png", "history.png", "matplotlib", "fontlist")  # what looking may write
GOING_ON = ("journal.jsonl", "journal.jsonl.ckpt", "journal.jsonl.lock", "journal.jsonl.answers")


def look(door, run, watch, heard):
    """What is wrong with one look, in words; None for nothing."""
    watch.seen, heard.said = [], []
    watch.allowed = (*WRITTEN, *GOING_ON) if door is go_on else WRITTEN
    output, fault = io.StringIO(), None
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    watch.on = True
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            door(run)
    except DeepBoreError as error:
        output.write(str(error))
    except TookLong:
        fault = "takes more than ten seconds"
    except BaseException as error:  # whatever it raises is a fault
        fault = f"raises {type(error).__name__}: {error!s:.300}\n{traceback.format_exc()[-1500:]}"
    finally:
        watch.on = False
        signal.setitimer(signal.ITIMER_PROF, 0)
    if fault is None and watch.seen:
        fault = "; ".join(watch.seen)
    if fault is None and (
        raw := {c for c in output.getvalue() + "\n".join(heard.said) if not c.isprintable() and c not in "\n\t\r"}
    ):
        fault = f"shows {sorted(raw)} raw: {output.getvalue()!r:.300}"

    return None if fault is None else f"{getattr(door, '__name__', door)}: {fault}"


WATCH = Watch()


def campaign(folder, seed, count, often=OFTEN, seconds=None):
    """Looks at so many hostile runs; what was wrong, in words, and how many looks there were."""
    draw, heard, faults, looks = random.Random(seed), Heard(), [], 0
    folder = Path(folder)
    clean, place = folder / "clean", folder / "place"
    if not clean.exists():
        clean.mkdir(parents=True)
        write_runs(clean)
    ran = folder / "PWNED"
    for name in ("evil.py", "place/evil.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(CANARY.format(path=str(ran)))
    former, end = signal.signal(signal.SIGPROF, _give_up), time.process_time() + (seconds or 1e9)
    here, path, loggers = Path.cwd(), list(sys.path), logging.getLogger()
    loggers.addHandler(heard)
    os.chdir(place)
    sys.path.insert(0, str(place))
    try:
        for door in LOOKING:  # what they import has nothing to do with the run
            shutil.rmtree(place / "runs", ignore_errors=True)
            shutil.copytree(clean / "mixed", place / "runs" / "run")
            shutil.copytree(clean / "mixed", place / "runs" / "other")
            if fault := look(door, place / "runs" / "run", WATCH, heard):
                faults.append(f"a clean run: {fault}")
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for k in range(count):
            if time.process_time() > end:
                break
            name = draw.choice(sorted(each.name for each in clean.iterdir()))
            shutil.rmtree(place / "runs", ignore_errors=True)
            shutil.copytree(clean / name, place / "runs" / "run")
            shutil.copytree(clean / name, place / "runs" / "other")
            kinds = [mutate_run(place / "runs" / "run", draw)]
            doors = dict.fromkeys(draw.choices(LOOKING, often, k=2))
            for door in doors:
                looks += 1
                if fault := look(door, place / "runs" / "run", WATCH, heard):
                    faults.append(f"seed {seed}, mutation {k} ({name}, {kinds}): {fault}")
                grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                if grown - largest > MEGABYTES * 1000:
                    faults.append(
                        f"seed {seed}, mutation {k} ({name}, {kinds}): {door} took {(grown - largest) // 1000} MB"
                    )
                largest = max(largest, grown)
            if ran.exists() or (place / "PWNED").exists():
                faults.append(f"seed {seed}, mutation {k} ({name}, {kinds}): foreign code ran")
                ran.unlink(missing_ok=True)
                (place / "PWNED").unlink(missing_ok=True)
    finally:
        os.chdir(here)
        sys.path[:] = path
        signal.signal(signal.SIGPROF, former)
        loggers.removeHandler(heard)
        shutil.rmtree(place / "runs", ignore_errors=True)
    return faults, looks


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        found, looked = campaign(temporary, int(sys.argv[1]), int(sys.argv[2]))
    print("\n\n".join(found))
    print(f"{len(found)} faults in {looked} looks, {time.process_time():.0f} s of CPU")
    sys.exit(bool(found))
