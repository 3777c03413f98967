"""A strategy: a box around the best point that grows with success and shrinks with failure."""

from collections.abc import Mapping
from typing import Any

from deepbore import KernelPLS, LogExpectedImprovement
from deepbore.candidates import select_new
from deepbore.strategies import Proposal, Strategy, View

START, LEAST, MOST = 0.8, 2**-7, 1.6  # side of the box, as a share of each parameter's range
PATIENCE = 3  # proposals in a row with, or without, success after which it is doubled, or halved


class TrustRegion(Strategy):
    """The best of random points in a box around the best observed one (Eriksson et al., TuRBO, NeurIPS 2019)."""

    def __init__(self, samples: int = 1000):
        self.samples = samples
        self.classifier = KernelPLS(additive=False)
        self.side, self.streak, self.best = START, 0, float("inf")

    @property
    def models(self):
        return (self.classifier,)

    def fit(self, view: View) -> bool:
        """Resizes the box by what has become of the latest proposals."""
        known = view.values[~view.values.isnan()]
        best = float(known.min()) if len(known) else float("inf")
        self.streak = max(1, self.streak + 1) if best < self.best else min(-1, self.streak - 1)
        self.best = min(self.best, best)
        if abs(self.streak) >= PATIENCE:
            self.side = min(MOST, 2 * self.side) if self.streak > 0 else max(LEAST, self.side / 2)
            self.streak = 0
        return super().fit(view)

    def propose(self, view: View, q: int) -> Proposal:
        search = view.search(self.classifier, LogExpectedImprovement())
        random = view.space.points.sample(self.samples, view.generator)
        rows = view.observations.centres.best_rows(1)
        if len(rows):  # levels and categories stay those of the random points
            centre, moving = search.points(rows), list(view.space.points.moving_columns)
            moved = centre + self.side * (random - 0.5)
            random[:, moving] = moved[:, moving].clamp(0, 1)
            random = view.space.points.snap(random)
        ranked, _ = search.best_first(random)
        return Proposal(select_new(ranked, view.observations, q, view.generator, view.chosen), self.classifier)

    def state_dict(self) -> dict[str, Any]:
        bound = self.classifier.space is not None
        return {
            "side": self.side,
            "streak": self.streak,
            "best": self.best,
            "weights": dict(self.classifier.state_dict()) if bound else None,
            "ready": self.classifier.ready,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.side, self.streak, self.best = state["side"], state["streak"], state["best"]
        if state["weights"] is not None:
            self.classifier.load_state_dict(state["weights"])
        self.classifier.ready = state["ready"]
