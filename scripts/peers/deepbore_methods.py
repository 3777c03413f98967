"""deepbore as a peer: its defaults, other batches and heads, and the recipes of the papers."""

from collections.abc import Callable

import deepbore as db
from deepbore.acquisition import Acquisition
from deepbore.classifiers import Classifier
from deepbore.data.observations import Trial
from deepbore.data.outcome import Outcome
from deepbore.space import Params
from deepbore.strategies import ModelStrategy, NearBest, Strategy, Turns
from peers import papers, searches, variants
from peers.base import HandlePeer
from peers.variants.design import sobol_first
from peers.variants.settings import Settings


def with_near_best(classifier: Classifier, acquisition: Acquisition | None = None) -> Strategy:
    """A classifier in turns with the model of the rows near the best one, as the default kernel is in real spaces."""
    return Turns([ModelStrategy(classifier, acquisition), NearBest()])


PAPERS = papers.methods()
METHODS: dict[str, Callable[[], Settings]] = {
    "deepbore": dict,  # the defaults
    # the default classifier with other batches
    "top": lambda: {"candidates": db.LocalSearch()},
    "Thompson": lambda: {"candidates": db.ThompsonBatch()},
    "SVGD": lambda: {"candidates": db.SVGDCandidates()},
    "BoTorchBatch": lambda: {"candidates": db.BoTorchBatch()},
    # every other head with its defaults
    "DeepPLS": lambda: {"classifier": db.DeepPLS()},
    "DeepEnsemble": lambda: {"classifier": db.DeepEnsemble()},
    "HyperDeepEnsemble": lambda: {"classifier": db.HyperDeepEnsemble()},
    "MCDropout": lambda: {"classifier": db.MCDropout()},
    "LaplaceGGN": lambda: {"classifier": db.LaplaceGGN()},
    "FourierLogistic": lambda: {"classifier": db.FourierLogistic()},
    "GPClassifier": lambda: {"classifier": db.GPClassifier()},
    "RandomForest": lambda: {"classifier": db.RandomForest()},
    "RelativeRatio": lambda: {"classifier": db.RelativeRatio()},
    "XGBoost": lambda: {"classifier": db.XGBoost()},
    "Calibrated": lambda: {"classifier": db.Calibrated(db.DeepEnsemble())},
    # the same with what the default kernel has
    "DeepPLS-near": lambda: {"strategy": with_near_best(db.DeepPLS(), db.LogExpectedImprovement())},
    "RandomForest-near": lambda: {"strategy": with_near_best(db.RandomForest(), db.LogExpectedImprovement())},
    "DeepEnsemble-near": lambda: {"strategy": with_near_best(db.DeepEnsemble()), "labels": db.ValueGradedLabels(0.5)},
    **PAPERS,
    **searches.METHODS,
    **variants.ALL,
}
# what begins elsewhere than the default: the papers have independent points, and say nothing of a middle
FIRST = variants.FIRST | dict.fromkeys(PAPERS, sobol_first)


class DeepBore(HandlePeer):
    """A `Study`.

    Args:
        settings: a name of `METHODS`.
    """

    packages = ("deepbore",)

    def __init__(self, *arguments, settings: str = "deepbore", **others):
        super().__init__(*arguments, **others)
        self.study = db.Study(self.space, seed=self.seed, **{"n_initial": self.n_initial} | METHODS[settings]())
        if first := FIRST.get(settings):
            self.study.enqueue(first(self.space, self.seed))
        self.repeat = variants.Repeat(self.study, self.n_initial) if settings in variants.REPEATED else None

    def suggest(self, q: int) -> list[tuple[Params, Trial]]:
        q = min(q, self.study.observations.columns.n_left)
        if q < 1:
            return []
        if self.repeat:
            self.repeat.before_asking()
        return [(trial.params, trial) for trial in self.study.ask(int(q))]

    def observe(self, handle: Trial, value: float | None) -> None:
        if value is None:
            self.study.tell(handle, failed=True)
        else:
            self.study.tell(handle, value)

    def observe_outcome(self, handle: Trial, outcome: Outcome) -> None:
        self.study.tell(handle, outcome)
        if self.repeat:
            self.repeat.after_telling()

    def recommend(self) -> Params:
        trial = self.study.recommended if self.noisy else self.study.best_trial
        return trial.params if trial else super().recommend()
