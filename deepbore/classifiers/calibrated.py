"""`Calibrated`: any classifier, with scores that keep what they promise."""

import logging
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from deepbore.checks import one_of, required, whole
from deepbore.classifiers.base import Classifier, check_base, optimizers_of
from deepbore.classifiers.calibration import METHODS, NO_MAP, score_of_logit
from deepbore.classifiers.posterior import MembersPosterior, Posterior
from deepbore.classifiers.trees import library
from deepbore.errors import SettingError
from deepbore.labels.coreset import distinct_numbers
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace

TINY = 1e-12
POOL = 10_000  # observations that the folds share at most: enough to draw coresets from as the base does from all

log = logging.getLogger(__name__)


class Calibrated(Classifier):
    """A classifier behind a rising map of its mean score, fitted to scores of observations that it has not learned.

    A class probability stands for EI only as far as it is calibrated (BORE sections 3.2 and 5, appendix G.2). The base
    learns everything. Beside it, each fold has a copy of it, trained as warm, that never learns the fold's own rows but
    scores them; row i belongs to fold i mod `folds` for ever. The map that fits all such held-out scores to their
    labels is applied to the base's scores. An iteration costs 1 + `folds` times the base's.

    Platt's map is a logistic function, the isotonic one any rising function: without gradients, and prone to
    overfitting below a thousand observations (BORE section 5). Scores become calibrated logits, or, for a base that
    estimates labels, calibrated labels. A rising map never changes a ranking by the mean, and Platt's, a line, none by
    upper bounds of logits either: what it mends is what a probability is worth, as in `density_ratio` or a report.
    Search a calibrated label by `UpperConfidenceBound`: it stays below 1, the best label, so that expected improvement
    over that sees little.

    While a class has too few observations, or held-out scores do not rise with the labels, nothing is mapped.

    With `ensemble` the folds are the members of the posterior: each has a map of its own, fitted to the fold that it
    has not learned, and the base is left alone. So calibration can change a ranking, by Platt's map, too.
    `ExpectedProbability(by="samples")` is the mean of the folds' calibrated probabilities, as in scikit-learn's
    `CalibratedClassifierCV`, whose folds are stratified.

    Args:
        classifier: the base, not bound to a space yet.
        method: "platt" or "isotonic".
        folds: of the cross-validation, >= 2.
        min_per_class: observations with labels >= 1/2, and with labels < 1/2, that it takes to calibrate, >= 1.
        rows: how many held-out observations the map is fitted to at most.
        ensemble: whether each fold's classifier gets a map, and their mean is what counts, or the base gets one.

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
        ensemble: bool = False,
    ):
        super().__init__()
        required(classifier=classifier)
        check_base(classifier, "the folds must not know what the base knows")
        if "columns" in classifier.capabilities:
            raise SettingError("one map can't calibrate several columns. Give PerColumn(Calibrated(...), columns=...).")
        one_of(METHODS, method=method)
        one_of((True, False), ensemble=ensemble)
        whole(2, folds=folds)
        whole(1, min_per_class=min_per_class, rows=rows)
        if method == "isotonic":
            library("sklearn.isotonic", "isotonic calibration")
        self.base = classifier
        self.folds = [deepcopy(classifier) for _ in range(folds)]
        for number, fold in enumerate(self.folds):  # not in a list: Lightning hands its trainer to children only
            self.add_module(f"fold{number}", fold)
        self._fit, self._logit = METHODS[method]
        self.min_per_class, self.rows, self.ensemble = min_per_class, rows, ensemble
        self.differentiable = classifier.differentiable and method != "isotonic"
        self.link, self.kappa = classifier.link, classifier.kappa
        can = {"std", "members"}
        self.capabilities = frozenset(can) if ensemble else classifier.capabilities & can  # no theorem: scores change
        self.generator = classifier.generator
        self._map = NO_MAP
        self._maps = [NO_MAP] * folds if ensemble else []  # of each fold
        self._has_told = False

    @property
    def parts(self) -> list[Classifier]:
        """The base and the folds' classifiers."""
        return [self.base, *self.folds]

    def build(self, space: SearchSpace, outputs: int) -> None:
        for part in self.parts:
            part.bind(space, outputs)

    def configure_optimizers(self) -> list[Any]:
        """Those of all parts, each of which steps its own."""
        return optimizers_of(self.parts)

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        logged = self.base.fit(batch)
        told = batch.learned.nonzero().squeeze(-1)  # a pending trial is of no class yet
        rows = told[self._drawn(len(told), POOL).sort().values.to(told.device)]  # by age, as in a batch
        have_learned = self._learn_folds(batch, rows)
        self._map = self._fitted(batch, rows, self.min_per_class) if have_learned else NO_MAP
        if self.ensemble:  # where there is a map of all held-out scores
            of_fold = self._fold(batch, rows)
            shares = [rows[of_fold == number] for number in range(len(self.folds))]
            self._maps = [self._fitted(batch, share, 1) if self._map.numel() else NO_MAP for share in shares]
        if not self._map.numel():
            self._tell()
        return {**logged, "calibrated": float(self._map.numel() > 0)}

    def _fold(self, batch: LabelledBatch, rows: Tensor) -> Tensor:
        """The number of the fold of each of m rows (m): this run's are counted from its first, so that they keep it."""
        return (rows - batch.n_earlier) % len(self.folds)

    def _drawn(self, n: int, size: int) -> Tensor:
        """All of n rows, or if there are more than `size`, so many drawn uniformly."""
        return torch.arange(n) if n <= size else distinct_numbers(n, size, self.generator)

    def _learn_folds(self, batch: LabelledBatch, rows: Tensor) -> bool:
        """Lets each fold's classifier learn the other folds' rows; whether all had something to tell apart."""
        of_fold = self._fold(batch, rows)
        shares = [batch.take(rows[of_fold != number]) for number in range(len(self.folds))]
        learnable = [len(share.z.unique(dim=0)) > 1 for share in shares]
        for fold, share, can in zip(self.folds, shares, learnable, strict=True):
            if can:
                fold.fit(share)
        return all(learnable)

    @torch.no_grad()
    def _fitted(self, batch: LabelledBatch, rows: Tensor, least: int) -> Tensor:
        """The map from held-out mean scores to labels, if there are at least so many of both classes."""
        rows = rows[self._drawn(len(rows), self.rows).to(rows.device)]
        sample = batch.take(rows)
        z = sample.z.mean(-1)
        good = int((z >= 0.5).sum())
        if min(good, len(z) - good) < least:
            return NO_MAP
        scores = self._held_out(sample.points, self._fold(batch, rows))
        return self._fit(*(column.cpu().double().numpy() for column in (scores, z, sample.weight)))

    def _held_out(self, points: Tensor, fold: Tensor) -> Tensor:
        """Mean scores (n) of points (n x d), each by the classifier that has not learned its fold (n)."""
        scores = torch.zeros(len(points), dtype=torch.float64, device=points.device)
        for number, classifier in enumerate(self.folds):
            if bool((mine := fold == number).any()):
                scores[mine] = classifier.posterior(points[mine]).mean.double()
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

    def posterior(self, points: Tensor) -> Posterior:
        """That of the base, mapped; see `MappedPosterior`."""
        self.check_points(points)
        if self.ensemble:
            return self._ensemble(points)
        posterior = self.base.posterior(points)
        return MappedPosterior(posterior, self._mapped) if self._map.numel() else posterior

    def _ensemble(self, points: Tensor) -> MembersPosterior:
        """The folds' mean scores, each by its own map, if it has one."""
        scores = [fold.posterior(points).mean for fold in self.folds]
        mapped = [self._mapped(s, map) if map.numel() else s for s, map in zip(scores, self._maps, strict=True)]
        return MembersPosterior(torch.stack(mapped), self.link)

    def _mapped(self, scores: Tensor, map: Tensor | None = None) -> Tensor:
        """Calibrated scores of the base's kind, of any shape, by a map of a fold or the base's own."""
        return score_of_logit(self._logit(self._map if map is None else map, scores), self.link)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The map, whose number of columns changes, and those of the folds."""
        return {"map": self._map, **{f"map{number}": map for number, map in enumerate(self._maps)}}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Takes up the map of a checkpoint."""
        self._map = state["map"].cpu()
        self._maps = [state[f"map{number}"].cpu() for number in range(len(self._maps))]


class MappedPosterior(Posterior):
    """A posterior of scores s as one of rising functions g(s).

    Members and samples are mapped one by one, which is exact. The mean is g of the mean, the deviation half of what g
    makes of mean +- deviation, and the covariance has these deviations and the correlations of s. All that is exact,
    too, where g is a line, as Platt's map of logits is.

    Args:
        base: the posterior of s.
        map: g, of scores of any shape.
    """

    has_exact_moments = False

    def __init__(self, base: Posterior, map: Callable[[Tensor], Tensor]):  # the word for it
        self.base, self._map, self.link = base, map, base.link
        self.members = None if base.members is None else map(base.members)

    @cached_property
    def mean(self) -> Tensor:  # computed once
        return self._map(self.base.mean)

    @cached_property
    def std(self) -> Tensor:  # computed once, and only if it is asked for
        mean, std = self.base.mean, self.base.std
        return (self._map(mean + std) - self._map(mean - std)) / 2

    def covariance(self) -> Tensor:
        slope = self.std / self.base.std.clamp(min=TINY)
        return slope[:, None] * self.base.covariance() * slope

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        return self._map(self.base.sample(count, generator))

    @property
    def probability(self) -> Tensor:
        """That of the mapped mean score (n): means are what the map is fitted to."""
        return self.link.probability(self.mean)
