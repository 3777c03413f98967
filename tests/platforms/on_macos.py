"""What deepbore does about macOS: run by `test_platforms.py` within the simulation."""

import multiprocessing
import os

import pytest
import torch

import deepbore
from deepbore.compute.devices import as_device
from deepbore.errors import MissingPackage, SettingError
from deepbore.worker import process


def bowl(params):
    return params["x"] ** 2


def test_it_is_simulated():
    assert multiprocessing.get_all_start_methods()[0] == "spawn"
    assert not os.path.exists("/proc")
    assert torch.accelerator.current_accelerator().type == "mps"


def test_a_gpu_without_float64_is_passed_over_and_refused_where_it_is_named():
    assert as_device("auto").type == "cpu"
    with pytest.raises(SettingError, match=r'must compute in float64.*Give "cpu" to the study'):
        deepbore.Study({"x": deepbore.Real(0, 1)}, device="mps")
    assert deepbore.minimize(bowl, {"x": deepbore.Real(-1, 1)}, 12, device="auto", progress=False).best_value < 1


def test_deep_heads_run_on_the_cpu_where_lightning_would_take_the_gpu():
    head = deepbore.DeepEnsemble(members=2, hidden=(4,))
    found = deepbore.minimize(bowl, {"x": deepbore.Real(-1, 1)}, 4, classifier=head, n_initial=3, progress=False)
    assert {each.device.type for each in found.study.classifier.parameters()} == {"cpu"}


def test_xgboost_without_openmp_says_what_is_missing():
    with pytest.raises(MissingPackage, match=r"brew install libomp.*OpenMP runtime is not installed"):
        deepbore.XGBoost()


def test_workers_start_without_affinity_and_proc_and_what_they_began_is_found(tmp_path):
    process.kill_marked("nobody's")
    path = tmp_path / "Run.jsonl"
    found = deepbore.minimize(bowl, {"x": deepbore.Real(-1, 1)}, 3, workers=2, journal=path, progress=False)
    assert len(found.values) == 3
    with pytest.raises(deepbore.errors.JournalError):  # upper and lower case are one there
        deepbore.Study({"x": deepbore.Real(-1, 1)}, journal=tmp_path / "run.JSONL")
