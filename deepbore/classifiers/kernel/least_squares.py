"""`KernelPLS`: probabilistic least squares (not partial least squares) in a reproducing kernel Hilbert space."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.kernel.fit import ROWS, KernelFit, PartlyAdditiveFit
from deepbore.classifiers.kernel.posterior import KernelPosterior
from deepbore.compute.numerics import LinAlgError
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import one_of

LIKELY = 0.5  # the probability of a success from which on a failure counts as chance


def without_crashes(batch: LabelledBatch, expected_by_others: Callable[[LabelledBatch], Tensor]) -> LabelledBatch:
    """The batch without the failures at which, by all other rows, a success is likelier than a failure.

    Whether a row has succeeded is a label like any other: 1 or 0, less the share of successes, so that far from all
    data that share is expected. A region that fails is found by its second failure, since each of the two says what to
    expect of the other; a crash among successes is found out at once.

    Args:
        batch: n rows.
        expected_by_others: gives what is expected of the label of each row of a batch by all its other rows (n).
    """
    if not bool(batch.failures.any()):
        return batch
    succeeded = (~batch.failures).to(batch.points)
    usual = succeeded.mean()
    expected = usual + expected_by_others(replace(batch, z=(succeeded - usual)[:, None]))
    return batch.take((~batch.failures | (expected <= LIKELY)).nonzero().squeeze(-1))


CRASH_ITERATIONS = 30  # of the kernel of failures, which is fitted anew each time


class KernelPLS(KernelFit):
    """The regularised least-squares fit of the labels in an RKHS, and its confidence interval.

        pi_t(x) = k_t(x)^T (K_t + lambda I)^-1 z_t                                   (Oliveira et al. 2022, eq. 13)
        sigma_t(x)^2 = k(x, x) - k_t(x)^T (K_t + lambda I)^-1 k_t(x)                 (ibid., Theorem 1)

    It is also the posterior of a Gaussian process with the labels as noisy values, whose marginal likelihood chooses
    one length scale for each parameter, the amplitude and lambda, warm from one iteration to the next. The prior mean
    is 0, the label of a failure: what is far from all data counts as bad, but uncertain.

    Of labels by one threshold pi_t estimates the class probability, of labels graded by value improvement over many
    thresholds. With the latter and `LogExpectedImprovement`, the default, this is GP-EI on values that saturate beyond
    the median; docs/theory.md says how, and why it is still BORE's idea. Improvement is over the best label; but where
    lambda explains more than half of what the labels vary by that one is mostly luck, and the greatest pi_t of a row
    takes its place: of a feasible row of this run, as the best label is.

    `noisy=True` says that values are known to be noisy. Then the marginal likelihood is maximised from a second start,
    too, where all is noise: going on from one iteration to the next alone, it may keep explaining noise by short length
    scales. And `LogExpectedImprovement` is averaged over what the labels of the rows may be without their noise (Letham
    et al. 2019), so that no lucky label is what must be beaten. Where values are rough but not noisy it is worse.

    A failure has label 0, as if it were worse than any value. That holds a search off a region which fails; but a crash
    beside the best row, which has nothing to do with where it happened, is a hole that no smooth kernel explains. So of
    each failure it is asked what a second kernel, of which rows have failed, expects there by all other rows. Where a
    success is likelier nothing is learned of it: it counts as a crash by chance, until another one nearby confirms it.

    Many functions are in good part a sum of what each parameter does alone; one kernel of all parameters learns nothing
    from a value of one of them about another place that has the same. So a rival learns the same rows, whose kernel
    adds one of each parameter alone, with shorter or longer length scales (Duvenaud et al. 2011). It predicts in the
    place of this one where it makes the labels likelier by more than its two further parameters would by chance:
    Schwarz's criterion (1978), n^(1/2) for each; up to as many rows as are learned at most, all of the same weight. But
    not where its lambda explains more than half of what the labels vary by: then it has found chance, and no sum.

    Departures from the paper: beyond `rows` observations it learns from a coreset, so that its cost stays flat, and
    log-normal priors keep what is learned within reason; `prior=False` leaves them out. Of ten real parameters or more
    the logarithms of any two length scales have a correlation of 3/4: a few observations tell how far all of them reach
    before they tell one from another, and few pass for idle by chance.

    Args:
        kernel: "matern" (5/2), "rbf" or "rational_quadratic".
        length_scale: fixed for all parameters, with amplitude 1, in units of a parameter's whole range; None to learn.
        regularisation: lambda > 0, fixed; None to learn it.
        rows: how many observations it learns from at most.
        iterations: of L-BFGS on the marginal likelihood, per iteration of the run; fewer beyond 100 rows.
        prior: whether length scales, amplitude and lambda have priors, or the marginal likelihood alone decides.
        noisy: whether values are known to be noisy.
        alike: whether length scales are expected to be alike, in spaces of ten real parameters or more; if not, their
            priors are independent there, too.
        crashes: whether failures may be crashes by chance; if not, nothing is learned but that they are bad.
        additive: whether there is a rival whose kernel is partly additive; not of ten real parameters or more, nor
            with `noisy`, another kernel than the default, or a fixed length scale or regularisation.

    Raises:
        SettingError: for an unknown kernel, or a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> posterior = fit(KernelPLS(), toy_data(space)).posterior(space.sobol(4, seed=0))
        >>> posterior.mean.shape, posterior.std.shape
        (torch.Size([4]), torch.Size([4]))

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
        Letham, Karrer, Ottoni & Bakshy, Constrained Bayesian optimization with noisy experiments, 2019 (section 4).
        Duvenaud, Nickisch & Rasmussen, Additive Gaussian processes, 2011.
        Schwarz, Estimating the dimension of a model, 1978.
    """

    def __init__(
        self,
        kernel: str = "matern",
        length_scale: float | None = None,
        regularisation: float | None = None,
        rows: int = ROWS,
        iterations: int = 15,
        prior: bool = True,
        noisy: bool = False,
        alike: bool = True,
        crashes: bool = True,
        additive: bool = True,
    ):
        super().__init__(kernel, length_scale, regularisation, rows, iterations, prior, noisy, alike)
        one_of((True, False), crashes=crashes, additive=additive)
        self.crashes, self.additive = crashes, additive
        self.rival: PartlyAdditiveFit | None = None
        self.is_beaten = False  # by the rival, of the rows learned last

    @property
    def how_it_learns(self) -> dict[str, Any]:
        """The settings that a head has in common which learns some of the rows beside this one."""
        names = ("rows", "iterations", "prior", "alike", "crashes", "additive")
        return {name: getattr(self, name) for name in names}

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self.rival, self.is_beaten = None, False
        if self.additive and self.learns_all and not self.noisy and len(space) > 1 and not space.is_high_dimensional:
            self.rival = PartlyAdditiveFit(rows=self.rows, iterations=self.iterations, prior=self.prior)
            self.rival.bind(space)

    def keep_best(self, best: float | Tensor) -> None:
        """Keeps what improvement is over: the best label, or the greatest pi_t of a row where luck made that label."""
        if self.is_beaten and self.rival is not None:
            self.rival.keep_best(best)
            self.best_label = self.rival.best_label
        else:
            super().keep_best(best)

    @torch.no_grad()
    def learn_all(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits every row of a coreset but crashes by chance, and lets the rival fit them."""
        if self.crashes:
            batch = without_crashes(batch, self._expected_by_others)
        learned = super().learn_all(batch)
        # where rows weigh differently, lambda does, too: sums of next to no length scale pass for noise that does not
        alike = bool(batch.weight.min() == batch.weight.max())
        self.is_beaten = self.rival is not None and alike and self._loses_to(self.rival, batch, learned["loss"])
        return learned

    def _loses_to(self, rival: PartlyAdditiveFit, batch: LabelledBatch, loss: float) -> bool:
        """Whether labels are likelier by a rival, by Schwarz's criterion; one that is behind begins anew from here."""
        try:
            gain = (loss - float(rival.learn_all(batch)["loss"])) * len(batch)
        except LinAlgError:
            gain = -math.inf
        enough = math.log(len(batch))  # log(n) / 2 for each of its two further parameters
        if gain < -enough:
            rival.begin_from(self.theta)
        return gain > enough and not rival.is_mostly_chance  # to which labels are chance, not sums

    def _expected_by_others(self, batch: LabelledBatch) -> Tensor:
        """What a kernel that learns a batch expects of each of its labels by all other rows (n).

        z_i - a_i / (K^-1)_ii, of the coefficients a (Rasmussen & Williams, Gaussian processes for machine learning,
        2006, eq. 5.12).
        """
        assert self.space is not None
        head = KernelFit(rows=len(batch), iterations=CRASH_ITERATIONS, alike=self.alike)
        head.bind(self.space).to(batch.points.device)
        head.learn_all(batch)
        return head._data[:, 0] - head._coefficients / head._root.square().sum(0)

    def posterior(self, points: Tensor) -> KernelPosterior:
        if self.is_beaten and self.rival is not None:
            return self.rival.posterior(points)
        return super().posterior(points)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Any]:
        """The rows behind the fit, and whether the rival has fitted them better."""
        return super().get_extra_state() | {"is_beaten": self.is_beaten}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Takes up the rows of a checkpoint."""
        super().set_extra_state(state)
        self.is_beaten = bool(state.get("is_beaten", False))
