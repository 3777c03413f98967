"""A user's own network, linearised in its weights: what it gives, and the derivative of that, row by row."""

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from deepbore.classifiers.linearised import Factors
from deepbore.classifiers.stacked import with_one
from deepbore.errors import SettingError

MOST_FULL = 10_000  # weights that a P x P matrix is made of: 0.8 GB


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
    if structure == "full" and (size := sum(p.numel() for p in trained.values())) > MOST_FULL:
        raise SettingError(
            f'structure="full" inverts a matrix of all weights, of {MOST_FULL} at most, but the network has {size}. '
            'Use "last_layer", "kron" or "diag".'
        )
    linear = [id(p) for layer in linear_layers(network) for p in layer.parameters()]
    if structure == "kron" and linear != [id(p) for p in trained.values()]:
        raise SettingError(
            'structure="kron" needs a network whose weights are all of nn.Linear layers, and all trained, but yours '
            'has others. Use "last_layer", "diag" or "full".'
        )
    return list(trained)


def linearised(network: nn.Module, names: list[str], structure: str, x: Tensor) -> tuple[Tensor, Factors]:
    """The network's output (n), and its derivative in the named parameters, with gradients in x.

    Args:
        network: n x e -> n x 1.
        names: as `parameters_behind` gives them.
        structure: "full", "kron", "diag" or "last_layer".
        x: features, n x e.

    Raises:
        SettingError: for a network whose Jacobian is out of reach.
    """
    if structure == "last_layer":
        return last_layer_factors(network, x)
    output, jacobian = row_jacobians(network, names, x)
    return output, [(jacobian, torch.ones_like(output)[:, None])]


def row_jacobians(network: nn.Module, names: list[str], x: Tensor) -> tuple[Tensor, Tensor]:
    """The network's output (n), and its derivative in the named parameters (n x P), both with gradients in x.

    Each row on its own, vectorised: a hundred times as fast as the derivative of the whole batch.
    """
    parameters = dict(network.named_parameters())
    chosen = {name: parameters[name].detach() for name in names}

    def output_of(chosen: dict[str, Tensor], row: Tensor) -> tuple[Tensor, Tensor]:
        output = functional_call(network, chosen, (row[None],)).squeeze()
        return output, output

    try:
        jacobian, output = vmap(grad(output_of, has_aux=True), in_dims=(None, 0))(chosen, x)
    except RuntimeError as error:
        raise SettingError(
            f'torch.func must be able to vectorise the network for this structure, but: {error}. Use "last_layer".'
        ) from error
    return output, torch.cat([jacobian[name].flatten(1) for name in names], dim=-1)


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
