"""Batches: against formulas by hand, on densities whose modes are known, through a study, and on several ranks."""

import math
from copy import deepcopy
from functools import cache

import pytest
import torch
from torch import distributed, multiprocessing

from deepbore import DeepEnsemble, KernelPLS, Ordinal, Real, SearchSpace, Study
from deepbore.acquisition import (
    ClassProbability,
    ExpectedProbability,
    PosteriorSample,
    TheoremBound,
    UpperConfidenceBound,
)
from deepbore.candidates import (
    BelieverBatch,
    BoTorchBatch,
    Candidates,
    EpsilonGreedy,
    GreedyBatch,
    LocalSearch,
    MultiStartLBFGS,
    RandomSearch,
    Search,
    SVGDCandidates,
    ThompsonBatch,
)
from deepbore.candidates.batches import KNOWN, in_radii, known_points, log_penalty
from deepbore.candidates.selection import first_new_rows
from deepbore.classifiers import MLPClassifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import MembersPosterior, PointEstimate
from deepbore.compute.distributed import Ranks
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from thread_ranks import on_ranks

SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
LINE = SearchSpace({"x": Real(0, 1)})
GRID = SearchSpace({f"k{i}": Ordinal(list(range(5))) for i in range(3)})
TREE = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]


class Tops(MLPClassifier):
    """Scores are the log density of a high and a low bump on a line."""

    def posterior(self, points):
        return PointEstimate(log_tops(points), self.link, "Tops")


class Plainly(ClassProbability):
    """The mean score, as a log density too."""

    def log_density(self, posterior, best):
        return posterior.mean


def log_tops(points):
    high = -((points[:, 0] - 0.2) ** 2) / (2 * 0.05**2)
    low = -((points[:, 0] - 0.8) ** 2) / (2 * 0.05**2) - 2
    return torch.logaddexp(high, low)


class Listed(Candidates):
    """A fixed list of points, ranked."""

    def __init__(self, points):
        self.points = points

    def ranked(self, search, q):
        return search.best_first(self.points)[0]


def search(known=(0.45, 0.55), pending=(), classifier=None, space=LINE):
    observations = Observations(space)
    if known:
        observations.add({"x": list(known)}, [1.0] * len(known))
    if pending:
        observations.reserve(torch.tensor(pending, dtype=torch.float64)[:, None])
    classifier = classifier or Tops().bind(space)
    return Search(Plainly(), classifier, observations, torch.Generator().manual_seed(0))


def by_hand(points, known, pending, q, reach):
    """The formula of `GreedyBatch`, point by point."""
    value = {float(x): float(log_tops(x[None])) for x in points}
    taken, chosen = list(pending), []
    for _ in range(q):
        score = {}
        for x, a in value.items():
            radius = {centre: reach * min(abs(centre - other) for other in known) for centre in taken}
            holes = [1 - math.exp(-((x - centre) ** 2) / (2 * radius[centre] ** 2)) for centre in taken]
            hole = min(holes, default=1.0)
            score[x] = a + math.log(hole) if hole > 0 else -math.inf
        best = max((x for x in score if x not in taken), key=score.__getitem__)
        taken.append(best)
        chosen.append(best)
    return chosen


@pytest.mark.parametrize("pending", [(), (0.21, 0.77)])
def test_a_greedy_batch_is_the_formula_by_hand(pending):
    known = (0.45, 0.55, 0.11)
    found = GreedyBatch(Listed(TREE), reach=0.4).propose(search(known=known, pending=pending), q=6)
    points = [x for x in TREE if float(x) not in (*known, *pending)]
    assert found[:, 0].tolist() == pytest.approx(by_hand(points, known, pending, 6, 0.4))


def test_the_first_of_a_batch_is_the_best_and_the_second_lies_on_the_other_top():
    found = GreedyBatch(Listed(TREE)).propose(search(), q=3)[:, 0]
    plain = Listed(TREE).propose(search(), q=3)[:, 0]
    assert plain.sort().values.tolist() == pytest.approx([0.19, 0.2, 0.21])
    assert found[0] == plain[0]
    assert (found - 0.8).abs().min() < 0.03


def test_single_asks_spread_as_a_batch_does():
    at, asked = search(), []
    for _ in range(4):
        point = GreedyBatch(Listed(TREE)).propose(at, q=1)
        at.observations.reserve(point)
        asked.append(float(point))
    assert asked == pytest.approx(GreedyBatch(Listed(TREE)).propose(search(), q=4)[:, 0].tolist())


def test_one_point_with_nothing_pending_is_the_bases():
    assert torch.equal(GreedyBatch().propose(search(), q=1), LocalSearch().propose(search(), q=1))


def test_the_radius_shrinks_with_the_spacing_of_the_data():
    wide = GreedyBatch(Listed(TREE)).propose(search(known=(0.45,)), q=8)[:, 0]
    close = GreedyBatch(Listed(TREE)).propose(search(known=(0.45, 0.185, 0.215)), q=8)[:, 0]
    assert ((close - 0.2).abs() < 0.1).sum() > ((wide - 0.2).abs() < 0.1).sum()


def test_nothing_known_still_spreads():
    found = GreedyBatch(Listed(TREE)).propose(search(known=()), q=4)[:, 0]
    assert found.sort().values.diff().min() > 0.05


def test_the_penalty_is_nothing_far_and_all_at_the_centre():
    x = torch.tensor([[0.0], [0.1], [5.0]], dtype=torch.float64)
    penalty = log_penalty(in_radii(x, x[:2], torch.tensor([0.1, 0.0], dtype=torch.float64)))
    assert penalty[0, 0] == -math.inf
    assert penalty[1, 0] == pytest.approx(math.log(1 - math.exp(-0.5)))
    assert penalty[1, 1] == -math.inf
    assert penalty[2].tolist() == pytest.approx([0, 0])


def test_hundreds_of_pending_points_do_not_outweigh_the_acquisition():
    space = SearchSpace({f"x{k}": Real(0, 1) for k in range(20)})
    study = Study(space, seed=0)

    def bowl(trial):
        return sum((x - 0.7) ** 2 for x in trial.params.values())

    for trial in study.ask(200):
        study.tell(trial, bowl(trial))
    early = study.ask(300)
    late = study.ask(10)  # while those are pending
    values = [sum(map(bowl, several)) / len(several) for several in (study.trials[:200], early, late)]
    assert max(values[1:]) < 0.5 * values[0]


def test_known_points_are_the_best_and_the_newest_of_many():
    observations = Observations(LINE)
    values = torch.rand(5 * KNOWN, generator=torch.Generator().manual_seed(0)).tolist()
    observations.add({"x": torch.linspace(0, 1, 5 * KNOWN).tolist()}, values)
    known = known_points(Search(Plainly(), Tops().bind(LINE), observations, torch.Generator()))
    assert len(known) == KNOWN
    rows = {*observations.centres.best_rows(KNOWN // 2).tolist(), *range(5 * KNOWN - KNOWN // 2, 5 * KNOWN)}
    assert {float(x) for x in known} == {float(observations.points[row]) for row in rows}


def test_fresh_points_are_new_distinct_and_in_order():
    observations = Observations(GRID)
    observations.reserve(GRID.encode([{"k0": 1, "k1": 1, "k2": 1}]))
    ranked = torch.tensor([[1.0, 1, 1], [2, 2, 2], [2, 2, 2], [3, 3, 3], [4, 4, 4]], dtype=torch.float64)
    assert first_new_rows(ranked, observations, 2).tolist() == [1, 3]
    assert not len(first_new_rows(ranked[:1], observations, 2))


@pytest.mark.parametrize("make", [GreedyBatch, ThompsonBatch])
@pytest.mark.parametrize("name", TOY_SPACES)
def test_batches_larger_than_the_choice_are_filled_up(name, make):
    space = TOY_SPACES[name]
    data = toy_data(space, 20)
    classifier = fit(DeepEnsemble(), data, epochs=2)
    at = Search(ClassProbability(), classifier, data.observations, torch.Generator().manual_seed(0))
    few = Listed(space.points.sample(10, torch.Generator().manual_seed(1)))
    found = make(few).propose(at, q=40)
    assert len(set(space.points.identify(found))) == 40
    assert all(data.observations.columns.unseen(found))


def test_each_point_of_a_thompson_batch_is_a_members_best():
    class Members(DeepEnsemble):
        def posterior(self, points):
            return MembersPosterior(torch.stack([-(points[:, 0] - top).abs() for top in (0.1, 0.5, 0.9)]), Link.LOGIT)

    at = search(known=(0.5,), classifier=Members(members=3).bind(LINE))
    found = ThompsonBatch(Listed(TREE)).propose(at, q=60)[:, 0]
    tops = torch.tensor([0.1, 0.5, 0.9])
    assert float(found[0]) in (0.1, 0.49, 0.51, 0.9)  # 0.5 is known
    nearest = (found[:, None] - tops).abs().argmin(1)
    counts = torch.bincount(nearest, minlength=3)
    assert (counts > 9).all()
    assert ((found - tops[nearest]).abs() <= 0.01 * (counts[nearest] + 1)).all()  # the next best, one by one


def test_a_thompson_batch_draws_a_gaussian_process_jointly():
    data = toy_data(LINE, 6)
    classifier = fit(KernelPLS(), data, epochs=2)
    at = Search(ClassProbability(), classifier, data.observations, torch.Generator().manual_seed(0))
    found = ThompsonBatch(Listed(TREE)).propose(at, q=30)
    best = Listed(TREE).propose(at, q=30)
    assert found.std() > best.std()
    with torch.no_grad():
        assert classifier.posterior(found).mean.mean() > classifier.posterior(TREE).mean.mean()


def test_thompson_sampling_needs_something_to_draw():
    with pytest.raises(SettingError, match=r"ThompsonBatch needs std of the scores, which MLPClassifier does not have"):
        ThompsonBatch().check(LINE, MLPClassifier())
    with pytest.raises(SettingError, match=r"gives one score a point, so it has no posterior samples"):
        ThompsonBatch(Listed(TREE)).propose(search(), q=2)


def test_a_reach_of_nothing_is_refused():
    with pytest.raises(SettingError, match=r"reach > 0 must hold, but got reach=0"):
        GreedyBatch(reach=0)


def test_a_study_asks_for_batches_that_lie_apart():
    def spread(candidates):
        study = Study(SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}), seed=0, candidates=candidates)
        for trial in study.ask(12):
            study.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"])
        points = torch.tensor([list(trial.params.values()) for trial in study.ask(6)])
        return torch.nn.functional.pdist(points).min()

    assert spread(GreedyBatch()) > 3 * spread(LocalSearch(focus=0))


# --- several ranks ---------------------------------------------------------------------------------------------------


@cache
def trained_once():
    data = toy_data(SQUARE, 20)
    classifier = fit(KernelPLS(), data, epochs=2)
    return data, classifier


def shared_proposals(candidates, q, world=2, seed=0):
    """Proposals of each rank, what each has evaluated (calls, points), and where the common stream stands."""
    data, trained = trained_once()
    classifiers = [deepcopy(trained) for _ in range(world)]
    sizes = [[] for _ in range(world)]

    def task(ranks):
        classifier, scored = classifiers[ranks.rank], classifiers[ranks.rank].posterior
        classifier.posterior = lambda points: sizes[ranks.rank].append(len(points)) or scored(points)
        generator = torch.Generator().manual_seed(seed)
        bound = UpperConfidenceBound().resolved(classifier)
        found = candidates.propose(Search(bound, classifier, data.observations, generator, ranks), q)
        return found, generator.get_state()

    return on_ranks(task, world), sizes


@pytest.mark.parametrize(
    ("candidates", "q"),
    [
        (BoTorchBatch(restarts=3, samples=60, iterations=10), 2),
        (BoTorchBatch(joint=True, restarts=2, samples=60, iterations=10), 3),
        (MultiStartLBFGS(restarts=2, samples=40, iterations=10), 1),
        (LocalSearch(samples=50, neighbours=20, climbers=2, steps=3, focus=0), 1),
    ],
    ids=["one by one", "joint", "L-BFGS", "local"],
)
@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_the_climbing_and_agree(candidates, q, world):
    together, sizes = shared_proposals(candidates, q, world)
    for found, stream in together:
        assert torch.equal(found, together[0][0])
        assert torch.equal(stream, together[0][1])
    assert len(set(SQUARE.points.identify(together[0][0]))) == q
    (_, alone) = shared_proposals(candidates, q, world=1)
    assert max(sum(points) for points in sizes) < sum(alone[0])


def test_two_ranks_find_the_batch_that_one_finds():
    candidates = BoTorchBatch(restarts=4, samples=100, iterations=50)
    ((alone, _),), _ = shared_proposals(candidates, 2, world=1)
    ((together, _), _), _ = shared_proposals(candidates, 2)
    assert torch.allclose(together, alone, atol=1e-3)


def test_the_climbers_of_a_large_batch_are_divided():
    candidates = LocalSearch(samples=200, neighbours=0, climbers=8, steps=4, focus=0)
    _, sizes = shared_proposals(candidates, 64)
    assert [points.count(32) for points in sizes] == [5, 5]  # 4 steps, and what they have reached


def test_ranks_explore_together_or_not_at_all():
    candidates = EpsilonGreedy(RandomSearch(20), epsilon=0.5)
    explored = set()
    for seed in range(8):
        ((one, _), (other, _)), sizes = shared_proposals(candidates, 1, seed=seed)
        assert torch.equal(one, other)
        assert bool(sizes[0]) == bool(sizes[1])
        explored.add(not sizes[0])
    assert explored == {True, False}


def rank_of_two(rank, folder):
    """One of two real processes; it writes what it proposes."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    data = toy_data(SQUARE, 20)
    classifier = fit(KernelPLS(), data, epochs=2)
    generator, proposed = torch.Generator().manual_seed(0), []
    ranks = Ranks.found()
    for candidates in (GreedyBatch(), BoTorchBatch(restarts=2, samples=60, iterations=5), SVGDCandidates(steps=5)):
        proposed.append(candidates.propose(Search(Plainly(), classifier, data.observations, generator, ranks), 3))
    torch.save(torch.cat(proposed), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


@pytest.mark.slow
def test_two_processes_propose_the_same(tmp_path):
    multiprocessing.spawn(rank_of_two, (tmp_path,), nprocs=2)
    one, other = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert torch.equal(one, other)
    assert one.shape == (9, 2)


# --- as if predictions were observed ---------------------------------------------------------------------------------


def believed_by_hand(classifier, points, pending, q, kappa):
    """The best bounds one by one, the deviation each time from the joint covariance given all that were chosen."""
    posterior = classifier.posterior(torch.cat([pending, points]))
    mean, covariance = posterior.mean, posterior.covariance()
    taken = list(range(len(pending)))
    for _ in range(q):
        cross = covariance[:, taken]
        explained = cross @ torch.linalg.pinv(cross[taken], hermitian=True) @ cross.mT
        bound = mean + kappa * (covariance - explained).diagonal().clamp(min=0).sqrt()
        bound[[*range(len(pending)), *taken]] = -math.inf
        taken.append(int(bound.argmax()))
    return points[[row - len(pending) for row in taken[len(pending) :]]]


@pytest.mark.parametrize("count", [0, 3])
def test_a_believer_is_the_conditional_gaussian_by_hand(count):
    points = SQUARE.points.sobol(60, seed=1)
    data = toy_data(SQUARE, 12)
    classifier = fit(KernelPLS(additive=False), data)
    if count:
        data.observations.reserve(SQUARE.points.sobol(count, seed=5))
    at = Search(UpperConfidenceBound(2), classifier, data.observations, torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = believed_by_hand(classifier, points, SQUARE.points.sobol(5, seed=5)[:count], 8, 2)
    assert torch.equal(BelieverBatch(Listed(points)).propose(at, 8), expected)


def test_a_believer_of_the_mean_alone_is_the_base():
    data = toy_data(SQUARE, 12)
    at = Search(ClassProbability(), fit(KernelPLS(), data), data.observations, torch.Generator().manual_seed(0))
    points = SQUARE.points.sobol(60, seed=1)
    assert torch.equal(BelieverBatch(Listed(points)).propose(at, 8), Listed(points).propose(at, 8))


def test_a_believer_needs_deviations():
    with pytest.raises(SettingError, match="BelieverBatch needs std"):
        Study(LINE, classifier=MLPClassifier(), candidates=BelieverBatch())


@pytest.mark.parametrize(
    ("classifier", "acquisition"),
    [
        (DeepEnsemble(), PosteriorSample()),
        (DeepEnsemble(), ExpectedProbability("samples")),
        (KernelPLS(), TheoremBound()),
    ],
)
def test_a_believer_takes_no_acquisition_that_needs_more_than_moments(classifier, acquisition):
    for candidates in (BelieverBatch(), EpsilonGreedy(BelieverBatch())):
        with pytest.raises(SettingError, match=f"mean and a deviation, but {type(acquisition).__name__}"):
            Study(LINE, classifier=classifier, acquisition=acquisition, candidates=candidates)
