"""`Calibrated`: any classifier, with scores that keep what they promise."""

import logging
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.calibration import METHODS, NO_MAP
from deepbore.classifiers.trees import at_least, library
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace

POOL = 10_000  # observations that the folds share at most: enough to draw coresets from as the base does from all

log = logging.getLogger("deepbore")


class Calibrated(Classifier):
    """A classifier behind a rising map of its mean score, fitted to scores of observations that it has not learned.

    A class probability stands for EI only as far as it is calibrated (BORE sections 3.2 and 5, appendix G.2). The base
    learns everything. Beside it, each fold has a copy of it, trained as warm, that never learns the fold's own rows but
    scores them; row i belongs to fold i mod `folds` for ever. The map that fits all such held-out scores to their
    labels is applied to the base's scores. An iteration costs 1 + `folds` times the base's.

    Platt's map is a logistic function, the isotonic one any rising function: without gradients, and prone to
    overfitting below a thousand observations (BORE section 5). Scores become calibrated logits, or, for a base that
    estimates labels, calibrated labels. Deviations become half of what the map makes of mean +- deviation. So Platt's
    map leaves the ranking by upper bounds of logits as it is. Search a calibrated label by `UpperConfidenceBound`: it
    stays below 1, the best label, so that expected improvement over that sees little.

    While a class has too few observations, or held-out scores do not rise with the labels, nothing is mapped.

    Args:
        classifier: the base, not bound to a space yet.
        method: "platt" or "isotonic".
        folds: of the cross-validation, >= 2.
        min_per_class: observations with labels >= 1/2, and with labels < 1/2, that it takes to calibrate, >= 1.
        rows: how many held-out observations the map is fitted to at most.

    Raises:
        SettingError: for an unknown method, a number below its least, or a base that is bound already.
        MissingPackage: for "isotonic" without scikit-learn.

    Example:
        >>> from deepbore.classifiers import KernelPLS
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> fit(Calibrated(KernelPLS()), toy_data(space), epochs=2).probability(space.sobol(4, seed=0)).shape
        torch.Size([4])

    References:
        Niculescu-Mizil & Caruana, Predicting good probabilities with supervised learning, 2005.
    """

    def __init__(
        self,
        classifier: Classifier,
        method: str = "platt",
        folds: int = 3,
        min_per_class: int = 10,
        rows: int = 1500,
    ):
        super().__init__()
        if method not in METHODS:
            raise SettingError(f"method must be one of {sorted(METHODS)}, but got {method!r}.")
        if classifier.space is not None:
            raise SettingError("the folds must not know what the base knows, but it is bound already. Make a new one.")
        if method == "isotonic":
            library("sklearn.isotonic", "isotonic calibration")
        self.base = classifier
        self.folds = [deepcopy(classifier) for _ in range(at_least(2, folds=folds))]
        for number, fold in enumerate(self.folds):  # not in a list: Lightning hands its trainer to children only
            self.add_module(f"fold{number}", fold)
        self._fit, self._logit = METHODS[method]
        self.min_per_class, self.rows = at_least(1, min_per_class=min_per_class), at_least(1, rows=rows)
        self.differentiable = classifier.differentiable and method != "isotonic"
        self.estimates_labels, self.kappa = classifier.estimates_labels, classifier.kappa
        self.generator = classifier.generator
        self._map = NO_MAP
        self._has_told = False

    @property
    def parts(self) -> list[Classifier]:
        """The base and the folds' classifiers."""
        return [self.base, *self.folds]

    @property
    def generator(self) -> torch.Generator:
        """The stream of random numbers, one for all parts."""
        return self._generator

    @generator.setter
    def generator(self, generator: torch.Generator) -> None:
        self._generator = generator
        for part in self.children():
            if isinstance(part, Classifier):
                part.generator = generator

    def build(self, space: SearchSpace, outputs: int) -> None:
        for part in self.parts:
            part.bind(space, outputs)

    def configure_optimizers(self) -> list[Any]:
        """Those of all parts, each of which steps its own."""
        each = [part.configure_optimizers() for part in self.parts]
        return [optimizer for one in each for optimizer in (one if isinstance(one, list) else [one])]

    # --- learning ----------------------------------------------------------------------------------------------------

    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        logged = self.base.learn(batch)
        rows = self._drawn(len(batch), POOL).sort().values.to(batch.points.device)  # by age, as in a batch
        have_learned = self._learn_folds(batch, rows)
        self._map = self._fitted(batch, rows) if have_learned else NO_MAP
        if not self._map.numel():
            self._tell()
        return {**logged, "calibrated": float(self._map.numel() > 0)}

    def _drawn(self, n: int, size: int) -> Tensor:
        """All of n rows, or if there are more than `size`, so many drawn uniformly."""
        return torch.arange(n) if n <= size else torch.randint(n, (size,), generator=self.generator)

    def _learn_folds(self, batch: LabelledBatch, rows: Tensor) -> bool:
        """Lets each fold's classifier learn the other folds' rows; whether all had something to tell apart."""
        shares = [batch.take(rows[rows % len(self.folds) != number]) for number in range(len(self.folds))]
        learnable = [len(share.z.unique(dim=0)) > 1 for share in shares]
        for fold, share, can in zip(self.folds, shares, learnable, strict=True):
            if can:
                fold.learn(share)
        return all(learnable)

    @torch.no_grad()
    def _fitted(self, batch: LabelledBatch, rows: Tensor) -> Tensor:
        """The map from held-out mean scores to labels, if there are enough of both classes.

        Where the base learns from a coreset, with more good rows than there are, so does each fold; the map is fitted
        to rows in their true proportions, and so takes that back.
        """
        rows = rows[self._drawn(len(rows), self.rows).to(rows.device)]
        sample = batch.take(rows)
        z = sample.z.mean(-1)
        good = int((z >= 0.5).sum())
        if min(good, len(z) - good) < self.min_per_class:
            return NO_MAP
        scores = self._held_out(sample.points, rows % len(self.folds))
        return self._fit(*(column.cpu().double().numpy() for column in (scores, z, sample.weight)))

    def _held_out(self, points: Tensor, fold: Tensor) -> Tensor:
        """Mean scores (n) of points (n x d), each by the classifier that has not learned its fold (n)."""
        scores = torch.zeros(len(points), dtype=torch.float64, device=points.device)
        for number, classifier in enumerate(self.folds):
            if bool((mine := fold == number).any()):
                scores[mine] = classifier.gaussian(points[mine])[0].double()
        return scores

    def _tell(self) -> None:
        """Says, the first time, that nothing is mapped."""
        if not self._has_told:
            log.info(
                "%s is not calibrated yet: it takes %d observations with labels >= 1/2 and %d with labels < 1/2, and "
                "held-out scores that rise with the labels.",
                *(type(self.base).__name__, self.min_per_class, self.min_per_class),
            )
        self._has_told = True

    # --- predicting --------------------------------------------------------------------------------------------------

    def scores(self, points: Tensor) -> Tensor:
        """The base's scores (m x n), each mapped."""
        self.check_points(points)
        return self._mapped(self.base.scores(points))

    def gaussian(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """The base's mean (n), mapped, and half the length of the mapped interval of one deviation around it (n)."""
        self.check_points(points)
        mean, std = self.base.gaussian(points)
        if not self._map.numel():
            return mean, std
        return self._mapped(mean), (self._mapped(mean + std) - self._mapped(mean - std)) / 2

    def probability(self, points: Tensor) -> Tensor:
        """That of the mapped mean score (n): means are what the map is fitted to."""
        mean = self.gaussian(points)[0]
        return mean.clamp(0, 1) if self.estimates_labels else mean.sigmoid()

    def _mapped(self, scores: Tensor) -> Tensor:
        """Calibrated logits, or labels where the base estimates labels, of any shape."""
        if not self._map.numel():
            return scores
        logit = self._logit(self._map, scores)
        return logit.sigmoid() if self.estimates_labels else logit

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The map, whose number of columns changes."""
        return {"map": self._map}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Takes up the map of a checkpoint."""
        self._map = state["map"].cpu()
