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
        block: the block of each coordinate, c; each block has a length scale.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor, block: Tensor):
        self.x, self.block = native(x), block.cpu().numpy()
        self.with_slope = WITH_SLOPE[function]
        self.members = like(np.eye(int(self.block.max()) + 1)[self.block], self.x)  # c x b: which block's it is

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        value, pull_back = self.unscaled(theta)
        amplitude = math.exp(theta[-2])
        value *= amplitude
        return value, lambda derivative: [amplitude * pull_back(derivative)]

    def unscaled(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], Array]]:
        """f(s), and the function to derivatives in the b logarithms of length scales."""
        b = self.members.shape[1]
        x = self.x * like(np.exp(-theta[:b])[self.block], self.x)
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

        K = a ((1 - t) f(s) + t / m sum_j f(s_j / rho^2)),    s = sum_j s_j,    s_j = sum_b (x_b - y_b)^2 / l_b^2

    Theta begins with the log length scales, the logit of t and log rho. A parameter j has one block b of coordinates,
    and one more where its levels are described. A parameter with few levels in the rows has a table with f at each two
    of them, T_j. Let H tell which level each row has (n x all levels, 0 or 1): the sum over these parameters is
    H T H^T, where T has the T_j on its diagonal, and the derivative in T is H^T G H. For each of the other parameters f
    is evaluated once for each pair of rows.

    Args:
        function: f, one of `KERNELS`.
        x: rows as coordinates, n x c.
        owner: the parameter of each coordinate, c; each has one.
        block: the block of each coordinate, c.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor, owner: Tensor, block: Tensor):
        self.together = ScaledGram(function, x, block)
        self.rows, self.with_slope = len(x), self.together.with_slope
        place, parameter, members = x.cpu().numpy(), owner.cpu().numpy(), on_cpu(self.together.members)
        groups = np.split(parameter.argsort(kind="stable"), np.bincount(parameter).cumsum()[:-1])
        level, counts = Split.of(groups).levels(place)
        self.m = len(groups)
        self.tabled, self.direct = np.flatnonzero(counts <= FEW), np.flatnonzero(counts > FEW)
        blocks = [np.unique(self.together.block[own]) for own in groups]
        width = max(map(len, blocks))  # a parameter with fewer blocks has its last one again, with gaps of 0
        self.blocks = np.array([np.pad(own, (0, width - len(own)), mode="edge") for own in blocks]).T  # width x m
        is_own = np.array([[k < len(own) for own in blocks] for k in range(width)])

        begin = np.cumsum(counts[self.tabled]) - counts[self.tabled]
        columns = begin + level[:, self.tabled]  # of H, for each row and tabled parameter
        self.n_levels = int(counts[self.tabled].sum())
        hot = np.zeros((self.rows, self.n_levels))
        np.put_along_axis(hot, columns, 1.0, axis=1)
        of = np.repeat(self.tabled, counts[self.tabled])  # the parameter of each level
        first, second = (of[:, None] == of).nonzero()  # each two levels of one parameter
        self.table_owner = of[first]
        example = place[hot.argmax(0)] if self.n_levels else place[:0]
        gaps = (example[first] - example[second]) ** 2
        in_table = [(self.blocks[k][self.table_owner], is_own[k][self.table_owner]) for k in range(width)]
        gap = [(gaps * (self.together.block == own[:, None])).sum(1) * counted for own, counted in in_table]
        self.gaps = [like(each, self.together.x) for each in gap]
        table_members = [own[:, None] == np.arange(members.shape[1]) for own, _ in in_table]
        self.table_members = [like(each.astype(float), self.together.x) for each in table_members]

        above, below = np.triu_indices(self.rows, 1)
        squared = ((place[above] - place[below]) ** 2).T
        apart = [
            (members[:, own[self.direct]].T @ squared) * counted[self.direct, None]
            for own, counted in zip(self.blocks, is_own, strict=True)
        ]
        self.apart = [like(each, self.together.x) for each in apart]
        arrays = (hot, first * self.n_levels + second, above * self.rows + below)
        self.hot, self.entries, self.pairs = (like(each, self.together.x) for each in arrays)

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        m, (logit, log_ratio, log_amplitude) = self.m, theta[-4:-1]
        share, amplitude = 1 / (1 + math.exp(-logit)), math.exp(log_amplitude)
        each = amplitude * share / m
        squared = np.exp(-2 * (theta[:-4] + log_ratio))
        together, pull_back_together = self.together.unscaled(theta)
        xp = module_of(together)

        gaps = [
            gap * like(squared[own[self.table_owner]], gap) for gap, own in zip(self.gaps, self.blocks, strict=True)
        ]
        table_value, table_slope = self.with_slope(sum(gaps[1:], gaps[0]), xp)
        table = like(np.zeros((self.n_levels,) * 2), together)
        table.reshape(-1)[self.entries] = table_value
        apart = [
            gap * like(squared[own[self.direct]], gap)[:, None]
            for gap, own in zip(self.apart, self.blocks, strict=True)
        ]
        value, slope = self.with_slope(sum(apart[1:], apart[0]), xp)
        added = value.sum(0)
        gram = self.hot @ table @ self.hot.T
        gram *= each
        gram += (amplitude * (1 - share)) * together
        gram.reshape(-1)[self.pairs] += each * added
        gram.reshape(-1)[:: self.rows + 1] += each * len(self.direct)

        def pull_back(derivative: Array) -> list[Array]:
            inner = 2 * derivative.reshape(-1)[self.pairs]  # the matrix has each pair twice
            by_table = (self.hot.T @ derivative @ self.hot).reshape(-1)[self.entries]
            by_scale = 0.0
            for gap, own_members in zip(gaps, self.table_members, strict=True):
                by_scale = (by_table * table_slope * gap) @ own_members + by_scale
            for gap, own in zip(apart, self.blocks, strict=True):
                by_scale[own[self.direct]] += (slope * gap) @ inner
            by_scale *= -2 * each
            whole = by_table @ table_value + added @ inner + len(self.direct) * derivative.diagonal().sum()
            by_share = amplitude * share * (1 - share) * (whole / m - (derivative * together).sum())
            by_together = amplitude * (1 - share) * pull_back_together(derivative)
            xp = module_of(by_scale)
            return [by_scale + by_together, xp.stack([by_share, by_scale.sum()])]

        return gram, pull_back


class LibraryGram:
    """Gram matrices of a `LibraryKernel`.

    Args:
        alike: the MinMax kernel of the rows, n x n.
        others: Gram matrices of the other coordinates; None if there are none.
        scales: the number of length scales, that of the library, which changes nothing, included.
    """

    def __init__(self, alike: Tensor, others: ScaledGram | None, scales: int):
        self.alike, self.others, self.scales = native(alike), others, scales

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        if self.others is None:
            return self.alike * np.exp(theta[-2]), lambda _: [np.zeros(self.scales)]
        value, pull_back = self.others(theta)

        def padded(derivative: Array) -> list[Array]:
            by_scale = on_cpu(pull_back(derivative * self.alike)[0])
            return [np.pad(by_scale, (0, self.scales - len(by_scale)))]

        return value * self.alike, padded


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
