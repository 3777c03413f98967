"""`Evidence`: the marginal likelihood of a kernel and its gradient, in NumPy on the CPU, in torch on an accelerator."""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from scipy.linalg import lapack
from torch import Tensor

from deepbore.classifiers.kernel.kernels import FEW, WITH_SLOPE, Kernel, Split
from deepbore.classifiers.kernel.posterior import JITTER
from deepbore.compute.arrays import Array, as_tensor, like, module_of, native, on_cpu

FAILED = 1e10  # the value where the covariance has no Cholesky factor


def inverse_root(matrix: Array) -> Array | None:
    """R, lower triangular, with R^T R = A^-1 (n x n); None if A is not positive definite.

    Args:
        matrix: A, overwritten; only its upper triangle is read.
    """
    if not len(matrix):
        return matrix
    if isinstance(matrix, np.ndarray):
        factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=1)
        return None if failed else lapack.dtrtri(factor, lower=1, overwrite_c=1)[0]
    factor, info = torch.linalg.cholesky_ex(matrix.mT)
    identity = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    return None if bool(info) else torch.linalg.solve_triangular(factor, identity, upper=False)


class Gram(Protocol):
    """Gram matrices of the same n rows for different hyperparameters of a kernel."""

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        """The matrix, and a function from a derivative in it (n x n, symmetric) to that in theta, in parts.

        The matrix is new and row-major, and its lower triangle may be anything. The last two entries of theta are the
        logarithms of the amplitude, which is a factor of the matrix, and of lambda; derivatives in them are left out.
        """


class Evidence:
    """Minus the log marginal likelihood of n labelled rows, up to a constant, and its gradient in theta.

        -log p(z) = z^T a / 2 + log det(K) / 2,    K = K_t + lambda diag(1 / w),    a = K^-1 z

    Its derivative in K is G = (K^-1 - a a^T) / 2 (Rasmussen & Williams, Gaussian processes for machine learning, 2006,
    eq. 5.9). So that in log lambda is tr(G lambda diag(1 / w)), and as K_t is proportional to the amplitude, that in
    its logarithm is tr(G K_t) = (n - z^T a) / 2 - tr(G lambda diag(1 / w)).

    Args:
        gram: K_t as a function of theta.
        z: labels, n.
        weight: w, n.
    """

    def __init__(self, gram: Gram, z: Tensor, weight: Tensor):
        self.gram, self.z, self.weight = gram, native(z), native(weight)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        n, z = len(self.z), self.z
        noise = self.noise(theta)
        root, pull_back = self._root(theta, noise)
        if root is None:
            return FAILED, np.zeros_like(theta)
        a = root.T @ (root @ z)
        explained = float(z @ a)
        derivative = root.T @ root
        derivative -= a[:, None] * a
        derivative *= 0.5
        own = derivative.reshape(-1)[:: n + 1]
        by_lambda = float(own @ noise)
        by_amplitude = (n - explained) / 2 - by_lambda - JITTER * float(own.sum())
        value = explained / 2 - float(module_of(z).log(root.diagonal()).sum())
        return value, np.concatenate([*map(on_cpu, pull_back(derivative)), [by_amplitude, by_lambda]])

    def root(self, theta: np.ndarray) -> Array | None:
        """R with R^T R = K^-1, n x n; None if K has no Cholesky factor."""
        return self._root(theta, self.noise(theta))[0]

    def noise(self, theta: np.ndarray) -> Array:
        """Lambda divided by the weight of each row (n)."""
        return math.exp(theta[-1]) / self.weight

    def _root(self, theta: np.ndarray, noise: Array) -> tuple[Array | None, Callable[[Array], list[Array]]]:
        covariance, pull_back = self.gram(theta)
        covariance.reshape(-1)[:: len(noise) + 1] += noise + JITTER
        return inverse_root(covariance), pull_back


class ScaledGram:
    """Gram matrices of a `ScaledKernel`.

        K = a f(s),    s = sum_j (x_j - y_j)^2 / l_j^2,    ds / d log l_j = -2 (x_j - y_j)^2 / l_j^2

    Args:
        function: f, one of `KERNELS`.
        x: rows as coordinates, n x c.
        owner: the parameter of each coordinate, c.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor, owner: Tensor):
        self.x, self.owner = native(x), owner.cpu().numpy()
        self.with_slope = WITH_SLOPE[function]
        self.members = like(np.eye(int(self.owner.max()) + 1)[self.owner], self.x)  # c x d: which parameter's it is

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        value, pull_back = self.unscaled(theta)
        amplitude = math.exp(theta[-2])
        value *= amplitude
        return value, lambda derivative: [amplitude * pull_back(derivative)]

    def unscaled(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], Array]]:
        """f(s), and the function to derivatives in the d logarithms of length scales."""
        d = self.members.shape[1]
        x = self.x * like(np.exp(-theta[:d])[self.owner], self.x)
        square = x * x
        norm = square.sum(1)
        squared = x @ x.T
        squared *= -2
        squared += norm[:, None]
        squared += norm
        value, slope = self.with_slope(abs(squared), module_of(x))  # of what is 0 rounding leaves either sign

        def pull_back(derivative: Array) -> Array:
            """-2 sum_ab M_ab (x_a - x_b)^2 of each coordinate, where M is the derivative in s."""
            m = derivative * slope
            return 4 * (((m @ x) * x).sum(0) - m.sum(0) @ square) @ self.members

        return value, pull_back


class PartlyAdditiveGram:
    """Gram matrices of a `PartlyAdditiveKernel`.

        K = a ((1 - t) f(s) + t / m sum_j f(s_j / rho^2)),    s = sum_j s_j,    s_j = (x_j - y_j)^2 / l_j^2

    Theta begins with m log length scales, the logit of t and log rho. A parameter with few levels in the rows has a
    table with f at each two of them, T_j. Let H tell which level each row has (n x all levels, 0 or 1): the sum over
    these parameters is H T H^T, where T has the T_j on its diagonal, and the derivative in T is H^T G H. For each of
    the other parameters f is evaluated once for each pair of rows.

    Args:
        function: f, one of `KERNELS`.
        x: rows as coordinates, n x c.
        owner: the parameter of each coordinate, c; each has one.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor, owner: Tensor):
        self.together = ScaledGram(function, x, owner)
        self.rows, self.with_slope = len(x), self.together.with_slope
        place, parameter, members = x.cpu().numpy(), self.together.owner, on_cpu(self.together.members)
        groups = np.split(parameter.argsort(kind="stable"), np.bincount(parameter).cumsum()[:-1])
        level, counts = Split.of(groups).levels(place)
        self.tabled, self.direct = np.flatnonzero(counts <= FEW), np.flatnonzero(counts > FEW)

        begin = np.cumsum(counts[self.tabled]) - counts[self.tabled]
        columns = begin + level[:, self.tabled]  # of H, for each row and tabled parameter
        self.n_levels = int(counts[self.tabled].sum())
        hot = np.zeros((self.rows, self.n_levels))
        np.put_along_axis(hot, columns, 1.0, axis=1)
        of = np.repeat(self.tabled, counts[self.tabled])  # the parameter of each level
        first, second = (of[:, None] == of).nonzero()  # each two levels of one parameter
        self.table_owner = of[first]
        example = place[hot.argmax(0)] if self.n_levels else place[:0]
        gaps = (example[first] - example[second]) ** 2 * (parameter == self.table_owner[:, None])
        table_members = self.table_owner[:, None] == np.arange(members.shape[1])

        above, below = np.triu_indices(self.rows, 1)
        apart = members[:, self.direct].T @ ((place[above] - place[below]) ** 2).T
        arrays = (hot, first * self.n_levels + second, gaps.sum(1), table_members.astype(float))
        self.hot, self.entries, self.gaps, self.table_members = (like(each, self.together.x) for each in arrays)
        self.pairs, self.apart = (like(each, self.together.x) for each in (above * self.rows + below, apart))

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        m, (logit, log_ratio, log_amplitude) = len(theta) - 4, theta[-4:-1]
        share, amplitude = 1 / (1 + math.exp(-logit)), math.exp(log_amplitude)
        each = amplitude * share / m
        squared = np.exp(-2 * (theta[:m] + log_ratio))
        together, pull_back_together = self.together.unscaled(theta)
        xp = module_of(together)

        gaps = self.gaps * like(squared[self.table_owner], self.gaps)
        table_value, table_slope = self.with_slope(gaps, xp)
        table = like(np.zeros((self.n_levels,) * 2), together)
        table.reshape(-1)[self.entries] = table_value
        apart = self.apart * like(squared[self.direct], self.apart)[:, None]
        value, slope = self.with_slope(apart, xp)
        added = value.sum(0)
        gram = self.hot @ table @ self.hot.T
        gram *= each
        gram += (amplitude * (1 - share)) * together
        gram.reshape(-1)[self.pairs] += each * added
        gram.reshape(-1)[:: self.rows + 1] += each * len(self.direct)

        def pull_back(derivative: Array) -> list[Array]:
            inner = 2 * derivative.reshape(-1)[self.pairs]  # the matrix has each pair twice
            by_table = (self.hot.T @ derivative @ self.hot).reshape(-1)[self.entries]
            by_scale = (by_table * table_slope * gaps) @ self.table_members
            slope_apart = slope * apart
            by_scale[self.direct] += slope_apart @ inner
            by_scale *= -2 * each
            whole = by_table @ table_value + added @ inner + len(self.direct) * derivative.diagonal().sum()
            by_share = amplitude * share * (1 - share) * (whole / m - (derivative * together).sum())
            by_together = amplitude * (1 - share) * pull_back_together(derivative)
            xp = module_of(by_scale)
            return [by_scale + by_together, xp.stack([by_share, by_scale.sum()])]

        return gram, pull_back


class AutogradGram:
    """Gram matrices of any kernel, differentiated by torch: for subclasses that have another one.

    Args:
        kernel: theta -> the kernel.
        x: rows as coordinates, n x c.
    """

    def __init__(self, kernel: Callable[[Tensor], Kernel], x: Tensor):
        self.kernel, self.x = kernel, x

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        with torch.enable_grad():
            at = torch.tensor(theta).to(self.x).requires_grad_(True)
            gram = self.kernel(at)(self.x, self.x)

        def pull_back(derivative: Array) -> list[Array]:
            inner = as_tensor(derivative).to(gram)
            return [torch.autograd.grad(gram, at, inner)[0][:-2]]

        return native(gram.detach().clone()), pull_back
