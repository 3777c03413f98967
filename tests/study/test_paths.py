"""Paths at all doors: `~` is the user's home, and an address is refused before a folder of its name is made."""

import os
from pathlib import Path

import numpy as np
import pytest

from deepbore import Categorical, Library, Real, Study, minimize
from deepbore.cli.main import main
from deepbore.data.runs import Run
from deepbore.errors import DeepBoreError
from deepbore.evaluators import SerialEvaluator, Timed
from deepbore.problems import LightningCLIProblem
from deepbore.validation import as_path

LINE = {"x": Real(0, 1)}
ADDRESSES = [
    "sqlite:///study.db",
    "postgresql://me@db/study",
    "s3://bucket/run.jsonl",
    "https://host/run",
    "file:///run",
]


def picture(path):
    from deepbore.plots import history

    history(minimize(lambda p: p["x"], LINE, 3, progress=False).study, path=path)


DOORS = {
    "Study": lambda path: Study(LINE, journal=path).ask(),
    "minimize": lambda path: minimize(lambda p: p["x"], LINE, 2, journal=path, if_exists="load", progress=False),
    "load": lambda path: Study.load(path).ask(),
    "add_csv": lambda path: Study(LINE).add_csv(path),
    "features": lambda path: Categorical(["a", "b"], features=path),
    "library": Library,
    "picture": picture,
}
COMMANDS = [["best"], ["plot"], ["report"], ["list"], ["withdraw"], ["correct"], ["compare"], ["fit", "--resume"]]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("door", DOORS)
def test_an_address_in_place_of_a_path_is_refused_and_makes_no_folder(door, address, empty_folder):
    with pytest.raises(DeepBoreError, match="got the address") as said:
        DOORS[door](f"{address}.png" if door == "picture" else address)
    assert not os.listdir()
    assert ("deepbore lead --storage" in str(said.value)) == address.startswith(("sqlite", "postgres"))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_an_address_on_the_command_line_is_refused(command, empty_folder, capsys):
    more = {"withdraw": ["3"], "correct": ["3", "0.5"]}.get(command[0], [])
    assert main([*command, "sqlite:///study.db", *more]) == 2
    assert "is a file on this machine, but got the address 'sqlite:///study.db'" in capsys.readouterr().err
    assert not os.listdir()


def test_a_run_is_not_kept_at_an_address(at_home, capsys):
    assert main(["fit", "--config", "mine.yaml", "--run", "postgresql://me@db/study"]) == 2
    assert "deepbore lead --storage URL" in capsys.readouterr().err
    assert not Path("postgresql:").exists()


@pytest.mark.parametrize(
    "address", [Path("sqlite:///study.db"), Path("s3://bucket/run"), Path("postgresql+psycopg://a/b")]
)
def test_an_address_that_has_become_a_path_is_seen(address):
    with pytest.raises(DeepBoreError, match="got the address"):
        as_path(address, "a run")


@pytest.mark.parametrize("path", ["a:b/run.jsonl", "C:\\runs\\run", "C:/runs/run", "run:/x", "at 12:30/x", "~x:/y"])
def test_a_path_with_a_colon_is_a_path(path):
    assert as_path(path, "a run") == Path(path)


def test_the_users_home_is_known_at_all_doors(at_home, capsys):
    home = at_home / "home"
    minimize(lambda p: p["x"], LINE, 3, journal="~/run.jsonl", if_exists="load", progress=False)
    assert len(minimize(lambda p: p["x"], LINE, 4, journal="~/run.jsonl", if_exists="load", progress=False).values) == 4
    assert len(Study.load("~/run.jsonl").trials) == 4
    Study.load("~/run.jsonl").to_frame()[["x", "value"]].to_csv(home / "earlier.csv")
    (added := Study(LINE)).add_csv("~/earlier.csv")
    assert len(added.trials) == 4
    np.save(home / "bits.npy", np.eye(4))
    assert Library("~/bits.npy").size == 4
    assert Categorical(list("abcd"), features="~/bits.npy").features is not None
    picture("~/picture.png")
    for command in (["best"], ["plot"], ["withdraw", "--reason=once"], ["report", "--quick", "--output=~/page.html"]):
        assert main([*command, "~/run.jsonl", *(["3"] if command[0] == "withdraw" else [])]) == 0
    assert main(["list", "~"]) == 0
    assert Run.named("~/run.jsonl").name == "run"
    assert Timed(SerialEvaluator(len), "~/times").path == home / "times"
    assert (
        LightningCLIProblem({"lr": {"type": "real", "low": 0, "high": 1}}, "loss", folder="~/trials").folder
        == home / "trials"
    )
    assert {"run.jsonl", "picture.png", "page.html", "run.png"} <= {path.name for path in home.iterdir()}
    assert not Path("~").exists()
