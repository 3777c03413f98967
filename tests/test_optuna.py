"""DeepBoreSampler: Optuna's own suite of tests for samplers, and what users of Optuna expect of one."""

import copy
import math
import pickle
import subprocess
import sys
import warnings

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.testing import pytest_samplers
from optuna.trial import TrialState, create_trial

from deepbore import DeepEnsemble, Training
from deepbore.errors import SettingError
from deepbore.integrations.define_by_run import SeenTrials, levels, parameter, to_native, to_optuna
from deepbore.integrations.optuna import DeepBoreSampler
from deepbore.space import Categorical, Condition, Integer, Real


@pytest.fixture(autouse=True)
def _silence():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


# --- Optuna's suite --------------------------------------------------------------------------------------------------


class Ours:
    @pytest.fixture
    def sampler(self):
        return lambda: DeepBoreSampler(seed=0, n_startup_trials=3)


class TestBasic(Ours, pytest_samplers.BasicSamplerTestCase):
    pass


@pytest.mark.slow
class TestRelative(Ours, pytest_samplers.RelativeSamplerTestCase):
    pass


class TestSingleOnly(Ours, pytest_samplers.SingleOnlySamplerTestCase):
    pass
