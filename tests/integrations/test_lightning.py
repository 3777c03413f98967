"""A Lightning Trainer that reports to a trial, and ends where it is pruned: alone, and on two ranks."""

import os
import signal
import time
import traceback

import pytest
import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.callbacks import EarlyStopping
from torch.utils.data import DataLoader

from deepbore import MedianPruner, Pruner, Study, Trial, TrialPruned, minimize
from deepbore.data.trial import Status
from deepbore.errors import SettingError
from deepbore.integrations.lightning import PruningCallback
from deepbore.loop.quiet import quiet
from plane import LINE
from processes import is_gone
from test_free_port import free_port
from trainers import quiet_trainer
