"""`LoopController`: the optimisation as a Lightning callback, one iteration an epoch.

epoch t:   relabel (data module) -> train (classifier) -> propose -> evaluate -> record
"""

import math
import time
import warnings
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from deepbore.acquisition import Acquisition, suited_to
from deepbore.candidates import Candidates, GreedyBatch, Search, distinct
from deepbore.classifiers.base import Classifier
from deepbore.compute.distributed import Ranks
from deepbore.compute.threads import one_thread
from deepbore.data.observations import Observations, Status
from deepbore.errors import SettingError
from deepbore.evaluators import Evaluator, Outcome
from deepbore.evaluators.shared import SharedEvaluator
from deepbore.labels.datamodule import LabelledBatch, LabelledObservations
from deepbore.loop.metrics import Measures
from deepbore.loop.snapshot import Snapshot

N_INITIAL = 10


class LoopController(Callback):
    """Proposes, evaluates and records at the end of each training epoch.

    The first `n_initial` trials are a scrambled Sobol design, and so are all later ones while there is nothing to
    tell apart, or the classifier could not be fitted. An iteration begins as soon as `batch_size` workers of the
    evaluator are free, and proposes for every free one, while the others go on: with batches of one all workers are
    always busy, with batches of all workers the run is batch-synchronous. At the end everything outstanding is waited
    for.

    Under DDP all ranks hold the same observations and train the same weights. Each searches its share of the candidates
    and evaluates its share of the batch, which has one trial at least for each worker of each rank; rank 0 keeps the
    journal. The same seed and number of ranks give the same run.

    Without an evaluator the proposals stay pending: that is how `Study.ask` drives it.

    Args:
        evaluator: what turns trials into values; None to leave them pending.
        n_trials: stop the trainer when there are so many trials; None to let the trainer decide.
        acquisition: what is maximised; default `LogExpectedImprovement()` for distance-aware estimates of labels
            (`KernelPLS`), else `UpperConfidenceBound()`.
        candidates: how it is maximised; default `GreedyBatch()` over `LocalSearch()`.
        n_initial: trials before the classifier is asked; default 10.
        batch_size: q, trials proposed in one iteration; more where more workers are free.
        seed: of the one stream of random numbers of the run.

    Raises:
        SettingError: for counts below 1.
    """

    def __init__(
        self,
        evaluator: Evaluator | None = None,
        n_trials: int | None = None,
        acquisition: Acquisition | None = None,
        candidates: Candidates | None = None,
        n_initial: int | None = None,
        batch_size: int = 1,
        seed: int = 0,
    ):
        counts = {"n_trials": n_trials, "n_initial": n_initial, "batch_size": batch_size}
        for name, count in counts.items():
            if count is not None and count < 1:
                raise SettingError(f"{name} >= 1 must hold, but got {name}={count}.")
        self.evaluator, self.n_trials = evaluator, n_trials
        self.acquisition = acquisition
        self.candidates = candidates or GreedyBatch()
        self.n_initial = N_INITIAL if n_initial is None else n_initial
        self.batch_size, self.seed = batch_size, seed
        self.generator = torch.Generator().manual_seed(seed)
        self.classifier: Classifier | None = None
        self.queue: list[Tensor] = []  # points (1 x d) to ask before any others
        self.unfinished: list[int] = []  # rows to evaluate first: a run that was killed has left them pending
        self.rehearsals = 0  # epochs that only train, where the classifier has to learn anew
        self.proposed: list[int] = []  # rows of the latest proposals
        self.seconds = math.nan  # the latest iteration took so long to train and propose
        self.ranks = Ranks()
        self.tau = math.nan  # the latest threshold, in the user's sign
        self.measures = Measures()
        self.logs = True  # whether anybody may listen to what is logged, which takes some hundredths of an iteration
        self._started = time.perf_counter()

    # --- Lightning ---------------------------------------------------------------------------------------------------

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Lends the classifier the run's stream, and finds the other ranks."""
        assert isinstance(pl_module, Classifier)
        self.classifier = pl_module
        pl_module.generator = self.generator
        self.data: LabelledObservations = trainer.datamodule  # type: ignore[attr-defined]  # Lightning's types don't have it
        if trainer.world_size > 1:  # else the ranks are none or, in a program of several processes, somebody else's
            self.ranks = Ranks.found()
        if self.ranks.world > 1 and self.evaluator is not None:
            self.evaluator = SharedEvaluator(self.evaluator, self.ranks)
        if not self.ranks.is_first:
            self.observations.journal = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Evaluates what was left unfinished or enqueued, and the initial design, or what is left of it."""
        if self.evaluator is not None:
            self.evaluator.open()
            self._evaluate([row for row in self.unfinished if self.observations.status[row] == Status.PENDING])
            self.unfinished = []
        while self.evaluator is not None and self.queue and not self._is_over(trainer):
            self._evaluate(self.queued(self._room()))
        while self.evaluator is not None and self.needs_design and not self._is_over(trainer):
            self._evaluate(self.design(min(self._room(), self.n_initial - len(self.observations))))
        self._is_over(trainer)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock."""
        self._started = time.perf_counter()

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: LabelledBatch,
        batch_idx: int,
    ) -> None:
        """Notes the threshold and looks at the labels."""
        self.tau = self.observations.to_user(batch.tau)
        if self.logs:
            self.measures.relabelled(batch, self.observations)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """One iteration: propose, evaluate, record."""
        if self.rehearsals > 0:
            self.rehearsals -= 1
            return
        if self._is_over(trainer):
            return
        self._propose(pl_module, self._room())
        self._evaluate(self.proposed)
        if self.logs:
            self._log(pl_module)
        self._is_over(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Waits for what is still outstanding, if the trainer has ended the run."""
        while self.evaluator is not None and self.evaluator.outstanding:
            self._record(self.evaluator)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Lets go of the workers."""
        if self.evaluator is not None:
            self.evaluator.close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Drops what is outstanding, Ctrl-C included; its trials stay pending."""
        if self.evaluator is not None:
            self.evaluator.close()

    def state_dict(self) -> dict[str, Any]:
        """For checkpoints: where the stream of random numbers stands."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes up the stream where the checkpoint left it."""
        self.generator.set_state(state_dict["generator"].cpu())

    def reseed(self, seed: int) -> None:
        """Goes on with another stream of random numbers."""
        self.seed = seed
        self.generator.manual_seed(seed)

    # --- steps -------------------------------------------------------------------------------------------------------

    @property
    def observations(self) -> Observations:
        """All trials so far."""
        return self.data.observations

    @property
    def needs_design(self) -> bool:
        """Whether the initial design is still to be asked for."""
        return len(self.observations) < self.n_initial

    def design(self, q: int) -> list[int]:
        """Reserves the next q points of the Sobol design, and returns their rows."""
        return self._reserve(self._explored(q))

    def queued(self, q: int) -> list[int]:
        """Reserves up to q points of the queue, and returns their rows."""
        if not self.queue:
            return []
        rows = self._reserve(torch.cat(self.queue[:q]))
        del self.queue[:q]
        return rows

    def _explored(self, q: int) -> Tensor:
        sobol = self.observations.space.sobol(4 * q, self.seed, skip=len(self.observations))
        return distinct(sobol, self.observations, q, self.generator)

    def _propose(self, classifier: LightningModule, q: int) -> None:
        assert isinstance(classifier, Classifier)
        if not all(self.ranks.gather(classifier.ready)):
            points = self._explored(q)
        else:
            acquisition = self.acquisition or suited_to(classifier)
            search = Search(acquisition, classifier, self.observations, self.generator, self.ranks)
            with one_thread():
                points = self.candidates.propose(search, q)
        rows = self._reserve(points)
        self.seconds = time.perf_counter() - self._started
        if classifier.ready and self.logs:
            with torch.no_grad(), one_thread():
                self.measures.forecast(rows, classifier.probability(points))

    def _reserve(self, points: Tensor) -> list[int]:
        journal = self.observations.journal
        if journal is not None and self.classifier is not None:
            journal.open()
            asked = self.observations.n_asked
            Snapshot.take(asked, points, self.generator, self.classifier).save(journal.path)
        self.proposed = self.observations.reserve(points)
        return self.proposed

    def _evaluate(self, rows: list[int]) -> None:
        if self.evaluator is None:
            return
        for row in rows:
            self.evaluator.submit(self.observations.trial(row))
        while self._must_wait(self.evaluator):
            self._record(self.evaluator)

    def _must_wait(self, evaluator: Evaluator) -> bool:
        """Whether too few workers are free for the next iteration; at the end of the run, whether any is busy."""
        if self._room() < 1:
            return evaluator.outstanding > 0
        return evaluator.free < min(self.batch_size, evaluator.workers)

    def _record(self, evaluator: Evaluator) -> None:
        for outcome in evaluator.collect():
            self.observations.tell(outcome.trial.id, outcome.value, reason=outcome.failure)
            if self.ranks.is_first:
                _warn_of_failure(outcome)

    def _room(self) -> int:
        """How many trials the next iteration may ask for."""
        left = math.inf if self.n_trials is None else self.n_trials - len(self.observations)
        if self.evaluator is None:
            return self.batch_size
        wanted = max(self.batch_size, self.evaluator.free)
        return int(min(wanted, left, self.observations.n_left))

    def _is_over(self, trainer: Trainer) -> bool:
        """Stops the trainer when all trials are done, or the space is exhausted."""
        trainer.should_stop = trainer.should_stop or self._room() < 1
        return trainer.should_stop

    def _log(self, classifier: LightningModule) -> None:
        best = self.observations.best
        measured = {"label_flips": self.measures.label_flips, "brier_score": self.measures.brier_score}
        classifier.log_dict(
            {
                "trials": float(len(self.observations)),
                "failed_trials": float(self.observations.n_failed),
                "best_value": math.nan if best is None or best.value is None else best.value,
                "tau": self.tau,
                "seconds_per_suggestion": self.seconds,
                **{name: value for name, value in measured.items() if not math.isnan(value)},
            }
        )


def _warn_of_failure(outcome: Outcome) -> None:
    if outcome.failure is not None:
        trial = outcome.trial
        message = f"trial {trial.id} failed with {trial.params}: {outcome.failure}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
