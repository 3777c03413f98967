"""`KernelPLS`: probabilistic least squares in a reproducing kernel Hilbert space."""

import math
from typing import Any

import numpy as np
import scipy.optimize
import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.kernels import KERNELS, Coordinates, squared_distances
from deepbore.datamodule import LabelledBatch
from deepbore.errors import SettingError
from deepbore.space import SearchSpace

ROWS = 400


class KernelPLS(Classifier):
    kappa = 2.0
    center, ls_shift, ls_sd = True, -1.5, 1.0

    def __init__(self, kernel: str = "matern", iterations: int = 15, rows: int = ROWS):
        super().__init__()
        if kernel not in KERNELS:
            raise SettingError(f"kernel must be one of {sorted(KERNELS)}, but got {kernel!r}.")
        self.kernel, self.iterations, self.rows = KERNELS[kernel], iterations, rows

    def build(self, space: SearchSpace, outputs: int) -> None:
        d = len(space)
        self.coordinates = Coordinates(space)
        self.register_buffer("theta", torch.cat([torch.full((d,), self._prior_mean(d)), torch.tensor([0.0, -6.0])]).double())
        self.register_buffer("x", torch.zeros(1, len(self.coordinates.owner)).double())
        self.register_buffer("alpha", torch.zeros(1).double())
        self.register_buffer("root", torch.ones(1, 1).double())
        self.register_buffer("shift", torch.zeros(2).double())

    def _prior_mean(self, d):
        return math.sqrt(2) + 0.5 * math.log(d) + self.ls_shift   # log length scale

    def _gram(self, x, y, theta):
        scale = (-theta[:-2]).exp()[self.coordinates.owner]
        return theta[-2].exp() * self.kernel(squared_distances(x * scale, y * scale))

    def _objective(self, theta_np, x, z):
        theta = torch.tensor(theta_np, requires_grad=True)
        n = len(x)
        gram = self._gram(x, x, theta)
        with torch.no_grad():
            noise = theta[-1].exp()
            full = gram + (noise + 1e-8) * torch.eye(n)
            L, info = torch.linalg.cholesky_ex(full)
            if info: return 1e10, np.zeros_like(theta_np)
            inv = torch.cholesky_inverse(L)
            a = inv @ z
            value = 0.5 * z @ a + L.diagonal().log().sum()
            g = 0.5 * (inv - torch.outer(a, a))
            gnoise = g.diagonal().sum() * noise
        d = len(theta) - 2
        prior = (((theta[:-2] - self._prior_mean(d)) / self.ls_sd) ** 2 / 2).sum() + (theta[-2] / 2.0) ** 2 / 2 + ((theta[-1] + 6.0) / 3) ** 2 / 2
        proxy = (g * gram).sum() + prior
        (grad,) = torch.autograd.grad(proxy, theta)
        grad = grad.clone(); grad[-1] += gnoise
        return float(value + prior), grad.numpy()

    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(self.rows, self.generator)
        with torch.no_grad():
            x = self.coordinates(batch.points); z = batch.z.mean(-1).double()
            mean, std = z.mean(), z.std(correction=0).clamp(min=1e-3)
            mean = mean if self.center else 0 * mean
            t = (z - mean) / std
        d = len(self.theta) - 2
        bounds = [(-4.6, 4.6)] * d + [(-4, 4), (-13, 0)]
        starts = [self.theta.numpy()]
        res = min((scipy.optimize.minimize(self._objective, s, args=(x, t), jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": self.iterations}) for s in starts), key=lambda r: r.fun)
        with torch.no_grad():
            self.theta.copy_(torch.from_numpy(res.x))
            gram = self._gram(x, x, self.theta) + (self.theta[-1].exp() + 1e-8) * torch.eye(len(x))
            L = torch.linalg.cholesky(gram)
            self.x = x
            self.alpha = torch.cholesky_solve(t[:, None], L)[:, 0]
            self.root = torch.linalg.inv(L) 
            self.shift = torch.stack([mean, std])
        # a step for Lightning to count
        return {"loss": float(res.fun) / len(x)}

    def gaussian(self, points):
        self.check_points(points)
        k = self._gram(self.coordinates(points), self.x, self.theta)
        mean = k @ self.alpha
        var = self.theta[-2].exp() - (k @ self.root.mT).square().sum(-1)
        return self.shift[0] + self.shift[1] * mean, self.shift[1] * var.clamp(min=1e-12).sqrt()

    def scores(self, points):
        return self.gaussian(points)[0][None]
