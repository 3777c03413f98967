"""`TrialLog`: the trials of a run in the loggers of its Trainer, the initial design included.

| logger | what it gets |
|---|---|
| TensorBoardLogger | a run for each trial, below trials/: parameters and value (HParams), and the curve |
| MLFlowLogger | a child run for each trial: parameters, value, curve, start, end and status |
| WandbLogger | a run for each trial in the group of the logger's own: parameters, value, curve, status |
| CSVLogger | a row for each trial: parameters, value, status, seconds; and a row for each reported value |
| any other | the numbers among these |

The curve is what the trial has reported, by step.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import CSVLogger, Logger, MLFlowLogger, TensorBoardLogger, WandbLogger

from deepbore.component import is_number
from deepbore.data.observations import Observations
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Status, Trial

log = logging.getLogger(__name__)


class TrialLog:
    """A listener of a run that logs each trial when it has ended. A logger that fails gets no more trials.

    Args:
        observations: of the run.
        loggers: those of its Trainer. A CSV file beside the journal gets nothing: the journal has it all.
    """

    def __init__(self, observations: Observations, loggers: Sequence[Logger]):
        self.observations = observations
        self.loggers = [each for each in loggers if not self._is_beside_the_journal(each)]

    def __call__(self, row: int, outcome: Outcome) -> None:
        """Logs a trial."""
        trial = self.observations.trial(row)
        for logger in list(self.loggers):
            try:
                _way(logger)(logger, trial)
            except Exception as error:  # of a network, a disk, or another version: the run does not depend on it
                self.loggers.remove(logger)
                log.warning("%s gets no more trials: %s: %s", type(logger).__name__, type(error).__name__, error)

    def _is_beside_the_journal(self, logger: Logger) -> bool:
        journal = self.observations.journal
        if journal is None or not isinstance(logger, CSVLogger):
            return False
        return Path(logger.log_dir).resolve() == journal.path.resolve().parent


def _way(logger: Logger) -> Callable[[Any, Trial], None]:
    """How a logger is given a trial."""
    ways: dict[type[Logger], Callable[[Any, Trial], None]] = {
        TensorBoardLogger: _to_tensorboard,
        MLFlowLogger: _to_mlflow,
        WandbLogger: _to_wandb,
        CSVLogger: _to_csv,
    }
    return next((way for kind, way in ways.items() if isinstance(logger, kind)), _numbers_to_any)


def _metrics(trial: Trial) -> dict[str, float]:
    """The numbers of an outcome: value, or value_0, ...; constraints; how long it took."""
    values = trial.values or ()
    told = {"value" if len(values) == 1 else f"value_{j}": value for j, value in enumerate(values)}
    told |= {f"constraint_{j}": each for j, each in enumerate(trial.constraints or ())}
    beside = {"budget": trial.budget, "seconds": trial.duration}
    return told | {name: each for name, each in beside.items() if each is not None}


def _row(trial: Trial) -> dict[str, Any]:
    return {"trial": trial.id, **trial.params, **_metrics(trial), "status": str(trial.status)}


def _to_csv(logger: CSVLogger, trial: Trial) -> None:
    for step, value in trial.reports.items():
        logger.log_metrics({"trial": trial.id, "reported": value}, step=int(step))
    logger.log_metrics(_row(trial), step=trial.id)


def _numbers_to_any(logger: Logger, trial: Trial) -> None:
    logger.log_metrics({name: float(each) for name, each in _row(trial).items() if is_number(each)}, step=trial.id)


def _to_tensorboard(logger: TensorBoardLogger, trial: Trial) -> None:
    own = TensorBoardLogger(logger.log_dir, name="trials", version=str(trial.id), default_hp_metric=False)
    for step, value in trial.reports.items():
        own.log_metrics({"reported": value}, step=int(step))
    own.log_hyperparams({**trial.params, "status": str(trial.status)}, _metrics(trial), step=trial.id)
    own.experiment.close()


def _to_mlflow(logger: MLFlowLogger, trial: Trial) -> None:
    client, parent = logger.experiment, logger.run_id
    began, ended = (None if at is None else int(1000 * at) for at in (trial.began, trial.ended))
    tags = {"mlflow.parentRunId": str(parent), "mlflow.runName": f"trial {trial.id}", "status": str(trial.status)}
    experiment = client.get_run(parent).info.experiment_id
    run = client.create_run(experiment, start_time=began, tags=tags).info.run_id
    for name, each in trial.params.items():
        client.log_param(run, name, each)
    for step, value in trial.reports.items():
        client.log_metric(run, "reported", value, step=int(step))
    for name, value in _metrics(trial).items():
        client.log_metric(run, name, value)
    ends = {Status.COMPLETE: "FINISHED", Status.PRUNED: "KILLED"}
    client.set_terminated(run, ends.get(trial.status, "FAILED"), ended)


def _to_wandb(logger: WandbLogger, trial: Trial) -> None:
    import wandb

    parent = logger.experiment
    run = wandb.init(
        project=parent.project,
        entity=parent.entity or None,
        group=parent.group or parent.id,
        job_type="trial",
        name=f"trial {trial.id}",
        config=dict(trial.params),
        dir=os.fspath(logger.save_dir) if logger.save_dir else None,
        mode="offline" if parent.offline else None,
        reinit="create_new",
    )
    run.define_metric("reported", step_metric="step")
    for step, value in trial.reports.items():
        run.log({"step": step, "reported": value})
    run.summary.update({**_metrics(trial), "status": str(trial.status), "trial": trial.id})
    run.finish(exit_code=int(trial.status is Status.FAILED))
