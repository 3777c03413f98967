"""Differential evolution, by SciPy."""

import numpy as np
import torch
from scipy.optimize import differential_evolution
from torch import Tensor

from deepbore.candidates.base import Search, SharedCandidates
from deepbore.errors import SettingError
from deepbore.space.parameters import Categorical, Ordinal


class DifferentialEvolution(SharedCandidates):
    """Differential evolution of a population of points (BORE J.1 and J.2, for trees on continuous spaces; G.1).

    It needs no gradients and takes any space: vectors are snapped to configurations before they are scored. All that
    it has scored is ranked, so the walk down the ranking has more than the last population, which is often one point.

    Of several ranks each has a population of its own: they look further rather than sooner.

    A departure from the paper: the first population is random but for the best observed points, a fifth of it at most.

    Args:
        evaluations: of the acquisition, at most.
        population: points in a generation, >= 5.

    Raises:
        SettingError: unless 5 <= population <= evaluations.

    References:
        Storn & Price, Differential evolution, 1997.
    """

    def __init__(self, evaluations: int = 2000, population: int = 50):
        if not 5 <= population <= evaluations:
            raise SettingError(
                "5 <= population <= evaluations must hold, but got "
                f"population={population} and evaluations={evaluations}."
            )
        self.evaluations, self.population = evaluations, population

    def scored(self, search: Search, q: int) -> tuple[Tensor, Tensor]:
        generations: list[tuple[Tensor, Tensor]] = []

        def cost(columns: np.ndarray) -> np.ndarray:
            """A generation (d x population) -> what to minimise (population)."""
            points = search.space.snap(torch.from_numpy(columns.T.copy()))
            generations.append((points, search.values(points)))
            return -generations[-1][1].double().numpy()

        differential_evolution(
            cost,
            bounds=search.space.bounds.T.numpy(),
            init=self._first(search).numpy(),
            integrality=[isinstance(p, (Ordinal, Categorical)) for p in search.space.parameters.values()],
            maxiter=self.evaluations // self.population - 1,
            tol=0.0,  # stop early only where all are equal: the scale of an acquisition says nothing
            polish=False,
            vectorized=True,
            updating="deferred",
            seed=np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=search.generator))),
        )
        points, values = (torch.cat(parts) for parts in zip(*generations, strict=True))
        return search.sort(points, values)

    def _first(self, search: Search) -> Tensor:
        """The first population (population x d)."""
        observations = search.observations
        best = observations.points[observations.best_rows(self.population // 5)].cpu()
        return torch.cat([best, search.space.sample(self.population - len(best), search.generator)])
