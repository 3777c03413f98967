"""A variant that asks whether values are noisy: by the best configuration, evaluated once more.

docs/ablation.md has what came of it ("A repeat tells noise").
"""

import deepbore as db
from deepbore.data.observations import Trial

DOUBT = 0.1  # the share of the labels' variance that lambda explains from which on a repeat is worth an evaluation


class Repeat:
    """Once, where much of what labels vary by may be noise, the best configuration again; another value is noise.

    A difference makes the classifier `KernelPLS(noisy=True)` for the rest of the run.

    Args:
        study: with `KernelPLS`, of one objective, driven one trial at a time.
        n_initial: trials of its design.
    """

    def __init__(self, study: db.Study, n_initial: int):
        self.study, self.n_initial = study, n_initial
        self.repeated: Trial | None = None  # what is to be evaluated again
        self.done = False

    def before_asking(self) -> None:
        """Enqueues the repeat where it is due."""
        learned = self.study.observations.ledger.statistics.n_complete > self.n_initial
        best = self.study.best_trial
        if self.done or not learned or best is None or self.study.classifier._share_of_noise <= DOUBT:
            return
        self.study.enqueue(best.params)
        self.repeated, self.done = best, True

    def after_telling(self) -> None:
        """Looks at the trial that was told last."""
        if self.repeated:
            self.study.classifier.noisy = self.study.trials[-1].value != self.repeated.value
            self.repeated = None


REPEATED = ("deepbore:repeat",)
