"""`Job`: one run before it is made."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """What is optimised how, and how many configurations are evaluated at the same time."""

    problem: str
    method: str
    seed: int
    trials: int
    workers: int = 1
    initial: int = 10
    asynchronous: bool = False
    limit: float = math.inf  # seconds
    rounds: bool = False  # whether the row has the sum of the values of each round, for a cumulative regret

    @property
    def label(self) -> str:
        """The method's name in the results."""
        return self.method + ", asynchronous" * self.asynchronous

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What tells it from other runs, but for their length."""
        return self.problem, self.label, self.seed, self.workers
