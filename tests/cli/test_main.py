"""The command `deepbore` itself: its version, and pipes that break."""

import os
import subprocess
import sys

import pytest

from deepbore.cli import inspect as inspection
from deepbore.cli.main import main


# regression: this was wrong once
@pytest.mark.parametrize(
    "door", ["from deepbore import DeepEnsemble", "from deepbore.classifiers import MLPClassifier"]
)
def test_a_torchvision_of_another_torch_is_named_with_the_way_out(tmp_path, door):
    done = _beside_torchvision_of_another_torch(tmp_path, "-c", door)
    assert done.returncode == 1
    assert "MissingPackage: the torchvision that is installed was built for another torch" in done.stderr


def test_so_it_is_by_the_command_line(tmp_path):
    settings = ["--problem=Branin", "--loop.n_trials=3"]
    done = _beside_torchvision_of_another_torch(tmp_path, "-m", "deepbore", "fit", *settings)
    assert done.returncode == 2
    assert done.stderr.startswith("deepbore: the torchvision that is installed was built for another torch (operator")


def _beside_torchvision_of_another_torch(folder, *command):
    """Runs Python where `import torchvision` fails as it does when torch was replaced after it."""
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(
        "raise RuntimeError('operator torchvision::nms does not exist')"
    )
    (folder / "torchvision-0.1.dist-info").mkdir()
    (folder / "torchvision-0.1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torchvision\nVersion: 0.1\n"
    )
    paths = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"]])
def test_a_reader_that_has_seen_enough_is_no_error(args):
    reader, writer = os.pipe()
    os.close(reader)  # as `| head` does
    command = [sys.executable, "-m", "deepbore.cli", *args]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_pipe_that_breaks_elsewhere_is_an_error(monkeypatch):
    def breaking(args):
        raise BrokenPipeError("of a worker")

    monkeypatch.setitem(inspection.COMMANDS, "best", breaking)
    with pytest.raises(BrokenPipeError, match="of a worker"):
        main(["best", "run"])


# regression: this was wrong once
def test_the_package_is_a_command_and_says_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "deepbore", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("deepbore 0.")
