"""`Evidence`: the marginal likelihood of a kernel and its gradient, in NumPy on the CPU, in torch on an accelerator."""

import math
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
import torch
from scipy.linalg import blas, lapack
from torch import Tensor

from deepbore.classifiers.kernel.kernels import FEW, WITH_SLOPE, Kernel, Split
from deepbore.classifiers.kernel.posterior import JITTER
from deepbore.compute.arrays import Array, as_tensor, like, module_of, native, on_cpu

FAILED = 1e10  # the value where the covariance has no Cholesky factor
AT_ONCE = 2**15  # numbers that f is computed of at once, which stay in the cache
CACHED = 2**18  # numbers up to which squared distances along each parameter are kept: more are slower to read than made


class Pairs(Protocol):
    """Symmetric matrices of the same n rows, as vectors with a number for each pair of rows."""

    @property
    def diagonal(self) -> slice | np.ndarray:
        """The places of the pairs of a row with itself."""

    @property
    def repeats(self) -> int:
        """How often a pair of two rows stands in a matrix for each time that it does in a vector."""

    def of(self, matrix: Array) -> Array:
        """The vector of a matrix (n x n)."""

    def matrix(self, vector: Array) -> Array:
        """The lower triangle of the matrix of a vector (n x n); what is above may be anything."""

    def factor(self, vector: Array) -> Array | None:
        """Its Cholesky factor as a vector; None if it is not positive definite. It may overwrite the vector."""

    def solve(self, factor: Array, z: Array) -> Array:
        """K^-1 z of a K with this factor (n)."""

    def residual(self, factor: Array, a: Array) -> Array:
        """K^-1 - a a^T of a K with this factor, as a vector."""

    def times(self, vector: Array, x: Array) -> Array:
        """The product of a matrix, given as a vector, and x (n x c)."""


class Triangle:
    """`Pairs` in NumPy: each once, in LAPACK's rectangular full packed format, whose routines work by blocks.

    Args:
        n: the number of rows.

    References:
        Gustavson, Wasniewski, Dongarra & Langou, Rectangular full packed format for Cholesky's algorithm, 2010.
    """

    repeats = 2

    def __init__(self, n: int):
        rows = self.of(np.diag(np.arange(1.0, n + 1)))
        places = np.flatnonzero(rows)
        self.n, self.diagonal = n, places[rows[places].argsort()]

    def of(self, matrix: np.ndarray) -> np.ndarray:
        vector: np.ndarray = lapack.dtrttf(matrix.T, uplo="L")[0]
        return vector

    def matrix(self, vector: np.ndarray) -> np.ndarray:
        matrix: np.ndarray = lapack.dtfttr(self.n, vector, uplo="L")[0]
        return matrix

    def factor(self, vector: np.ndarray) -> np.ndarray | None:
        factor, failed = lapack.dpftrf(self.n, vector, uplo="L", overwrite_a=1)
        return None if failed else factor

    def solve(self, factor: np.ndarray, z: np.ndarray) -> np.ndarray:
        a: np.ndarray = lapack.dpftrs(self.n, factor, z[:, None], uplo="L")[0]
        return a[:, 0]

    def residual(self, factor: np.ndarray, a: np.ndarray) -> np.ndarray:
        inverse, _ = lapack.dpftri(self.n, factor, uplo="L")
        found: np.ndarray = lapack.dsfrk(self.n, 1, -1.0, a[:, None], 1.0, inverse, uplo="L", overwrite_c=1)
        return found

    def times(self, vector: np.ndarray, x: np.ndarray) -> np.ndarray:
        product: np.ndarray = blas.dsymm(1.0, self.matrix(vector), x, lower=1)
        return product


class Square:
    """`Pairs` in torch: both of each two rows, as in the matrix.

    Args:
        n: the number of rows.
    """

    repeats = 1

    def __init__(self, n: int):
        self.n, self.diagonal = n, slice(None, None, n + 1)

    def of(self, matrix: Tensor) -> Tensor:
        return matrix.reshape(-1)

    def matrix(self, vector: Tensor) -> Tensor:
        return vector.reshape(self.n, self.n)

    def factor(self, vector: Tensor) -> Tensor | None:
        factor, info = torch.linalg.cholesky_ex(self.matrix(vector))
        return None if bool(info) else self.of(factor)

    def solve(self, factor: Tensor, z: Tensor) -> Tensor:
        return torch.cholesky_solve(z[:, None], self.matrix(factor))[:, 0]

    def residual(self, factor: Tensor, a: Tensor) -> Tensor:
        return self.of(torch.cholesky_inverse(self.matrix(factor)) - a[:, None] * a)

    def times(self, vector: Tensor, x: Tensor) -> Tensor:
        return self.matrix(vector) @ x


def pairs_of(rows: Array) -> Pairs:
    """The pairs of some rows, in NumPy or in torch, as these are."""
    return Square(len(rows)) if isinstance(rows, Tensor) else Triangle(len(rows))


class Gram(Protocol):
    """Gram matrices of the same n rows for different hyperparameters of a kernel."""

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        """The matrix as a new vector of `Pairs`, and a function from a derivative in this vector to that in theta.

        The function gives that in parts; the derivative is 0 on the diagonal. The last two entries of theta are the
        logarithms of the amplitude, which is a factor of the matrix and its whole diagonal, and of lambda; derivatives
        in them are left out.
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
        self.pairs = pairs_of(self.z)
        self._latest: tuple[np.ndarray, Array] | None = None  # theta, and the factor there

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        n, z, pairs, noise = len(self.z), self.z, self.pairs, self.noise(theta)
        factor, pull_back = self._factor(theta, noise)
        if factor is None:
            return FAILED, np.zeros_like(theta)
        a = pairs.solve(factor, z)
        explained = float(z @ a)
        derivative = pairs.residual(factor, a)
        own = 0.5 * derivative[pairs.diagonal]
        by_lambda = float(own @ noise)
        by_amplitude = (n - explained) / 2 - by_lambda - JITTER * float(own.sum())
        derivative *= pairs.repeats / 2
        derivative[pairs.diagonal] = 0.0
        value = explained / 2 + float(module_of(z).log(factor[pairs.diagonal]).sum())
        return value, np.concatenate([*map(on_cpu, pull_back(derivative)), [by_amplitude, by_lambda]])

    def root(self, theta: np.ndarray) -> Tensor | None:
        """R, lower triangular, with R^T R = K^-1 (n x n); None if K has no Cholesky factor."""
        if self._latest is not None and np.array_equal(self._latest[0], theta):
            factor = self._latest[1]
        else:
            factor = self._factor(theta, self.noise(theta))[0]
        if factor is None:
            return None
        matrix = as_tensor(self.pairs.matrix(factor))
        identity = torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
        root: Tensor = torch.linalg.solve_triangular(matrix, identity, upper=False)
        return root.contiguous()

    def noise(self, theta: np.ndarray) -> Array:
        """Lambda divided by the weight of each row (n)."""
        return math.exp(theta[-1]) / self.weight

    def _factor(self, theta: np.ndarray, noise: Array) -> tuple[Array | None, Callable[[Array], list[Array]]]:
        """The Cholesky factor of K as a vector, and the function of the Gram matrix."""
        covariance, pull_back = self.gram(theta)
        covariance[self.pairs.diagonal] += noise + JITTER
        factor = self.pairs.factor(covariance)
        self._latest = None if factor is None else (theta.copy(), factor)
        return factor, pull_back


class ScaledGram:
    """Gram matrices of a `ScaledKernel`.

        K = a f(s),    s = sum_j s_j,    s_j = (x_j - y_j)^2 / l_j^2,    ds / d log l_j = -2 s_j

    The squared distances along each parameter are kept while they are few; else the s are found by a product of
    matrices, as that is faster than to read them.

    Args:
        function: f, one of `KERNELS`.
        x: rows as coordinates, n x c.
        block: the block of each coordinate, c; each block has a length scale.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor, block: Tensor):
        self.x, self.block = native(x), block.cpu().numpy()
        self.pairs, self.b = pairs_of(self.x), int(self.block.max()) + 1
        self.with_slope = WITH_SLOPE[function]
        self.members = like(np.eye(self.b)[self.block], self.x)  # c x b: which block's it is
        self.one = like(np.ones((len(x), 1)), self.x)
        few = not isinstance(self.x, Tensor) and self.b * len(x) ** 2 / 2 <= CACHED
        self.gaps = self._along(range(self.b)) if few else None

    def along(self, blocks: np.ndarray) -> Array:
        """Squared distances along some of the blocks, a row for each."""
        return self._along(blocks) if self.gaps is None else self.gaps[blocks]

    def _along(self, blocks: Iterable[int]) -> Array:
        x, found = self.x, []
        for block in blocks:
            columns = (x[:, column] for column in np.flatnonzero(self.block == block))
            found.append(self.pairs.of(sum((column[:, None] - column) ** 2 for column in columns)))
        return module_of(x).stack(found) if found else self.pairs.of(x @ x.T)[None][:0]

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        value, pull_back = self.unscaled(theta)
        amplitude = math.exp(theta[-2])
        value *= amplitude
        return value, lambda derivative: [amplitude * pull_back(derivative)]

    def unscaled(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], Array]]:
        """f(s), and the function to derivatives in the b logarithms of length scales."""
        b = self.b
        if self.gaps is not None:
            gaps, shrink = self.gaps, np.exp(-2 * theta[:b])
            value, slope = self.with_slope(shrink @ gaps, np)
            return value, lambda derivative: -2 * shrink * (gaps @ (derivative * slope))
        x = self.x * like(np.exp(-theta[:b])[self.block], self.x)
        square = x * x
        norm = square.sum(1)
        squared = x @ x.T
        squared *= -2
        squared += norm[:, None]
        squared += norm
        xp = module_of(x)
        value, slope = self.with_slope(self.pairs.of(abs(squared)), xp)  # of what is 0 rounding leaves either sign

        def pull_back(derivative: Array) -> Array:
            """-2 sum_ab M_ab (x_a - x_b)^2 / r of each coordinate: M, the derivative in s, has each pair r times."""
            product = self.pairs.times(derivative * slope, xp.hstack([x, self.one]))
            by_coordinate = (product[:, :-1] * x).sum(0) - product[:, -1] @ square
            return (4 / self.pairs.repeats) * (by_coordinate @ self.members)

        return value, pull_back


class PartlyAdditiveGram:
    """Gram matrices of a `PartlyAdditiveKernel`.

        K = a ((1 - t) f(s) + t / m sum_j f(s_j / rho^2)),    s = sum_j s_j,    s_j = sum_b (x_b - y_b)^2 / l_b^2

    Theta begins with the log length scales, the logit of t and log rho. A parameter j has one block b of coordinates,
    and one more where its levels are described. A parameter with few levels in the rows has a table with f at each two
    of them, T_j. Let H tell which level each row has (n x all levels, 0 or 1): the sum over these parameters is
    H T H^T, where T has the T_j on its diagonal, and the derivative in T is H^T G H. For each of the other parameters f
    is evaluated for each pair of rows.

    Args:
        function: f, one of `KERNELS`.
        x: rows as coordinates, n x c.
        owner: the parameter of each coordinate, c; each has one.
        block: the block of each coordinate, c.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor, owner: Tensor, block: Tensor):
        self.together = ScaledGram(function, x, block)
        self.pairs, self.with_slope = self.together.pairs, self.together.with_slope
        place, parameter, members = x.cpu().numpy(), owner.cpu().numpy(), on_cpu(self.together.members)
        groups = np.split(parameter.argsort(kind="stable"), np.bincount(parameter).cumsum()[:-1])
        level, counts = Split.of(groups).levels(place)
        self.m = len(groups)
        self.tabled, self.direct = np.flatnonzero(counts <= FEW), np.flatnonzero(counts > FEW)
        blocks = [np.unique(self.together.block[own]) for own in groups]
        width = max(map(len, blocks))  # a parameter with fewer blocks has its last one again, with gaps of 0
        self.blocks = np.array([np.pad(own, (0, width - len(own)), mode="edge") for own in blocks]).T  # width x m
        is_own = np.array([[float(k < len(own)) for own in blocks] for k in range(width)])
        self.apart = [
            self.together.along(own[self.direct]) * like(counted[self.direct, None], self.together.x)
            for own, counted in zip(self.blocks, is_own, strict=True)
        ]
        n_pairs = self.apart[0].shape[1]
        at_once = 1 + len(self.direct) if isinstance(self.together.x, Tensor) else 1 + AT_ONCE // n_pairs
        self.parts = [slice(start, start + at_once) for start in range(0, len(self.direct), at_once)]

        begin = np.cumsum(counts[self.tabled]) - counts[self.tabled]
        columns = begin + level[:, self.tabled]  # of H, for each row and tabled parameter
        self.n_levels = int(counts[self.tabled].sum())
        hot = np.zeros((len(place), self.n_levels))
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
        arrays = hot, first * self.n_levels + second
        self.hot, self.entries = (like(each, self.together.x) for each in arrays)

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        m, (logit, log_ratio, log_amplitude) = self.m, theta[-4:-1]
        share, amplitude = 1 / (1 + math.exp(-logit)), math.exp(log_amplitude)
        each = amplitude * share / m
        squared = np.exp(-2 * (theta[:-4] + log_ratio))
        together, pull_back_together = self.together.unscaled(theta)
        xp = module_of(together)

        scales = [like(squared[own[self.direct]], together)[:, None] for own in self.blocks]
        steep = [xp.empty_like(gap) for gap in self.apart]
        added = xp.zeros_like(together)
        for part in self.parts:
            apart = [gap[part] * scale[part] for gap, scale in zip(self.apart, scales, strict=True)]
            value, slope = self.with_slope(sum(apart[1:], apart[0]), xp)
            added += value.sum(0)
            for gap, found in zip(apart, steep, strict=True):
                xp.multiply(slope, gap, out=found[part])
        if self.n_levels:
            gaps = [
                gap * like(squared[own[self.table_owner]], gap) for gap, own in zip(self.gaps, self.blocks, strict=True)
            ]
            table_value, table_slope = self.with_slope(sum(gaps[1:], gaps[0]), xp)
            table = like(np.zeros((self.n_levels,) * 2), together)
            table.reshape(-1)[self.entries] = table_value
            added += self.pairs.of(self.hot @ table @ self.hot.T)
        gram = (amplitude * (1 - share)) * together
        gram += each * added

        def pull_back(derivative: Array) -> list[Array]:
            by_scale = like(np.zeros(self.together.b), together)
            for found, own in zip(steep, self.blocks, strict=True):
                by_scale[own[self.direct]] += found @ derivative
            if self.n_levels:
                by_table = self.hot.T @ self.pairs.times(derivative, self.hot) / self.pairs.repeats
                by_slope = by_table.reshape(-1)[self.entries] * table_slope
                for gap, own_members in zip(gaps, self.table_members, strict=True):
                    by_scale += (by_slope * gap) @ own_members
            by_scale *= -2 * each
            by_share = amplitude * share * (1 - share) * (derivative @ (added / m - together))
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
        self.alike, self.others, self.scales = pairs_of(native(alike)).of(native(alike)), others, scales

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        if self.others is None:
            return self.alike * math.exp(theta[-2]), lambda _: [np.zeros(self.scales)]
        value, pull_back = self.others(theta)

        def padded(derivative: Array) -> list[Array]:
            by_scale: np.ndarray = on_cpu(pull_back(derivative * self.alike)[0])
            return [np.pad(by_scale, (0, self.scales - len(by_scale)))]

        return value * self.alike, padded


class AutogradGram:
    """Gram matrices of any kernel, differentiated by torch: for subclasses that have another one.

    Args:
        kernel: theta -> the kernel.
        x: rows as coordinates, n x c.
    """

    def __init__(self, kernel: Callable[[Tensor], Kernel], x: Tensor):
        self.kernel, self.x, self.pairs = kernel, x, pairs_of(native(x))

    def __call__(self, theta: np.ndarray) -> tuple[Array, Callable[[Array], list[Array]]]:
        with torch.enable_grad():
            at = torch.tensor(theta).to(self.x).requires_grad_(True)
            gram = self.kernel(at)(self.x, self.x)

        def pull_back(derivative: Array) -> list[Array]:
            lower = as_tensor(self.pairs.matrix(derivative)).to(gram).tril(-1)
            return [torch.autograd.grad(gram, at, lower * (2 / self.pairs.repeats))[0][:-2]]

        return self.pairs.of(native(gram.detach().clone())), pull_back
