"""Random numbers for noisy problems: seeded, and the same whatever the order of the evaluations."""

from collections import Counter
from hashlib import sha256

import numpy as np

from deepbore.space import Params, SearchSpace


class Draws:
    """A generator for each evaluation, which depends on (seed, name, configuration, how often it was evaluated).

    So each evaluation has noise of its own, also the second one of a configuration, and a run in several processes has
    the noise of a run in one: nothing depends on which evaluation comes first. But each process counts for itself: a
    configuration that is evaluated again by another, or after the run was resumed, may have noise that it had before.

    Args:
        space: where the configurations come from.
        name: of the problem; problems with other names draw other numbers.
        seed: of the run, >= 0.

    Example:
        >>> from deepbore.space import Real
        >>> draws, again = (Draws(SearchSpace({"x": Real(0, 1)}), "parabola", seed=0) for _ in range(2))
        >>> first, second = (draws({"x": 0.5}).normal() for _ in range(2))
        >>> first == again({"x": 0.5}).normal(), first == second
        (True, False)
    """

    def __init__(self, space: SearchSpace, name: str, seed: int):
        self.space, self.name, self.seed = space, name, seed
        self._times: Counter[int] = Counter()

    def __call__(self, params: Params) -> np.random.Generator:
        """The generator of the next evaluation of a configuration. Raises PointError for one outside the space."""
        point = self.space.encode([params])[0].double().numpy()
        digest = int.from_bytes(sha256(self.name.encode() + point.tobytes()).digest()[:8], "big")
        self._times[digest] += 1
        return np.random.default_rng([self.seed, digest, self._times[digest]])
