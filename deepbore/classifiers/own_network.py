"""A user's own network, linearised in its weights: what it gives, and the derivative of that, row by row."""

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from deepbore.classifiers.linearised import Factors
from deepbore.classifiers.stacked import with_one
from deepbore.errors import SettingError


def parameters_behind(network: nn.Module, structure: str) -> list[str]:
    """Names of the parameters that have a posterior: those of the last `nn.Linear`, or all that are trained.

    Args:
        network: n x e -> n x 1.
        structure: "full", "kron", "diag" or "last_layer".

    Raises:
        SettingError: if the structure cannot be had of these parameters.
    """
    if structure == "last_layer":
        last = {id(p) for p in last_linear(network).parameters()}
        return [name for name, p in network.named_parameters() if id(p) in last]
    trained = {name: p for name, p in network.named_parameters() if p.requires_grad}
    linear = [id(p) for layer in linear_layers(network) for p in layer.parameters()]
    if structure == "kron" and linear != [id(p) for p in trained.values()]:
        raise SettingError(
            'structure="kron" needs a network whose weights are all of nn.Linear layers, and all trained, but yours '
            'has others. Use "last_layer", "diag" or "full".'
        )
    return list(trained)


def check_linearised(network: nn.Module, names: list[str], structure: str, features: int) -> None:
    """Raises SettingError if `linearised` can't be had, or has no gradients.

    Args:
        network: e -> 1.
        names: as `parameters_behind` gives them.
        structure: "full", "kron", "diag" or "last_layer".
        features: e.
    """
    x = torch.zeros(2, features, requires_grad=True)
    try:
        output, ((a, _),) = linearised(network, names, structure, x)
        torch.autograd.grad(output.sum() + a.sum(), x)
    except RuntimeError as error:
        raise SettingError(
            f'the derivative of your network in its weights, which structure="{structure}" needs, can\'t be had for '
            f'several rows at once (torch.func.vmap), or has no gradient: {error}. Try "last_layer".'
        ) from error


def linearised(network: nn.Module, names: list[str], structure: str, x: Tensor) -> tuple[Tensor, Factors]:
    """The network's output (n), and its derivative in the named parameters, with gradients in x.

    Args:
        network: n x e -> n x 1.
        names: as `parameters_behind` gives them.
        structure: "full", "kron", "diag" or "last_layer".
        x: features, n x e.
    """
    if structure == "last_layer":
        return last_layer_factors(network, x)
    output, jacobian = row_jacobians(network, names, x)
    return output, [(jacobian, torch.ones_like(output)[:, None])]


def row_jacobians(network: nn.Module, names: list[str], x: Tensor) -> tuple[Tensor, Tensor]:
    """The network's output (n), and its derivative in the named parameters (n x P), both with gradients in x.

    Every row has parameters of its own, all of them equal, so that one pass back gives all derivatives: as fast as
    `torch.func.vmap(grad(...))`, through which `nn.LayerNorm` has wrong gradients in x.
    """
    parameters = dict(network.named_parameters())

    def output_of(chosen: dict[str, Tensor], row: Tensor) -> Tensor:
        output: Tensor = functional_call(network, chosen, (row[None],))
        return output.squeeze()

    differentiable = torch.is_grad_enabled()
    with torch.enable_grad():
        chosen = {name: _for_each_row(parameters[name], len(x)) for name in names}
        output = vmap(output_of)(chosen, x)
        jacobian = torch.autograd.grad(output.sum(), list(chosen.values()), create_graph=differentiable)
    flat = torch.cat([each.flatten(1) for each in jacobian], dim=-1)
    return (output, flat) if differentiable else (output.detach(), flat)


def _for_each_row(parameter: Tensor, n: int) -> Tensor:
    return parameter.detach().expand(n, *parameter.shape).requires_grad_(True)


def last_layer_factors(network: nn.Module, x: Tensor) -> tuple[Tensor, Factors]:
    """A network's output (n), and the factors of its derivative in its last `nn.Linear`.

    Raises:
        SettingError: if the output is not that layer's.
    """
    layer = last_linear(network)
    entering: list[Tensor] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: entering.append(inputs[0]))
    output = network(x)
    hook.remove()
    if not entering or not torch.allclose(layer(entering[-1]), output):
        raise SettingError("the last nn.Linear of the network must give its output, but something comes after it.")
    a = entering[-1] if layer.bias is None else with_one(entering[-1])
    return output.squeeze(-1), [(a, torch.ones_like(output))]


def last_linear(network: nn.Module) -> nn.Linear:
    """The last `nn.Linear`, in the order in which the network has its layers.

    Raises:
        SettingError: if there is none.
    """
    layers = linear_layers(network)
    if not layers:
        raise SettingError('structure="last_layer" needs a network with an nn.Linear, but yours has none.')
    return layers[-1]


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    """All `nn.Linear`, in the order in which the network has its layers."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
