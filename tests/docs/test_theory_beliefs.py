"""The statements of docs/theory.md on what is believed of the best point, in numbers."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from deepbore import Normal, Real, SearchSpace
from deepbore.candidates.base import DOUBT
from deepbore.classifiers.link import Link

GRID = (np.arange(2000) + 0.5) / 2000
SPACE = SearchSpace({"x": Real(0, 1, prior=Normal(0.3, 0.1))})
BELIEF = SPACE.points.log_prior(torch.from_numpy(GRID)[:, None]).exp().numpy()


def class_probability(tau=0.2):
    """P(Y <= tau | x) of values around (x - 0.5)^2 with normal noise."""
    return norm.cdf((tau - 4 * (GRID - 0.5) ** 2) / 0.2)


def test_the_class_probability_times_a_belief_is_a_posterior_of_where_a_good_point_lies():
    pi = class_probability()
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(GRID), 400_000, p=BELIEF / BELIEF.sum())
    good = drawn[rng.random(len(drawn)) < pi[drawn]]  # of what is believed, what proves to be good
    posterior = BELIEF * pi / (BELIEF * pi).sum()
    assert np.allclose(np.bincount(good // 100, minlength=20) / len(good), posterior.reshape(20, 100).sum(1), atol=3e-3)
    score = torch.from_numpy(np.log(pi) - np.log1p(-pi))  # the same product of logits
    log_density = Link.LOGIT.log_probability(score) + torch.from_numpy(np.log(BELIEF))
    assert int(log_density.argmax()) == int(posterior.argmax())


def test_where_the_design_was_drawn_from_does_not_count_twice():
    rng, pi = np.random.default_rng(1), class_probability()
    found = {}
    for name, density in {"uniform": np.ones_like(BELIEF), "believed": BELIEF}.items():
        drawn = rng.choice(len(GRID), 400_000, p=density / density.sum())
        good = rng.random(len(drawn)) < pi[drawn]
        tried = np.bincount(drawn // 100, minlength=20)
        hits = np.bincount(drawn[good] // 100, minlength=20)
        found[name] = hits / np.maximum(tried, 1), hits / hits.sum()
    middle = slice(2, 9)  # where both have many points
    assert np.allclose(found["uniform"][0][middle], found["believed"][0][middle], atol=0.05)
    ratio = found["believed"][1][middle] / found["uniform"][1][middle]
    expected = BELIEF.reshape(20, 100).mean(1)[middle]
    assert np.allclose(ratio / ratio.sum(), expected / expected.sum(), atol=0.02)  # l has the belief in it already


@pytest.mark.parametrize("n", [1, 10, 100, 1000])
def test_a_belief_gives_up_at_most_its_range_to_the_power_of_its_exponent(n):
    exponent, pi = 10 / n, class_probability(0.02)
    points = torch.from_numpy(GRID)[:, None]
    belief = SPACE.points.log_prior(points, DOUBT).exp().numpy()
    chosen = np.argmax(np.log(pi) + exponent * np.log(belief))
    assert belief.min() >= DOUBT * (1 - 1e-9)
    assert pi[chosen] >= pi.max() * (belief.min() / belief.max()) ** exponent
    if n == 1000:
        assert pi[chosen] > 0.99 * pi.max()
    refuted = SPACE.points.doubts(torch.tensor([0.9], dtype=torch.float64), DOUBT)  # by a best trial far from it
    density = float(SPACE.points.log_prior(torch.tensor([[0.9]], dtype=torch.float64)).exp())
    assert float(refuted[0]) == pytest.approx(DOUBT / (DOUBT + (1 - DOUBT) * density))
    assert float(refuted[0]) > 0.999
