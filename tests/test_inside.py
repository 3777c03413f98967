"""An optimisation inside other programs: in a running fit, a notebook, an event loop, other processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
import torch
from lightning.pytorch import LightningModule
from torch.utils.data import DataLoader, TensorDataset

import deepbore
from deepbore import Real, SearchSpace
from deepbore.loop.lightning import quiet
from trainers import quiet_trainer

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
ENV = os.environ | {"PYTHONPATH": str(Path(deepbore.__file__).parents[1])}  # the package under test


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


class Line(LightningModule):
    """A model that has its own learning rate tuned in the middle of an epoch."""

    def __init__(self):
        super().__init__()
        self.layer, self.found = torch.nn.Linear(1, 1), []

    def training_step(self, batch, batch_idx):
        x, y = batch
        if batch_idx == 1:
            self.found.append(deepbore.minimize(bowl, PLANE, n_trials=13, seed=3).values.tolist())
        return torch.nn.functional.mse_loss(self.layer(x), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_minimize_inside_a_running_fit_is_the_same_run_and_disturbs_nothing():
    x = torch.linspace(-1, 1, 8)[:, None]
    model = Line()
    trainer = quiet_trainer(max_epochs=2)
    with quiet():
        trainer.fit(model, DataLoader(TensorDataset(x, 2 * x), batch_size=2))
    assert model.found == [deepbore.minimize(bowl, PLANE, n_trials=13, seed=3).values.tolist()] * 2
    assert trainer.current_epoch == 2
    assert trainer.global_step == 8


def test_an_objective_may_train_with_a_trainer_of_its_own():
    def train(params):
        x = torch.linspace(-1, 1, 8)[:, None]
        model = torch.nn.Linear(1, 1)

        class Fit(LightningModule):
            def __init__(self):
                super().__init__()
                self.model = model

            def training_step(self, batch, batch_idx):
                return torch.nn.functional.mse_loss(self.model(batch[0]), batch[1])

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=params["lr"])

        trainer = quiet_trainer(max_epochs=1)
        with quiet():
            trainer.fit(Fit(), DataLoader(TensorDataset(x, 2 * x), batch_size=4))
        return float(trainer.callback_metrics.get("loss", (model(x) - 2 * x).square().mean()))

    result = deepbore.minimize(train, SearchSpace({"lr": Real(1e-3, 1, log=True)}), n_trials=12, n_initial=10)
    assert result.study.observations.n_complete == 12


@pytest.mark.slow
def test_a_notebook_runs_it(tmp_path):
    code = (
        "import deepbore\n"
        "space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "deepbore.minimize(lambda params: params['x'] ** 2, space, n_trials=13).best_value"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    *bar, shown = notebook.cells[0].outputs
    assert "13/13" in str(bar)
    assert float(shown["data"]["text/plain"]) < 0.05


@pytest.mark.slow
def test_an_event_loop_runs_it():
    """What a notebook's kernel is to its cells: code within a running asyncio loop."""
    script = (
        "import asyncio, deepbore\n"
        "async def cell():\n"
        "    space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "    return deepbore.minimize(lambda params: params['x'] ** 2, space, n_trials=13).best_value\n"
        "print(asyncio.run(cell()))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=ENV, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("nproc", [2])
def test_under_a_launcher_each_rank_may_minimize_for_itself(tmp_path, nproc):
    """Without a process group the ranks of torchrun are strangers to each other, as any two processes."""
    script = tmp_path / "tune.py"
    script.write_text(
        "import json, os, deepbore\n"
        "rank = int(os.environ['RANK'])\n"
        "space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "result = deepbore.minimize(lambda params: (params['x'] - rank) ** 2, space, n_trials=13, seed=rank)\n"
        "json.dump(result.values.tolist(), open(f'values-{rank}.json', 'w'))\n"
    )
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(nproc)]
    subprocess.run([*launcher, str(script)], cwd=tmp_path, env=ENV, check=True, timeout=300, capture_output=True)
    values = [json.loads((tmp_path / f"values-{rank}.json").read_text()) for rank in range(nproc)]
    assert [len(each) for each in values] == [13] * nproc
    assert values[0] != values[1]


@pytest.mark.slow
def test_spawned_processes_run_one_each(tmp_path):
    script = tmp_path / "spawned.py"
    script.write_text(
        "import multiprocessing, deepbore\n"
        "def run(seed):\n"
        "    space = deepbore.SearchSpace({'x': deepbore.Real(-1, 1)})\n"
        "    return deepbore.minimize(lambda params: params['x'] ** 2, space, n_trials=13, seed=seed).best_value\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool:\n"
        "        print(max(pool.map(run, range(2))))\n"
    )
    done = subprocess.run([sys.executable, str(script)], env=ENV, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.05
