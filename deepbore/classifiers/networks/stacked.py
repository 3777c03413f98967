"""Networks of m members side by side: built-in ones along a leading axis, or copies of a user's own."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import pairwise, zip_longest

import torch
from torch import Tensor, nn

from deepbore.compute.devices import global_streams_seeded
from deepbore.compute.distributed import Ranks
from deepbore.errors import SettingError

Function = Callable[[Tensor], Tensor]
Given = str | nn.Module | Function  # an activation: its name, class, module or function


def _slope_of_elu(a: Tensor) -> Tensor:  # named functions, since attributes of a module must be picklable
    return a.clamp(max=0) + 1


def _slope_of_tanh(a: Tensor) -> Tensor:
    return 1 - a * a


# activation, and its derivative as a function of the activation's value
ACTIVATIONS: dict[str, tuple[Function, Function]] = {
    "elu": (nn.functional.elu, _slope_of_elu),
    "relu": (torch.relu, torch.sign),
    "tanh": (torch.tanh, _slope_of_tanh),
}
NAMED = {name.lower(): name for name in nn.modules.activation.__all__}  # "gelu": "GELU"


class Activation:
    """An elementwise function, and its derivative.

    Args:
        given: a name of torch.nn in any case ("elu", "GELU", "torch.nn.SiLU"), a class such as `nn.GELU`, a module such
            as `nn.LeakyReLU(0.1)`, or a function.

    Raises:
        SettingError: for another name, or a function that is not elementwise, random, or has parameters.
    """

    def __init__(self, given: Given):
        self.slope_of_value: Function | None = None
        named = given.lower().rpartition(".")[2] if isinstance(given, str) else given
        if isinstance(named, str) and named in ACTIVATIONS:
            self.function, self.slope_of_value = ACTIVATIONS[named]
        else:
            self.function = _elementwise(named, given)

    def __call__(self, t: Tensor) -> Tensor:
        return self.function(t)

    def with_slope(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """The values at t, of any shape, and the derivatives there."""
        if self.slope_of_value is not None:
            a = self.function(t)
            return a, self.slope_of_value(a)
        a, pull = torch.func.vjp(self.function, t)[:2]
        return a, pull(torch.ones_like(a))[0]


def _elementwise(named: Given, given: Given) -> Function:
    """The function that is meant, tried at five places."""
    rule = 'activation must be a name, class or function of torch that maps each number by itself, such as "gelu"'
    if isinstance(named, str) and named not in NAMED:
        raise SettingError(f"{rule}, but got activation={given!r}. There are {', '.join(NAMED)}.")
    made = getattr(nn, NAMED[named]) if isinstance(named, str) else named
    places = torch.tensor([-2.0, -1.0, 0.1, 1.0, 2.0])
    try:
        made = made() if isinstance(made, type) else made
        slopes = torch.func.jacrev(made)(places)
        is_elementwise = slopes.shape == (5, 5) and bool((slopes.diagonal().diag() == slopes).all())
    except Exception as error:  # whatever a function of the user's own raises
        raise SettingError(f"{rule}, but activation={given!r:.100} fails: {error}") from error
    if not is_elementwise or (isinstance(made, nn.Module) and [*made.parameters()]) or isinstance(made, nn.RReLU):
        raise SettingError(f"{rule}, but got activation={given!r:.100}. Give a network= that has it.")
    return made


MOMENTS = ("exp_avg", "exp_avg_sq")  # in the state of Adam, of the shape of a parameter
Masks = Sequence[Tensor]  # factors of the units of each hidden layer, each broadcastable to m x n x h


class StackedLinear(nn.Module):
    """m linear layers: (m x) n x i -> m x n x o, initialised as `nn.Linear`, uniform within 1 / sqrt(i).

    A single layer broadcasts over the leading axis of its inputs: m x n x i -> m x n x o, with shared weights.
    """

    def __init__(self, members: int, inputs: int, outputs: int, generator: torch.Generator):
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        draw = (
            torch.rand(members, inputs + 1, outputs, generator=generator, device=generator.device) * 2 * bound - bound
        )
        self.weight = nn.Parameter(draw[:, :-1].clone())
        self.bias = nn.Parameter(draw[:, -1:].clone())

    def forward(self, x: Tensor) -> Tensor:
        m = max(len(self.weight), len(x) if x.ndim == 3 else 1)
        bias, weight = (p.expand(m, -1, -1) for p in (self.bias, self.weight))
        return torch.baddbmm(bias, x.expand(m, *x.shape[-2:]), weight)


class StackedMLP(nn.Module):
    """m multi-layer perceptrons with separate weights.

    Args:
        sizes: widths of the layers, from e features to k outputs.
        members: m.
        activation: see `Activation`.
        generator: random numbers for the initial weights.

    Raises:
        SettingError: for another activation.
    """

    def __init__(self, sizes: Sequence[int], members: int, activation: Given, generator: torch.Generator):
        super().__init__()
        self.layers = nn.ModuleList(StackedLinear(members, i, o, generator) for i, o in pairwise(sizes))
        self.activation = Activation(activation)

    @property
    def width(self) -> int:
        """The number of inputs of the last layer."""
        last: Tensor = self.layers[-1].weight  # type: ignore[assignment]  # torch types attributes as modules, too
        return last.shape[1]

    def hidden(self, x: Tensor, masks: Masks = ()) -> Tensor:
        """Features (n x e) -> inputs of the last layer (m x n x h)."""
        for layer, mask in zip_longest(self.layers[:-1], masks):
            x = self.activation(layer(x))
            x = x if mask is None else x * mask
        return x

    def forward(self, x: Tensor, masks: Masks = ()) -> Tensor:
        """Features (n x e) -> outputs (m x n x k)."""
        return self.layers[-1](self.hidden(x, masks))  # type: ignore[no-any-return]  # torch: any

    @torch.no_grad()
    def backpropagate(self, x: Tensor, loss_gradient: Callable[[Tensor], Tensor], masks: Masks = ()) -> None:
        """Sets the gradients of all weights, three times faster than autograd for such small layers.

        Args:
            x: features, n x e.
            loss_gradient: outputs (m x n x k) -> derivative of the loss with respect to them (m x n x k).
            masks: of the hidden units, for dropout; empty for none.
        """
        layers = [*self.layers]
        entering = [x.expand(len(layers[0].weight), *x.shape)]
        slopes = []  # derivative of each hidden layer's output with respect to its pre-activation
        for layer, mask in zip_longest(layers[:-1], masks):
            a, slope = self.activation.with_slope(torch.baddbmm(layer.bias, entering[-1], layer.weight))
            slopes.append(slope if mask is None else slope * mask)
            entering.append(a if mask is None else a * mask)
        gradient = loss_gradient(torch.baddbmm(layers[-1].bias, entering[-1], layers[-1].weight))
        for i in reversed(range(len(layers))):
            layers[i].weight.grad = torch.bmm(entering[i].mT, gradient)
            layers[i].bias.grad = gradient.sum(1, keepdim=True)
            if i:
                gradient = torch.bmm(gradient, layers[i].weight.mT).mul_(slopes[i - 1])

    @contextmanager
    def dealt(self, ranks: Ranks, optimizer: torch.optim.Optimizer) -> Iterator[slice]:
        """A context with this rank's members alone, to be trained; then every rank has all of them, and Adam's state.

        Args:
            ranks: no more than there are members.
            optimizer: of the parameters.
        """
        own = ranks.share(len(next(self.parameters())))
        whole = {parameter: parameter.data for parameter in self.parameters()}
        state = {parameter: optimizer.state[parameter] for parameter in whole if optimizer.state.get(parameter)}
        moments = {parameter: {name: each[name] for name in MOMENTS} for parameter, each in state.items()}
        for parameter, data in whole.items():
            parameter.grad, parameter.data = None, data[own]
            state.get(parameter, {}).update({name: each[own] for name, each in moments.get(parameter, {}).items()})
        try:
            yield own
            kept = [[each.data, *(optimizer.state[each][name] for name in MOMENTS)] for each in whole]
            exchanged = iter(_of_all_ranks([tensor for tensors in kept for tensor in tensors], ranks))
        except BaseException:
            for parameter in whole:
                optimizer.state.pop(parameter, None)
            optimizer.state.update({parameter: {**state[parameter], **moments[parameter]} for parameter in state})
            raise
        finally:
            for parameter, data in whole.items():
                parameter.grad, parameter.data = None, data
        for parameter in whole:
            parameter.data.copy_(next(exchanged))
            optimizer.state[parameter].update({name: next(exchanged).clone() for name in MOMENTS})

    def jacobian_factors(self, x: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """The output of a single member, and its derivative with respect to every layer's weights, as factors.

        Args:
            x: features, n x e.

        Returns:
            The outputs (n), and for each layer a (n x (i + 1), its inputs and a 1 for the bias) and g (n x o): the
            derivative with respect to its weights and bias (i + 1 x o) is their outer product. All have gradients in x.
        """
        layers = [*self.layers]
        entering, slopes = [x], []
        for layer in layers[:-1]:
            a, slope = self.activation.with_slope(layer(entering[-1])[0])
            entering.append(a)
            slopes.append(slope)
        output = layers[-1](entering[-1])[0, :, 0]
        g = [torch.ones_like(output)[:, None]]
        for layer, slope in zip(reversed(layers[1:]), reversed(slopes), strict=True):
            g.insert(0, (g[0] @ layer.weight[0].mT) * slope)
        return output, [(with_one(a), each) for a, each in zip(entering, g, strict=True)]


def with_one(a: Tensor) -> Tensor:
    """a (n x i) with a column of ones, the input of the bias (n x (i + 1))."""
    return torch.cat([a, torch.ones_like(a[:, :1])], dim=-1)


class Members(nn.Module):
    """m copies of a user's own network, evaluated one after the other.

    They learn in training mode and predict in evaluation mode, so that a point's score depends on no other point.

    Args:
        factory: (number of features, number of outputs) -> module that maps n x e to n x k.
        sizes: e and k.
        members: m.
        generator: the source of a seed for each copy's initial weights.
    """

    def __init__(
        self,
        factory: Callable[[int, int], nn.Module],
        sizes: tuple[int, int],
        members: int,
        generator: torch.Generator,
    ):
        super().__init__()
        made = [_seeded(factory, *sizes, generator) for _ in range(members)]
        check_maps(made[0], *sizes)
        self.members = nn.ModuleList(made)

    def forward(self, x: Tensor) -> Tensor:
        """Features (n x e) -> outputs (m x n x k)."""
        self.eval()
        return torch.stack([member(x) for member in self.members])

    def learning(self, x: Tensor, stream: torch.Generator) -> Tensor:
        """Outputs in training mode (m x n x k); random numbers within the networks, as of dropout, follow a stream."""
        self.train()
        with global_streams_seeded(stream, x.device):
            return torch.stack([member(x) for member in self.members])

    @property
    def width(self) -> int:
        """The number of inputs of the last linear layer."""
        return self._last_layer(self.members[0]).in_features

    def hidden(self, x: Tensor) -> Tensor:
        """Features (n x e) -> inputs of the last linear layer (m x n x h)."""
        self.eval()
        found: list[Tensor] = []
        for member in self.members:
            hook = self._last_layer(member).register_forward_pre_hook(lambda _, inputs: found.append(inputs[0]))
            try:
                member(x)
            finally:
                hook.remove()
        return torch.stack(found)

    @staticmethod
    def _last_layer(member: nn.Module) -> nn.Linear:
        """The last linear layer. Raises SettingError for a network without one."""
        linear = [layer for layer in member.modules() if isinstance(layer, nn.Linear)]
        if not linear:
            raise SettingError("this head needs a network whose last layer is an nn.Linear, but yours has none.")
        return linear[-1]

    @property
    def are_alike(self) -> bool:
        """Whether all members have tensors of the same shapes."""
        shapes = [[each.shape for each in member.state_dict().values()] for member in self.members]
        return all(each == shapes[0] for each in shapes)

    @contextmanager
    def dealt(self, ranks: Ranks, optimizer: torch.optim.Optimizer) -> Iterator[slice]:
        """As of `StackedMLP`, for members that are alike."""
        everyone, own = self.members, ranks.share(len(self.members))
        self.zero_grad(set_to_none=True)
        self.members = nn.ModuleList([*everyone][own])
        try:
            yield own
        finally:
            self.members = everyone
        tensors = [[*member.state_dict().values()] for member in everyone]
        for group in zip(*tensors, strict=True):  # the same tensor of each member
            for each, trained in zip(group, _exchanged(group, own, ranks), strict=True):
                each.copy_(trained)
        for weights in zip(*(member.parameters() for member in everyone), strict=True):
            states = [optimizer.state[weight] for weight in weights]
            if all(states[own]):  # a network need not use all of its weights
                for name in ("step", *MOMENTS):
                    moved = _exchanged([each.get(name) for each in states], own, ranks)
                    for each, trained in zip(states, moved, strict=True):
                        each[name] = trained.clone()
        self.zero_grad(set_to_none=True)


def _of_all_ranks(tensors: Sequence[Tensor], ranks: Ranks) -> list[Tensor]:
    """Tensors of this rank's members, of one type, with those of all ranks (each m x ...), in one exchange."""
    rows = ranks.whole(torch.cat([each.flatten(1) for each in tensors], dim=1))
    parts = rows.split([each.shape[1:].numel() for each in tensors], dim=1)
    return [part.reshape(-1, *each.shape[1:]) for part, each in zip(parts, tensors, strict=True)]


def _exchanged(tensors: Sequence[Tensor | None], own: slice, ranks: Ranks) -> Tensor:
    """One tensor of each member (m x ...), each from the rank that has trained the member."""
    return ranks.whole(torch.stack([each for each in tensors[own] if each is not None]))


def check_maps(network: nn.Module, features: int, outputs: int) -> None:
    """Raises SettingError unless the network maps n x features to n x outputs."""
    rule = f"network must make a module that maps n x {features} features to n x {outputs} outputs"
    if not isinstance(network, nn.Module):
        raise SettingError(f"{rule}, but made {network!r:.100}. Return an nn.Module.")
    copied = deepcopy(network).eval()  # a first call may change the network
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            shape = tuple(copied(torch.zeros(2, features)).shape)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise SettingError(f"{rule}, but it fails for two rows: {error}. Use the sizes that it is given.") from error
    if shape != (2, outputs):
        raise SettingError(f"{rule}, but of two rows it makes {shape}. Use the sizes that it is given.")


def _seeded(
    factory: Callable[[int, int], nn.Module], features: int, outputs: int, generator: torch.Generator
) -> nn.Module:
    """A module with initial weights from the generator; global random states are restored."""
    with global_streams_seeded(generator, torch.device("cpu")):
        return factory(features, outputs)
