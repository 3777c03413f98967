"""What is lost when a run is disturbed: faults at every write, SIGKILL and KeyboardInterrupt at random times.

    python scripts/torture.py docs/results/torture.jsonl            # goes on where it was
    python scripts/torture.py docs/results/torture.jsonl --show     # the counts
    python scripts/torture.py runs/torture.jsonl --smoke            # some of each, in a minute

A run of a fixed script (asks, outcomes, failures, notes, corrections, ...) is done by processes that are forked from
one that has imported everything. A disturbed one tries the call again, as a user would; after a death another process
loads the journal. A step counts as acknowledged when its call has returned. Each line of the file is one disturbed run:

- lost: acknowledged steps that the journal lacks, or trials that the run has not in the end;
- equal: whether all its trials are those of the undisturbed run, to the last digit.
"""

import argparse
import errno
import json
import logging
import os
import random
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import deepbore
from deepbore.data import journal
from deepbore.data.log import JOURNAL

SPACE = deepbore.SearchSpace({"x": deepbore.Real(0, 1), "kind": deepbore.Categorical(["a", "b"])})
FAULTS = ("full disk before", "full disk after", "interrupt before", "interrupt after", "no memory before", "death")
KILLS, INTERRUPTS = 300, 4000
AT_ONCE = 10  # kills in one run
MANY = 100  # interrupts in one run


# --- the script of a run ---------------------------------------------------------------------------------------------


def ask(study: deepbore.Study) -> None:
    study.ask()


def tell(row: int) -> Callable[[deepbore.Study], None]:
    def step(study: deepbore.Study) -> None:
        params = study.trials[row].params
        study.tell(row, (params["x"] - 0.3) ** 2 + (params["kind"] == "a"))

    return step


STEPS: list[Callable[[deepbore.Study], None]] = [
    *(step for row in range(5) for step in (ask, tell(row))),
    lambda study: study.add({"x": [0.9, 0.95], "kind": ["a", "b"]}, [1.5, 0.5]),  # rows 5 and 6
    ask,
    lambda study: study.tell(7, failed=True),
    lambda study: study.annotate(1, {"host": "node7"}),
    lambda study: study.enqueue({"x": 0.25, "kind": "b"}),
    ask,
    tell(8),
    lambda study: study.correct(2, 0.75),
    lambda study: study.withdraw(3),
    lambda study: study.fix({"kind": "b"}),
    *(step for row in range(9, 13) for step in (ask, tell(row))),
]


def opened(path: Path) -> deepbore.Study:
    """The study of the run, new or loaded."""
    search = deepbore.RandomSearch(50)
    return deepbore.Study(SPACE, seed=0, n_initial=11, candidates=search, journal=path, if_exists="load")


def n_lines(path: Path, study: deepbore.Study | None = None) -> int:
    """How many whole events the journal holds; by a study that writes it, without one that is to be taken back.

    An interrupt that comes while what another one has stopped is taken back leaves a line that counts for nobody: the
    next write begins by removing it.
    """
    journal = None if study is None else study.observations.journal
    return path.read_bytes()[: None if journal is None else journal.position].count(b"\n") if path.exists() else 0


class Run:
    """A run of the script in a folder, by this process.

    Args:
        folder: of the journal, and of the number of acknowledged steps.
        lines: of the undisturbed journal after each step; None for the undisturbed run itself.
    """

    def __init__(self, folder: Path, lines: list[int] | None = None):
        self.folder, self.path, self.lines = folder, folder / JOURNAL, lines
        self.acknowledged = folder / "acknowledged"

    def go(self, again: type[BaseException] | tuple[type[BaseException], ...] = ()) -> None:
        """Does the steps that are still to be done; calls that raise certain errors are made again."""
        study, after = None, [] if self.lines is None else self.lines
        done = next((k for k, lines in enumerate(after) if lines == n_lines(self.path)), 0)
        if self.acknowledged.exists():
            done = max(done, len(self.acknowledged.read_bytes()))
        while done < len(STEPS):
            try:
                study = study or opened(self.path)
                if self.lines is None or n_lines(self.path, study) < self.lines[done + 1]:
                    STEPS[done](study)
                done += 1
                with self.acknowledged.open("ab", buffering=0) as file:
                    file.write(b"." * (done - len(self.acknowledged.read_bytes())))
            except again:
                continue

    def checked(self, undisturbed: list[list[object]]) -> dict[str, object]:
        """What is lost, and whether all is equal."""
        acknowledged = len(self.acknowledged.read_bytes()) if self.acknowledged.exists() else 0
        assert self.lines is not None
        missing = self.lines[acknowledged] > n_lines(self.path)
        found = trials(self.path)
        lost = int(missing) + max(0, len(undisturbed) - len(found))
        return {"lost": lost, "equal": found == undisturbed}


def trials(path: Path) -> list[list[object]]:
    """All that the journal says of the trials."""
    study = deepbore.Study.load(path)
    return [[t.params, t.value, t.status.name, dict(t.attributes)] for t in study.trials]


def forked(act: Callable[[], None], patience: float = 60.0, kill_after: float | None = None) -> int:
    """How a forked process ends: its exit code, or minus the signal that has killed it."""
    child = os.fork()
    if not child:
        code = 1
        try:
            act()
            code = 0
        except BaseException as error:
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(f"{type(error).__name__}: {error}", flush=True)
        finally:  # whatever happens: this process never goes on with the campaign
            os._exit(code)
    end = time.monotonic() + (patience if kill_after is None else kill_after)
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# --- faults at write points ------------------------------------------------------------------------------------------


@contextmanager
def faulty(at: int, fault: str) -> Iterator[Callable[[], int]]:
    """Within, the write point of this number (from 0) fails; gives the count of points so far."""
    count = -1

    def disturbed(call: Callable[..., object]) -> Callable[..., object]:
        def point(*args: object, **settings: object) -> object:
            nonlocal count
            count += 1
            if count != at:
                return call(*args, **settings)
            if fault.endswith("after"):
                call(*args, **settings)
            if fault == "death":
                os._exit(9)
            if fault.startswith("full"):
                raise OSError(errno.ENOSPC, "No space left on device")
            raise KeyboardInterrupt if fault.startswith("interrupt") else MemoryError

        return point

    places = [(os, "fsync"), (Path, "replace"), (journal, "_write_whole"), (journal, "_cut"), (Path, "unlink")]
    before = [(owner, name, getattr(owner, name)) for owner, name in places]
    for owner, name, call in before:
        setattr(owner, name, disturbed(call))
    try:
        yield lambda: count + 1
    finally:
        for owner, name, call in before:
            setattr(owner, name, call)


def n_points() -> int:
    """How many write points the undisturbed run has."""
    with tempfile.TemporaryDirectory() as folder, faulty(-1, "") as count:
        Run(Path(folder)).go()
        return count()


# --- campaigns -------------------------------------------------------------------------------------------------------


def with_fault(run: Run, at: int, fault: str) -> dict[str, object]:
    """A run with one fault; after a death another process continues."""

    def first() -> None:
        with faulty(at, fault):
            run.go((deepbore.errors.JournalError, OSError, KeyboardInterrupt, MemoryError))

    code = forked(first)
    if code == 9:
        code = forked(run.go)
    return {"ended": code}


def with_kills(run: Run, seed: int, seconds: float) -> dict[str, object]:
    """A run that is killed so often at random times, each time within the time of a whole run."""
    draw, kills = random.Random(seed), 0
    while kills < AT_ONCE:
        if forked(run.go, kill_after=draw.uniform(0, seconds / 12)) != -signal.SIGKILL:
            break
        kills += 1
    return {"kills": kills, "ended": forked(run.go)}


def with_interrupts(run: Run, seed: int, seconds: float) -> dict[str, object]:
    """A run with KeyboardInterrupts at random times, by a timer that begins anew with each."""

    def interrupted() -> None:
        draw, count = random.Random(seed), 0

        def interrupt(_number: int, frame: FrameType | None) -> None:
            nonlocal count
            if frame is not None and frame.f_code is interrupted.__code__:  # not the run, but what disturbs it
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                return
            count += 1
            (run.folder / "count").write_text(str(count))
            if count < MANY:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 2 * draw.random() ** 6 * seconds / len(STEPS))
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        is_done = False
        while not is_done:
            try:
                run.go(KeyboardInterrupt)
                signal.setitimer(signal.ITIMER_REAL, 0)
                is_done = True
            except KeyboardInterrupt:  # between two lines of this script
                continue

    code = forked(interrupted)
    count = run.folder / "count"
    return {"interrupts": int(count.read_text() or 0) if count.exists() else 0, "ended": code}


def cases(smoke: bool) -> Iterator[dict[str, object]]:
    """All disturbances; kills and interrupts go on until there are enough."""
    points = n_points()
    for at in range(0, points, 10 if smoke else 1):
        for fault in FAULTS:
            yield {"kind": "fault", "point": at, "of": points, "fault": fault}
    for seed in range(2 if smoke else 10 * KILLS):
        yield {"kind": "kills", "seed": seed}
    for seed in range(2 if smoke else INTERRUPTS):
        yield {"kind": "interrupts", "seed": seed}


def torture(out: Path, smoke: bool, only: str | None) -> None:
    """Does what the file lacks."""
    done = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        whole, lines, began = Run(Path(folder)), [0], time.monotonic()
        study = opened(whole.path)
        lines[0] = n_lines(whole.path)
        for step in STEPS:
            step(study)
            lines.append(n_lines(whole.path))
        study.close()
        seconds, undisturbed = time.monotonic() - began, trials(whole.path)
    for case in cases(smoke):
        kind = str(case["kind"])
        enough = {"kills": KILLS, "interrupts": INTERRUPTS}.get(kind)
        if only not in (None, kind) or any(case.items() <= each.items() for each in done):
            continue
        if enough is not None and sum(each.get(kind, 0) for each in done) >= enough:
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = Run(Path(folder), lines)
            if kind == "fault":
                found = with_fault(run, int(str(case["point"])), str(case["fault"]))
            else:
                act = with_kills if kind == "kills" else with_interrupts
                found = act(run, int(str(case["seed"])), seconds)
            result = {**case, **found, **run.checked(undisturbed)}
        done.append(result)
        with out.open("a") as file:
            file.write(json.dumps(result) + "\n")


def show(out: Path) -> None:
    """The counts."""
    done = [json.loads(line) for line in out.read_text().splitlines()]
    for kind in ("fault", "kills", "interrupts"):
        of_kind = [each for each in done if each["kind"] == kind]
        counts = Counter(runs=len(of_kind), lost=sum(each["lost"] for each in of_kind))
        counts.update(equal=sum(each["equal"] for each in of_kind), broken=sum(bool(e["ended"]) for e in of_kind))
        disturbances = len(of_kind) if kind == "fault" else sum(each[kind] for each in of_kind)
        points = f" at {of_kind[0]['of']} write points" if kind == "fault" and of_kind else ""
        print(f"{kind}: {disturbances}{points} in {counts['runs']} runs; lost {counts['lost']}, runs that did not end "
              f"{counts['broken']}, equal to the undisturbed run {counts['equal']}")  # fmt: skip


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--only", choices=["fault", "kills", "interrupts"])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if not given.show:
        torture(given.out, given.smoke, given.only)
    show(given.out)


if __name__ == "__main__":
    main()
