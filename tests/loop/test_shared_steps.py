"""A large network whose gradient steps are shared by two processes (gloo)."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import hashlib
import os
import sys

import torch
from lightning.pytorch import Trainer

import deepbore
from deepbore.problems import Branin

if __name__ == "__main__":
    torch.set_num_threads(1)
    problem, head = Branin(), deepbore.MLPClassifier(hidden=(600, 600))
    study = deepbore.Study(problem.space, classifier=head, seed=0, n_initial=6)
    quiet = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    study.optimize(problem, 9, trainer=Trainer(accelerator="cpu", strategy="ddp", devices=2, max_epochs=-1, **quiet))
    weights = torch.cat([each.detach().flatten() for each in head.parameters()])
    with open(f"{sys.argv[1]}.{os.environ.get('LOCAL_RANK', '0')}", "w") as file:
        digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()
        print(len(weights), digest, [trial.value for trial in study.trials], file=file)
"""


@pytest.mark.slow
def test_both_processes_end_with_the_same_weights_and_trials(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name != "LOCAL_RANK"}
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "out")]
    subprocess.run(command, check=True, env=environment, timeout=300, capture_output=True)
    one, other = ((tmp_path / f"out.{rank}").read_text() for rank in range(2))
    assert one == other
    size, _, values = one.split(" ", 2)
    assert int(size) > 300_000
    assert len(values.split(",")) == 9
