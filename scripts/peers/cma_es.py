"""CMA-ES of the package `cma`, with restarts; of Optuna where the space has levels or conditions."""

import cma
import numpy as np
import torch

from deepbore.space import Params
from peers.base import Peer, PointPeer
from peers.optuna_samplers import CMA

SIGMA = 0.25  # initial standard deviation, in the unit cube


class Restarted(PointPeer):
    """CMA-ES in the unit cube from its centre, default population, sigma .25.

    It restarts from a random point with twice the population when it has converged (IPOP). Its first population stands
    for the initial design. Populations are made multiples of the number of workers, so that a batch never has to wait
    for half a population.
    """

    packages = ("cma",)

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        default = 4 + int(3 * np.log(len(self.space)))
        self.population = -(-default // self.workers) * self.workers
        self.restarts, self.late = -1, 0
        self.asked: list[np.ndarray] = []
        self.told: list[float] = []
        self.start(np.full(len(self.space), 0.5))

    def start(self, x0: np.ndarray) -> None:
        """A new run of the strategy."""
        self.restarts += 1
        self.late += len(self.asked) - len(self.told)  # points of the strategy before that are still out
        seed = 1 + self.seed + 1000 * self.restarts  # 0 is the time of day to cma
        size = self.population * 2**self.restarts
        options = {"bounds": [0, 1], "popsize": size, "seed": seed, "verbose": -9}
        self.strategy = cma.CMAEvolutionStrategy(x0, SIGMA, options)
        self.queue, self.asked, self.told = [], [], []

    def propose(self, q: int) -> torch.Tensor:
        raise NotImplementedError

    def ask(self, q: int) -> list[Params]:
        taken = []
        for _ in range(q):
            if not self.queue:
                self.queue = list(self.strategy.ask())
            taken.append(self.queue.pop(0))
        self.asked += taken
        return self.space.decode(torch.tensor(np.array(taken)))

    def tell(self, params: Params, value: float | None) -> None:
        Peer.tell(self, params, value)
        if self.late:
            self.late -= 1
            return
        self.told.append(self.filled()[-1])
        if len(self.told) < self.strategy.popsize:
            return
        n = len(self.told)
        self.strategy.tell(self.asked[:n], self.told)
        self.asked, self.told = self.asked[n:], []
        if self.strategy.stop():
            self.start(self.random(1)[0].numpy())

    def recommend(self) -> Params:
        """The mean of the distribution where values are noisy."""
        if not self.noisy or self.strategy.countiter == 0:
            return super().recommend()
        return self.space.decode(torch.tensor(self.strategy.result.xfavorite)[None].clamp(0, 1))[0]


def CMAES(space, *arguments, **settings) -> Peer:
    """The strategy for this space."""
    return (Restarted if space.points.is_continuous else CMA)(space, *arguments, **settings)
