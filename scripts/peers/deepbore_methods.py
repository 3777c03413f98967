"""deepbore as a peer: its defaults, other batches and heads, and the recipes of papers built from its parts."""

from collections.abc import Callable

import deepbore as db
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier
from deepbore.data.observations import Trial
from deepbore.space import Params
from peers import ablation, ablation_noise
from peers.ablation import Settings
from peers.base import HandlePeer


def bore(classifier: Classifier, searched_by: Candidates | None = None) -> Settings:
    """A head with BORE's labels and acquisition: one threshold at gamma 1/3, the class probability."""
    settings = {"classifier": classifier, "labels": db.ThresholdLabels(1 / 3), "acquisition": db.ClassProbability()}
    return settings | ({"candidates": searched_by} if searched_by else {})


def boggn() -> Settings:
    """A network with a Laplace posterior, searched by epsilon-greedy ascent."""
    head = db.LaplaceGGN(activation="relu", training=db.Training(batch_size=32, learning_rate=1e-3))
    search = db.EpsilonGreedy(db.LocalSearch(neighbours=0))
    return bore(head, search) | {"acquisition": db.ExpectedProbability()}


VARIANTS = {**ablation.VARIANTS, **ablation_noise.VARIANTS}  # docs/ablation.md
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
    "XGBoost": lambda: {"classifier": db.XGBoost()},
    "Calibrated": lambda: {"classifier": db.Calibrated(db.DeepEnsemble())},
    # the papers' labels, classifiers and acquisition with deepbore's features and search
    "deepbore:BORE-MLP": lambda: bore(
        db.MLPClassifier(training=db.Training(learning_rate=1e-3)), db.LocalSearch(neighbours=0)
    ),
    "deepbore:BORE-RF": lambda: bore(db.RandomForest(), db.RandomSearch(500)),
    "deepbore:BORE-XGB": lambda: bore(db.XGBoost(), db.RandomSearch(500)),
    "deepbore:BORE-PLS": lambda: bore(db.KernelPLS()),
    "deepbore:BORE++": lambda: bore(db.KernelPLS()) | {"acquisition": db.UpperConfidenceBound(3)},
    "deepbore:BOGGN": boggn,
    **VARIANTS,
}


class DeepBore(HandlePeer):
    """A `Study`.

    Args:
        settings: a name of `METHODS`.
    """

    packages = ("deepbore",)

    def __init__(self, *arguments, settings: str = "deepbore", **others):
        super().__init__(*arguments, **others)
        self.study = db.Study(self.space, seed=self.seed, n_initial=self.n_initial, **METHODS[settings]())

    def suggest(self, q: int) -> list[tuple[Params, Trial]]:
        q = min(q, self.study.observations.n_left)
        if q < 1:
            return []
        return [(trial.params, trial) for trial in self.study.ask(int(q))]

    def observe(self, handle: Trial, value: float | None) -> None:
        if value is None:
            self.study.tell(handle, failed=True)
        else:
            self.study.tell(handle, value)

    def recommend(self) -> Params:
        trial = self.study.recommended if self.noisy else self.study.best_trial
        return trial.params if trial else super().recommend()
