"""Differential evolution and regularised evolution. Their first population, which is random, is their design.

Neither looks whether it has had a configuration before: as published, they evaluate it once more.
"""

import math
from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

from deepbore.space import Params
from peers.base import HandlePeer


class Evolution(HandlePeer):
    """What both have in common: a stream of random numbers, and individuals that are rows of numbers."""

    packages = ("deepbore",)

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.generator = torch.Generator().manual_seed(self.seed)

    def below(self, n: int, many: int = 1) -> list[int]:
        """Independent random whole numbers of 0 ... n - 1."""
        return torch.randint(n, (many,), generator=self.generator).tolist()

    def uniform(self, *shape: int) -> Tensor:
        """Random numbers between 0 and 1."""
        return torch.rand(shape, generator=self.generator, dtype=torch.float64)


@dataclass
class Member:
    """One of a population: where it is (d), and what that has cost, infinity until that is told."""

    place: Tensor
    cost: float = math.inf


class DifferentialEvolution(Evolution):
    """rand/1/bin of Storn & Price (J. Global Optimization 11, 1997) with F = .5, CR = .9 and a population of 20.

    The child of member i is a + F (b - c), a, b and c three other members at random, in the columns that the crossover
    takes, and i in the others. It replaces i if it costs no more, as soon as that is known: no generation is waited
    for. A column that has left the cube is drawn anew. Members are real: what is evaluated is the level in whose share
    of [0, 1] a number lies, also that of a category, and parameters that are inactive evolve on unseen. Failures
    replace nobody.
    """

    SIZE, SCALE, CROSSOVER = 20, 0.5, 0.9

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.members = [Member(place) for place in self.uniform(self.SIZE, len(self.space))]
        self.asked = 0

    def suggest(self, q: int) -> list[tuple[Params, tuple[int, Tensor]]]:
        children = []
        for _ in range(q):
            target = self.asked % self.SIZE
            place = self.members[target].place if self.asked < self.SIZE else self.child(target)
            children.append((self.configuration(place), (target, place)))
            self.asked += 1
        return children

    def child(self, target: int) -> Tensor:
        """Where a child of a member is (d)."""
        others = [row for row in range(self.SIZE) if row != target]
        a, b, c = (self.members[others[row]].place for row in torch.randperm(len(others), generator=self.generator)[:3])
        mutant, anew = a + self.SCALE * (b - c), self.uniform(len(a))
        mutant = torch.where((mutant < 0) | (mutant > 1), anew, mutant)
        crossed = self.uniform(len(a)) < self.CROSSOVER
        crossed[self.below(len(a))] = True
        return torch.where(crossed, mutant, self.members[target].place)

    def configuration(self, place: Tensor) -> Params:
        """What a place (d) stands for."""
        columns = zip(self.space.parameters.values(), place[:, None], strict=True)
        return self.space.decode(torch.stack([p.from_uniform(column) for p, column in columns], 1))[0]

    def observe(self, handle: tuple[int, Tensor], value: float | None) -> None:
        target, place = handle
        if value is not None and value <= self.members[target].cost:
            self.members[target] = Member(place, value)


class RegularisedEvolution(Evolution):
    """Regularised (ageing) evolution of Real et al. (AAAI 2019, algorithm 1): population 20, tournament of 5.

    The parent is the best of 10 members at random, drawn with replacement; its child has one other value in one active
    parameter, uniform over the parameter's scale, and takes the place of the oldest. What a new value switches on is
    random. The first 20 evaluations are random search: with the population of 100 that is usual for thousands of
    evaluations, a run of 100 would be nothing else. A failure costs infinity, and ages like others.
    """

    SIZE, TOURNAMENT = 20, 5

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.population = deque[Member](maxlen=self.SIZE)
        self.asked = 0

    def suggest(self, q: int) -> list[tuple[Params, Tensor]]:
        children = []
        for _ in range(q):
            is_first = self.asked < self.SIZE or not self.population
            point = self.space.points.sample(1, self.generator)[0] if is_first else self.mutated(self.parent().place)
            children.append((self.space.decode(point[None])[0], point))
            self.asked += 1
        return children

    def parent(self) -> Member:
        """The best of a tournament."""
        rows = self.below(len(self.population), self.TOURNAMENT)
        return min((self.population[row] for row in rows), key=lambda member: member.cost)

    def mutated(self, point: Tensor) -> Tensor:
        """A point (d) with another value in one active parameter."""
        active = self.space.points.active(point[None])[0]
        parameters = list(self.space.parameters.values())
        free = [column for column, p in enumerate(parameters) if active[column] and p.levels != 1]
        if not free:
            return point
        anywhere = self.space.points.draw(1, self.generator)[0]
        child = torch.where(active, point, anywhere)
        (row,) = self.below(len(free))
        column, p = free[row], parameters[free[row]]
        if p.levels is None:
            child[column] = anywhere[column]
        else:
            (step,) = self.below(p.levels - 1)
            child[column] = p.from_level((p.to_level(point[column]) + 1 + step) % p.levels)
        return self.space.points.snap(child[None])[0]

    def observe(self, handle: Tensor, value: float | None) -> None:
        self.population.append(Member(handle, math.inf if value is None else value))
