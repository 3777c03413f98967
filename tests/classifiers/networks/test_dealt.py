"""Members of an ensemble dealt to ranks: each rank trains its share, and all have all of them afterwards."""

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.optim import Adam

from deepbore.classifiers.networks.stacked import Members, StackedMLP
from deepbore.compute.distributed import Ranks
from thread_ranks import on_ranks

X = torch.linspace(-1, 1, 12)[:, None]
Z = (X > 0).float()
KEPT = ("step", "exp_avg", "exp_avg_sq")


def generator():
    return torch.Generator().manual_seed(0)


def built_in(members):
    return StackedMLP([1, 8, 1], members, "tanh", generator())


def own(members):
    def network(features, outputs):
        return nn.Sequential(nn.Linear(features, 4), nn.BatchNorm1d(4), nn.Dropout(0.2), nn.Linear(4, outputs))

    return Members(network, (1, 1), members, generator())


def steps(net, optimizer, stream, count):
    for _ in range(count):
        if isinstance(net, Members):
            optimizer.zero_grad()
            binary_cross_entropy_with_logits(net.learning(X, stream), Z.expand(len(net.members), -1, -1)).backward()
        else:
            net.backpropagate(X, lambda outputs: (outputs.sigmoid() - Z) / len(X))
        optimizer.step()


def failing(net, optimizer):
    steps(net, optimizer, None, 1)
    raise ZeroDivisionError


def trained(ranks, make, members):
    """The weights, and the state of Adam, after two iterations of five steps, of which ranks share the members."""
    net, stream = make(members), generator()
    optimizer = Adam(net.parameters(), lr=0.05)
    for _ in range(2):
        if ranks.world == 1:
            steps(net, optimizer, stream, 5)
        else:
            with net.dealt(ranks, optimizer) as share:
                assert share.stop - share.start < members
                steps(net, optimizer, stream, 5)
    tensors = [*net.state_dict().values(), *(optimizer.state[p][name] for p in net.parameters() for name in KEPT)]
    kept = [each.clone() for each in tensors]
    steps(net, optimizer, stream, 1)  # it goes on with all of them
    return kept, stream.get_state()


@pytest.mark.parametrize(("make", "members", "world"), [(built_in, 5, 2), (built_in, 3, 3), (own, 3, 2)])
def test_ranks_share_the_members_and_have_the_same_ones_bit_for_bit(make, members, world):
    several = on_ranks(lambda ranks: trained(ranks, make, members), world)
    first, stream = several[0]
    for tensors, other in several[1:]:
        assert all(map(torch.equal, first, tensors))
        assert torch.equal(stream, other)
    if make is built_in:  # without dropout all is as one process has it
        assert all(map(torch.allclose, first, trained(Ranks(), make, members)[0]))


def test_a_rank_that_is_interrupted_has_all_members_again():
    def interrupted(ranks):
        net = built_in(4)
        optimizer = Adam(net.parameters(), lr=0.05)
        steps(net, optimizer, None, 2)
        with pytest.raises(ZeroDivisionError), net.dealt(ranks, optimizer):
            failing(net, optimizer)
        steps(net, optimizer, None, 1)
        return [each.shape[0] for each in net.parameters()]

    assert on_ranks(interrupted) == [[4] * 4] * 2
