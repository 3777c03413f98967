"""Differential evolution, by SciPy."""

import math

import numpy as np
import torch
from scipy.optimize import differential_evolution
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.errors import SettingError
from deepbore.validation import one_of, whole


class DifferentialEvolution(Candidates):
    """Differential evolution of a population of points (BORE J.1 and J.2, for trees on continuous spaces; G.1).

    It needs no gradients and takes any space: vectors are snapped to configurations before they are scored. All that
    it has scored is ranked, so the walk down the ranking has more than the last population, which is often one point.

    Of several ranks each has a population of its own: they look further rather than sooner.

    A departure from the paper: the first population is random but for the best observed points, a fifth of it at most;
    `near_best=False` leaves them out.

    Args:
        evaluations: of the acquisition, at most.
        population: points in a generation, >= 5.
        near_best: whether the first population has the best observed points.

    Raises:
        SettingError: unless 5 <= population <= evaluations.

    References:
        Storn & Price, Differential evolution, 1997.
    """

    def __init__(self, evaluations: int = 2000, population: int = 50, near_best: bool = True):
        whole(1, evaluations=evaluations, population=population)
        if not 5 <= population <= evaluations:
            raise SettingError(
                "5 <= population <= evaluations must hold, but got "
                f"population={population} and evaluations={evaluations}."
            )
        one_of((True, False), near_best=near_best)
        self.evaluations, self.population, self.near_best = evaluations, population, near_best

    def ranked(self, search: Search, q: int) -> Tensor:
        return search.gathered(*self._evolved(search.on_own_stream()))[0]

    def _evolved(self, search: Search) -> tuple[Tensor, Tensor]:
        """All points that were scored, best first, and their values."""
        generations: list[tuple[Tensor, Tensor]] = []

        def cost(columns: np.ndarray) -> np.ndarray:
            """A generation (d x population) -> what to minimise (population)."""
            points = search.space.snap(torch.from_numpy(columns.T.copy()).to(search.device))
            values = search.values(points)
            if search.space.is_restricted:
                values = values.masked_fill(~search.space.permitted(points), -math.inf)
            generations.append((points, values))
            return -values.double().cpu().numpy()

        differential_evolution(
            cost,
            bounds=search.space.bounds.T.numpy(),
            init=self._first(search).cpu().numpy(),
            integrality=[p.levels is not None and p.upper == p.levels - 1 for p in search.space.parameters.values()],
            maxiter=self.evaluations // self.population - 1,
            tol=0.0,  # stop early only where all are equal: the scale of an acquisition says nothing
            polish=False,
            vectorized=True,
            updating="deferred",
            seed=np.random.default_rng(
                int(torch.randint(2**63 - 1, (), generator=search.stream, device=search.device))
            ),
        )
        points, values = (torch.cat(parts) for parts in zip(*generations, strict=True))
        return search.sorted(points, values)

    def _first(self, search: Search) -> Tensor:
        """The first population (population x d)."""
        best = search.points(search.observations.best_rows(self.population // 5 if self.near_best else 0))
        return torch.cat([best, search.sample(self.population - len(best))])
