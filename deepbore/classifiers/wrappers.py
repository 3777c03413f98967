"""Classifiers around another one: on points of another space, at budgets, for each column, calibrated."""

import logging
import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier, check_base
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import MeanOnlyPosterior, MembersPosterior, Posterior
from deepbore.classifiers.trees import library
from deepbore.compute.numerics import minimize
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import Gamma, Labelling
from deepbore.labels.coreset import distinct_numbers
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import Real, SearchSpace
from deepbore.space.relaxation import Relaxation
from deepbore.space.structure import free_name
from deepbore.validation import of_kind, one_of, required, whole

MOST_CERTAIN = -600.0  # least logit whose probability differs from 0 in double precision
NO_MAP = torch.empty(2, 0, dtype=torch.float64)  # no calibration
POOL = 10_000  # observations that the folds share at most: as good as all for drawing coresets
TINY = 1e-12
log = logging.getLogger(__name__)


# --- on another space ------------------------------------------------------------------------------------------------


class OnAnotherSpace(Classifier):
    """A classifier whose base learns in another space; a subclass maps points there. All else is that of the base.

    Args:
        classifier: the base, not bound to a space yet.

    Raises:
        SettingError: for a base that is no classifier, or is bound already.
    """

    closed_form = True  # but for the base, on which it depends in the end
    learns: ClassVar[str]  # the space of the base, for the error

    def __init__(self, classifier: Classifier):
        super().__init__()
        check_base(classifier, f"the base learns {self.learns}")
        self.base = classifier
        self.link, self.kappa, self.capabilities = classifier.link, classifier.kappa, classifier.capabilities
        self.differentiable, self.distance_aware = classifier.differentiable, classifier.distance_aware
        self.columns, self.closed_form = classifier.columns, classifier.closed_form
        self.generator = classifier.generator

    def default_labels(self, gamma: Gamma | None = None, objectives: int = 1) -> Labelling:
        return self.base.default_labels(gamma, objectives)

    def keep_best(self, best: float | Tensor) -> None:
        """Sets the best label of the base, and the same here."""
        self.base.keep_best(best)
        super().keep_best(self.base.best_label)


class Relaxed(OnAnotherSpace):
    """A classifier on a box of real numbers: one-hot categories, and ordinals as one number (BORE section 5).

    It has scores and gradients between configurations, along which `RelaxedSearch` climbs. In spaces of real numbers it
    equals its base. All other classifiers encode ordinals level by level, which learns faster.

    Args:
        classifier: the base, not bound to a space yet.

    Raises:
        SettingError: for a base that is bound already.

    Example:
        >>> from deepbore.classifiers import MLPClassifier
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["finite"]
        >>> fit(Relaxed(MLPClassifier()), toy_data(space)).base.space.names
        ['k', 'c, 0', 'c, 1', 'c, 2', 'n']

    References:
        Tiao et al., BORE: Bayesian optimization by density-ratio estimation, 2021.
    """

    learns = "another space"

    def __init__(self, classifier: Classifier):
        required(classifier=classifier)
        super().__init__(classifier)

    relaxation: Relaxation

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.relaxation = Relaxation(space)
        self.base.bind(self.relaxation.box, outputs)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        return self.base.fit(replace(batch, points=self.relaxation.vectors(batch.points)))

    def posterior(self, points: Tensor) -> Posterior:
        """The posterior of the base at the relaxed points."""
        self.check_points(points)
        return self.base.posterior(self.relaxation.vectors(points))


# --- calibration: maps from scores to logits -------------------------------------------------------------------------


def fit_platt(scores: np.ndarray, z: np.ndarray, weight: np.ndarray) -> Tensor:
    """Slope and intercept of the logit (2 x 1), by weighted cross-entropy.

    The targets are Platt's, from a uniform prior for each class: (N+ + 1) / (N+ + 2) for 1, and 1 / (N- + 2) for 0.
    Graded labels count in part for both classes. For labels 0 and 1 it equals scikit-learn's sigmoid.

    Args:
        scores: n.
        z: labels in [0, 1], n.
        weight: n.

    Returns:
        Slope and intercept; `NO_MAP` for a slope <= 0, from scores that do not rank the labels.

    References:
        Platt, Probabilistic outputs for support vector machines, 1999.
    """
    positive, negative = weight @ z, weight @ (1 - z)
    target = z * (positive + 1) / (positive + 2) + (1 - z) / (negative + 2)
    centre, scale = scores.mean(), max(scores.std(), 1e-12)
    design = np.stack([(scores - centre) / scale, np.ones_like(scores)], axis=-1)
    share = weight / weight.sum()

    from scipy.special import expit

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logit = design @ theta
        gradient = design.T @ (share * (expit(logit) - target))
        return share @ (np.logaddexp(0, logit) - target * logit), gradient

    slope, intercept = minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    if slope <= 0:
        return NO_MAP
    return torch.tensor([[slope / scale], [intercept - slope * centre / scale]], dtype=torch.float64)


def platt_logit(line: Tensor, scores: Tensor) -> Tensor:
    """Slope * score + intercept."""
    slope, intercept = line.to(scores)
    logit: Tensor = slope * scores + intercept
    return logit


def fit_isotonic(scores: np.ndarray, z: np.ndarray, weight: np.ndarray) -> Tensor:
    """Scores and probabilities of the corners of an increasing, piecewise linear function (2 x k).

    Probabilities are in [1 / (N + 2), 1 - 1 / (N + 2)], so that their logits are finite.

    Args:
        scores: n.
        z: labels in [0, 1], n.
        weight: n.

    Returns:
        The corners; `NO_MAP` for a constant function, from scores that do not rank the labels.

    References:
        Zadrozny & Elkan, Transforming classifier scores into accurate multiclass probability estimates, 2002.
    """
    least = 1 / (weight.sum() + 2)
    isotonic = library("sklearn.isotonic", "isotonic calibration").IsotonicRegression(y_min=least, y_max=1 - least)
    isotonic.fit(scores, z, sample_weight=weight)
    corners = torch.from_numpy(np.stack([isotonic.X_thresholds_, isotonic.y_thresholds_]))
    return corners if corners[1, -1] > corners[1, 0] else NO_MAP


def isotonic_logit(corners: Tensor, scores: Tensor) -> Tensor:
    """The logit of the interpolated probability, constant beyond the first and the last corner."""
    at, probability = corners.to(scores.device)
    wanted = scores.detach().double()  # two corners may be equal in single precision
    right = torch.searchsorted(at, wanted).clamp(1, len(at) - 1)
    share = ((wanted - at[right - 1]) / (at[right] - at[right - 1])).clamp(0, 1)
    return torch.lerp(probability[right - 1], probability[right], share).logit().to(scores)


def score_of_logit(logit: Tensor, link: Link) -> Tensor:
    """A logit of any shape -> the score that has the same probability under the link."""
    if link is Link.LOGIT:
        return logit
    if link is Link.IDENTITY:
        return logit.sigmoid()
    smaller = (-logit.abs()).double().clamp(min=MOST_CERTAIN).sigmoid()  # the smaller probability keeps all digits
    probit: Tensor = -logit.sign() * torch.special.ndtri(smaller)
    return probit.to(logit)


Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Tensor]
METHODS: dict[str, tuple[Fit, Callable[[Tensor, Tensor], Tensor]]] = {
    "platt": (fit_platt, platt_logit),
    "isotonic": (fit_isotonic, isotonic_logit),
}


# --- a calibrated classifier -----------------------------------------------------------------------------------------


class MappedPosterior(Posterior):
    """The posterior of g(s) for scores s and an increasing function g.

    | | computed as | exact |
    |---|---|---|
    | members, samples | g of each | always |
    | mean | g(mean) | if g is linear, as Platt's map of logits |
    | standard deviation | (g(mean + std) - g(mean - std)) / 2 | if g is linear |
    | covariance | these deviations, with the correlations of s | if g is linear |

    Args:
        base: the posterior of s.
        map: g, of scores of any shape.
    """

    has_exact_moments = False

    def __init__(self, base: Posterior, map: Callable[[Tensor], Tensor]):
        self.base, self._map, self.link = base, map, base.link
        self.members = None if base.members is None else map(base.members)

    @cached_property
    def mean(self) -> Tensor:  # computed once
        return self._map(self.base.mean)

    @cached_property
    def std(self) -> Tensor:  # computed once, on request
        mean, std = self.base.mean, self.base.std
        return (self._map(mean + std) - self._map(mean - std)) / 2

    def covariance(self) -> Tensor:
        slope = self.std / self.base.std.clamp(min=TINY)
        return slope[:, None] * self.base.covariance() * slope

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        return self._map(self.base.sample(count, generator))

    @property
    def probability(self) -> Tensor:
        """The probability of the mapped mean score (n), as the map is fitted to mean scores."""
        return self.link.probability(self.mean)


class Calibrated(Classifier):
    """A classifier with an increasing map of its mean score, fitted to scores of held-out observations.

    A class probability is proportional to EI only if it is calibrated (BORE sections 3.2 and 5, appendix G.2). The base
    learns all rows. Each fold has a copy of the base, trained as warm, that learns all rows except the fold's own, and
    scores these; row i always belongs to fold i mod `folds`. The map is fitted to all held-out scores and their labels,
    and applied to the scores of the base. An iteration costs 1 + `folds` times that of the base.

    Platt's map is a logistic function; the isotonic map is any increasing function, without gradients, and prone to
    overfitting below a thousand observations (BORE section 5). Scores become calibrated logits, or calibrated labels if
    the base estimates labels. An increasing map keeps the ranking by the mean, and Platt's, which is linear, also that
    by upper confidence bounds of logits: it improves probabilities, as in `density_ratio` or a report. For calibrated
    labels use `UpperConfidenceBound`: they stay below 1, the best label, so that expected improvement is small.

    Around networks it did not help: with labels graded by value the network alone forecasts better at a quarter of the
    cost (`scripts/forecasts.py`). It is for trees and for labels by one threshold.

    No map is applied while a class has too few observations, or while held-out scores do not increase with the labels.

    With `ensemble` the folds are the members of the posterior, each with its own map, fitted to its held-out rows; the
    base is not used. Then calibration can change the ranking, even by Platt's map.
    `ExpectedProbability(by="samples")` is the mean of the folds' calibrated probabilities, as in scikit-learn's
    `CalibratedClassifierCV`, whose folds are stratified.

    Args:
        classifier: the base, not bound to a space yet.
        method: "platt" or "isotonic".
        folds: of the cross-validation, >= 2.
        min_per_class: least number of observations with labels >= 1/2, and with labels < 1/2, for calibration, >= 1.
        rows: maximal number of held-out observations that the map is fitted to.
        ensemble: whether to calibrate each fold's classifier, and average them, in place of the base.

    Raises:
        SettingError: for an unknown method, a number below its minimum, or a base that is bound already.
        MissingPackage: for "isotonic" without scikit-learn.

    Example:
        >>> from deepbore.classifiers import KernelPLS
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> fit(Calibrated(KernelPLS()), toy_data(space), epochs=2).probability(space.points.sobol(4, seed=0)).shape
        torch.Size([4])

    References:
        Niculescu-Mizil & Caruana, Predicting good probabilities with supervised learning, 2005.
    """

    closed_form = True  # but for the base

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
        for number, fold in enumerate(self.folds):
            self.add_module(f"fold{number}", fold)
        self._fit, self._logit = METHODS[method]
        self.min_per_class, self.rows, self.ensemble = min_per_class, rows, ensemble
        self.differentiable = classifier.differentiable and method != "isotonic"
        self.link, self.kappa, self.closed_form = classifier.link, classifier.kappa, classifier.closed_form
        can = {"std", "members"}
        self.capabilities = frozenset(can) if ensemble else classifier.capabilities & can
        self.generator = classifier.generator
        self._map = NO_MAP
        self._maps = [NO_MAP] * folds if ensemble else []  # of each fold
        self._has_logged = False

    def default_labels(self, gamma: Gamma | None = None, objectives: int = 1) -> Labelling:
        return self.base.default_labels(gamma, objectives)

    @property
    def parts(self) -> list[Classifier]:
        """The base and the classifiers of the folds."""
        return [self.base, *self.folds]

    def build(self, space: SearchSpace, outputs: int) -> None:
        for part in self.parts:
            part.bind(space, outputs)

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        logged = self.base.fit(batch)
        told = batch.learned.nonzero().squeeze(-1)  # pending trials have no class yet
        rows = told[self._drawn(len(told), POOL).sort().values.to(told.device)]  # by age, as in a batch
        have_learned = self._learn_folds(batch, rows)
        self._map = self._fitted(batch, rows, self.min_per_class) if have_learned else NO_MAP
        if self.ensemble:  # calibrated if there is a map of all held-out scores
            of_fold = self._fold(batch, rows)
            shares = [rows[of_fold == number] for number in range(len(self.folds))]
            self._maps = [self._fitted(batch, share, 1) if self._map.numel() else NO_MAP for share in shares]
        if not self._map.numel():
            self._log_no_map()
        return {**logged, "calibrated": float(self._map.numel() > 0)}

    def _fold(self, batch: LabelledBatch, rows: Tensor) -> Tensor:
        """The fold of each of m rows (m), counted from this run's first row, so that it never changes."""
        return (rows - batch.n_earlier) % len(self.folds)

    def _drawn(self, n: int, size: int) -> Tensor:
        """All of n rows, or `size` of them drawn uniformly if there are more."""
        return torch.arange(n) if n <= size else distinct_numbers(n, size, self.generator)

    def _learn_folds(self, batch: LabelledBatch, rows: Tensor) -> bool:
        """Fits each fold's classifier to the other folds' rows; returns whether the labels differed for all."""
        of_fold = self._fold(batch, rows)
        shares = [batch.take(rows[of_fold != number]) for number in range(len(self.folds))]
        learnable = [len(share.z.unique(dim=0)) > 1 for share in shares]
        for fold, share, can in zip(self.folds, shares, learnable, strict=True):
            if can:
                fold.fit(share)
        return all(learnable)

    @torch.no_grad()
    def _fitted(self, batch: LabelledBatch, rows: Tensor, least: int) -> Tensor:
        """The map from held-out mean scores to labels, if both classes have at least `least` rows."""
        rows = rows[self._drawn(len(rows), self.rows).to(rows.device)]
        sample = batch.take(rows)
        z = sample.z.mean(-1)
        good = int((z >= 0.5).sum())
        if min(good, len(z) - good) < least:
            return NO_MAP
        scores = self._held_out(sample.points, self._fold(batch, rows))
        return self._fit(*(column.cpu().double().numpy() for column in (scores, z, sample.weight)))

    def _held_out(self, points: Tensor, fold: Tensor) -> Tensor:
        """Mean scores (n) of points (n x d), each by the classifier of its fold (n), which has not learned it."""
        scores = torch.zeros(len(points), dtype=torch.float64, device=points.device)
        for number, classifier in enumerate(self.folds):
            if bool((mine := fold == number).any()):
                scores[mine] = classifier.posterior(points[mine]).mean.double()
        return scores

    def _log_no_map(self) -> None:
        """Logs, the first time only, that no map is applied."""
        if not self._has_logged:
            log.info(
                "%s is not calibrated yet: it takes %d observations with labels >= 1/2 and %d with labels < 1/2, and "
                "held-out scores that rise with the labels.",
                *(type(self.base).__name__, self.min_per_class, self.min_per_class),
            )
        self._has_logged = True

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> Posterior:
        """The mapped posterior of the base; see `MappedPosterior`."""
        self.check_points(points)
        if self.ensemble:
            return self._ensemble(points)
        posterior = self.base.posterior(points)
        return MappedPosterior(posterior, self._mapped) if self._map.numel() else posterior

    def _ensemble(self, points: Tensor) -> MembersPosterior:
        """The folds' mean scores, each mapped by its own map, if it has one."""
        scores = [fold.posterior(points).mean for fold in self.folds]
        mapped = [self._mapped(s, map) if map.numel() else s for s, map in zip(scores, self._maps, strict=True)]
        return MembersPosterior(torch.stack(mapped), self.link)

    def _mapped(self, scores: Tensor, map: Tensor | None = None) -> Tensor:
        """Calibrated scores of any shape, with the link of the base, by the given map or that of the base."""
        return score_of_logit(self._logit(self._map if map is None else map, scores), self.link)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The map, whose number of columns varies, and those of the folds."""
        return {"map": self._map, **{f"map{number}": map for number, map in enumerate(self._maps)}}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restores the maps of a checkpoint."""
        self._map = state["map"].cpu()
        self._maps = [state[f"map{number}"].cpu() for number in range(len(self._maps))]


class AtBudgets(OnAnotherSpace):
    """One classifier of all rungs: it learns the label of a configuration on a budget, and answers for the highest.

    The logarithm of the budget is one more real parameter of the space that the base learns. So what is good after one
    epoch counts for what will be good after eighty as far as the data say that it does, and a search, which asks what
    is best at the highest budget, needs to know of none. A study with a budget wraps its classifier in this by itself.

    Without budgets in a batch all of it is learned as of the highest.

    Args:
        classifier: the base, not bound to a space yet.
        budget: the rungs.

    Raises:
        SettingError: for a base that is bound already.

    Example:
        >>> from deepbore import Budget, KernelPLS, Real, SearchSpace, Study
        >>> study = Study(SearchSpace({"x": Real(0, 1)}), budget=Budget("epochs", 1, 9))
        >>> type(study.classifier).__name__, type(study.classifier.base).__name__
        ('AtBudgets', 'KernelPLS')

    References:
        Klein et al., Model-based Asynchronous Hyperparameter and Neural Architecture Search, 2020: one model of all
        rungs beside asynchronous promotions.
    """

    learns = "one parameter more"

    def __init__(self, classifier: Classifier, budget: Budget):
        required(classifier=classifier, budget=budget)
        super().__init__(classifier)
        of_kind(Budget, budget=budget)
        self.budget = budget

    def build(self, space: SearchSpace, outputs: int) -> None:
        spent = {free_name("budget", space.names): Real(self.budget.low, self.budget.top, log=True)}
        self.base.bind(SearchSpace({**space.parameters, **spent}), outputs)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        return self.base.fit(self._spent(batch))

    def quality(self, batch: LabelledBatch) -> dict[str, Tensor]:
        """That of the base, each row at its own budget."""
        return self.base.quality(self._spent(batch))

    def posterior(self, points: Tensor) -> Posterior:
        """That of the base at the highest budget."""
        self.check_points(points)
        return self.base.posterior(_with_column(points, torch.ones_like(points[:, 0])))

    def _spent(self, batch: LabelledBatch) -> LabelledBatch:
        """The batch with the place of each budget between the lowest and the highest, in logarithms, as a column."""
        if batch.budgets is None:
            return replace(batch, points=_with_column(batch.points, torch.ones_like(batch.points[:, 0])))
        spent = (batch.budgets / self.budget.low).log() / math.log(self.budget.top / self.budget.low)
        return replace(batch, points=_with_column(batch.points, spent.nan_to_num(nan=1.0)))


def at_budgets(classifier: Classifier, budget: Budget) -> "AtBudgets":
    """A classifier in `AtBudgets`, unless it is in one already.

    Raises:
        SettingError: for one of another budget.
    """
    wrapped = classifier if isinstance(classifier, AtBudgets) else AtBudgets(classifier, budget)
    if wrapped.budget != budget:
        raise SettingError(
            f"the classifier is of {wrapped.budget}, but the study has {budget}. Give the classifier alone: it is "
            "wrapped in AtBudgets by itself."
        )
    return wrapped


def _with_column(points: Tensor, column: Tensor) -> Tensor:
    return torch.cat([points, column[:, None].to(points)], dim=-1)


class PerColumn(Classifier):
    """A copy of a classifier for each column of the labels, each with parameters of its own: one for each objective.

    The other classifiers learn the mean of the columns, or have outputs over a shared trunk. Objectives differ in what
    they depend on and how smoothly, so each is better off with length scales of its own.

    Its posterior has the columns' own in `ColumnsPosterior.columns`, which count as independent. As one score it is
    their mean, which has no deviation: what needs one is refused when the run is made.

    Args:
        classifier: the base, not bound to a space yet, whose posterior has a deviation.
        columns: k >= 1, how many columns the labels have.

    Raises:
        SettingError: for a base that is bound already, or without a deviation, or a number below 1.

    Example:
        >>> from deepbore import KernelPLS, Real, SearchSpace, Study
        >>> space = SearchSpace({"x": Real(0, 1)})
        >>> study = Study(space, directions=["minimize"] * 2, classifier=PerColumn(KernelPLS(rows=100), columns=2))
        >>> type(study.state.recipe.labels).__name__
        'ObjectiveLabels'
    """

    closed_form = True  # but for the base

    def __init__(self, classifier: Classifier, columns: int):
        super().__init__()
        required(classifier=classifier, columns=columns)
        check_base(classifier, "each column has a copy of the base")
        whole(1, columns=columns)
        if "std" not in classifier.capabilities:
            raise SettingError(
                f"each column needs a deviation of its score, which {type(classifier).__name__} does not have. Use "
                "KernelPLS or DeepPLS; or leave it as it is: then ChebyshevLabels put several objectives in one column."
            )
        self.parts = [classifier, *(deepcopy(classifier) for _ in range(columns - 1))]
        for number, part in enumerate(self.parts):
            self.add_module(f"column{number}", part)
        self.link, self.kappa, self.differentiable = classifier.link, classifier.kappa, classifier.differentiable
        self.distance_aware, self.closed_form = classifier.distance_aware, classifier.closed_form
        self.capabilities, self.columns = frozenset({"columns"}), columns
        self.generator = classifier.generator

    def build(self, space: SearchSpace, outputs: int) -> None:
        for part in self.parts:
            part.bind(space, 1)

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        if batch.z.shape[1] != len(self.parts):
            raise SettingError(f"PerColumn has {len(self.parts)} column(s), but the labels have {batch.z.shape[1]}.")
        logged: dict[str, Any] = {}
        for number, part in enumerate(self.parts):
            measured = part.fit(replace(batch, z=batch.z[:, [number]]))
            logged |= {f"{name}_{number}": value for name, value in measured.items()}
        return logged

    def posterior(self, points: Tensor) -> "ColumnsPosterior":
        self.check_points(points)
        return ColumnsPosterior([part.posterior(points) for part in self.parts], self.link)


class ColumnsPosterior(MeanOnlyPosterior):
    """The posteriors of k columns of labels at n points, which count as independent.

    As one score it is the mean of the columns, without a deviation.

    Args:
        columns: k posteriors of n points each.
        link: what the scores are.
    """

    def __init__(self, columns: list[Posterior], link: Link):
        self.columns, self.link = columns, link

    @property
    def means(self) -> Tensor:
        """Of each column, n x k."""
        return torch.stack([each.mean for each in self.columns], dim=-1)

    @property
    def stds(self) -> Tensor:
        """Standard deviations of each column, n x k."""
        return torch.stack([each.std for each in self.columns], dim=-1)

    @property
    def mean(self) -> Tensor:
        return self.means.mean(-1)

    @property
    def probability(self) -> Tensor:
        return torch.stack([each.probability for each in self.columns], dim=-1).mean(-1)

    def unavailable(self, what: str) -> SettingError:
        return SettingError(
            f"PerColumn has a score for each column, so there is no one {what}. Look at its `columns`; or use one "
            "column, as ChebyshevLabels give it, with KernelPLS."
        )
