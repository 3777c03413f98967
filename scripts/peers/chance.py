"""Search without a model: independent random points, and a scrambled Sobol sequence."""

from torch import Tensor

from peers.base import PointPeer


class RandomSearch(PointPeer):
    """Independent configurations, uniform over each parameter's scale."""

    packages = ("deepbore",)

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.n_initial = 0

    def ask(self, q: int) -> list[dict]:
        return self.space.decode(self.space.points.sample(q, self.generator))

    def propose(self, q: int) -> Tensor:
        return self.random(q)


class SobolSearch(PointPeer):
    """A scrambled Sobol sequence to the end."""

    packages = ("torch",)

    def propose(self, q: int) -> Tensor:
        points = self.space.points.sobol(q, self.seed, skip=self.designed) / self.upper
        self.designed += q
        return points
