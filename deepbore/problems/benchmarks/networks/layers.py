"""From a configuration to a network."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from deepbore.problems.benchmarks.networks.data import Split
from deepbore.space import Params

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "leaky": nn.LeakyReLU,
    "sigmoid": nn.Sigmoid,
    "softplus": nn.Softplus,
    "softsign": nn.Softsign,
    "mish": nn.Mish,
    "relu6": nn.ReLU6,
    "celu": nn.CELU,
    "hardtanh": nn.Hardtanh,
    "hardswish": nn.Hardswish,
    "hardsigmoid": nn.Hardsigmoid,
    "tanhshrink": nn.Tanhshrink,
    "softshrink": nn.Softshrink,
    "hardshrink": nn.Hardshrink,
    "logsigmoid": nn.LogSigmoid,
}


def activation(params: Params) -> nn.Module:
    """The activation of a configuration, "relu" if it has none."""
    return ACTIVATIONS[params.get("activation", "relu")]()


def norm(params: Params, width: int, image: bool = False) -> list[nn.Module]:
    """The normalisation of a configuration, if any, after a layer of this width."""
    kind = params.get("norm", "none")
    if kind == "batch":
        momentum = params.get("norm_momentum", 0.1)
        return [nn.BatchNorm2d(width, momentum=momentum) if image else nn.BatchNorm1d(width, momentum=momentum)]
    if kind == "layer":
        return [nn.GroupNorm(1, width)]
    return []


def perceptron(params: Params, data: Split) -> nn.Module:
    """Fully connected layers: width, depth, activation, norm and dropout."""
    size = math.prod(data.x.shape[1:])
    layers: list[nn.Module] = [nn.Flatten()]
    for _ in range(params.get("depth", 2)):
        layers += [nn.Linear(size, params["width"]), *norm(params, params["width"]), activation(params)]
        layers += [nn.Dropout(params["dropout"])] if "dropout" in params else []
        size = params["width"]
    return nn.Sequential(*layers, nn.Linear(size, data.outputs))


def convolutional(params: Params, data: Split) -> nn.Module:
    """Two convolutions and a pooling: channels, kernel, norm, pooling and dropout."""
    channels, kernel = params["channels"], params["kernel"]
    layers: list[nn.Module] = []
    before = data.x.shape[1]
    for after in (channels, 2 * channels):
        layers += [nn.Conv2d(before, after, kernel, padding=kernel // 2), *norm(params, after, image=True)]
        layers += [activation(params), nn.MaxPool2d(2) if params["pooling"] == "max" else nn.AvgPool2d(2)]
        before = after
    side = data.x.shape[-1] // 4
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Dropout(params["dropout"]), nn.Linear(before * side**2, data.outputs)
    )


class Sequence(nn.Module):
    """A network of sequences: recurrent, convolutional or by attention."""

    def __init__(self, params: Params, data: Split):
        super().__init__()
        self.kind, width = params["cell"], params["width"]
        tokens = not data.x.is_floating_point()
        self.into = nn.Embedding(int(data.x.max()) + 1, width) if tokens else nn.Linear(data.x.shape[-1], width)
        self.places = nn.Parameter(torch.randn(data.x.shape[1], width) / 10)
        if self.kind in ("rnn", "gru", "lstm"):
            cells = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
            self.body = cells[self.kind](width, width, num_layers=params["layers"], batch_first=True)
            if "forget_bias" in params:
                for name, weight in self.body.named_parameters():
                    if "bias_hh" in name:
                        nn.init.constant_(weight[width : 2 * width], params["forget_bias"])
        elif self.kind == "convolution":
            kernel = params["kernel"]
            self.body = nn.Sequential(
                nn.Conv1d(width, width, kernel, padding=kernel // 2),
                nn.ReLU(),
                nn.Conv1d(width, width, kernel, padding=kernel // 2),
                nn.ReLU(),
            )
        else:
            heads = params["heads"]
            self.body = nn.ModuleList(
                nn.TransformerEncoderLayer(
                    width, heads, 2 * width, params["dropout"], batch_first=True, norm_first=True
                )
                for _ in range(params["layers"])
            )
        self.out = nn.Linear(width, data.outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Sequences (n x t x f, or n x t tokens) -> outputs (n x outputs)."""
        hidden: Tensor = self.into(x)
        if self.kind == "convolution":
            hidden = self.body(hidden.mT).amax(-1)
        elif self.kind == "attention":
            hidden = hidden + self.places
            for layer in self.body:
                hidden = layer(hidden)
            hidden = hidden[:, -1]
        else:
            hidden = self.body(hidden)[0][:, -1]
        outputs: Tensor = self.out(hidden)
        return outputs


class Encoded(nn.Module):
    """A perceptron on numbers that are encoded first: by Fourier features, or with sines for activations."""

    frequencies: Tensor  # of Fourier features

    def __init__(self, params: Params, data: Split):
        super().__init__()
        self.kind, width, size = params["encoding"], params["width"], data.x.shape[1]
        self.omega = params.get("omega", 1.0)
        if self.kind == "fourier":
            frequencies = params["scale"] * torch.randn(size, params["features"])
            self.register_buffer("frequencies", frequencies)
            size = 2 * params["features"]
        layers = [nn.Linear(size, width), nn.Linear(width, width), nn.Linear(width, data.outputs)]
        self.layers = nn.ModuleList(layers)
        if self.kind == "sine":
            for number, layer in enumerate(layers):
                bound = 1 / size if number == 0 else math.sqrt(6 / width) / self.omega
                nn.init.uniform_(layer.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """n x 1 -> n x outputs."""
        if self.kind == "fourier":
            x = torch.cat([(x @ self.frequencies).sin(), (x @ self.frequencies).cos()], -1)
        for layer in self.layers[:-1]:
            x = (self.omega * layer(x)).sin() if self.kind == "sine" else layer(x).relu()
        outputs: Tensor = self.layers[-1](x)
        return outputs


class Factors(nn.Module):
    """Ratings as products of factors of users and items, plus biases."""

    def __init__(self, params: Params, data: Split):
        super().__init__()
        sizes = [int(column.max()) + 1 for column in torch.cat([data.x, data.held_x]).unbind(1)]
        factors = [nn.Embedding(size, params["rank"]) for size in sizes]
        biases = [nn.Embedding(size, 1) for size in sizes]
        self.factors, self.biases = nn.ModuleList(factors), nn.ModuleList(biases)
        for each in factors:
            nn.init.normal_(each.weight, std=params["initial"])
        for each in biases:
            nn.init.zeros_(each.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Pairs (n x 2) -> ratings (n x 1)."""
        users, items = (each(column) for each, column in zip(self.factors, x.unbind(1), strict=True))
        biases = sum(each(column) for each, column in zip(self.biases, x.unbind(1), strict=True))
        ratings: Tensor = (users * items).sum(-1, keepdim=True) + biases
        return ratings


class Autoencoder(nn.Module):
    """Rows through a narrow layer and back."""

    def __init__(self, params: Params, data: Split):
        super().__init__()
        size, width = data.x.shape[1], params["width"]
        self.layers = nn.Sequential(
            nn.Dropout(params["dropout"]),
            nn.Linear(size, width),
            activation(params),
            nn.Linear(width, params["code"]),
            *([nn.Linear(params["code"], size)] if params["decoder"] == "linear" else []),
            *(
                [nn.Linear(params["code"], width), activation(params), nn.Linear(width, size)]
                if params["decoder"] == "deep"
                else []
            ),
        )

    def forward(self, x: Tensor) -> Tensor:
        """n x f -> n x f."""
        outputs: Tensor = self.layers(x)
        return outputs
