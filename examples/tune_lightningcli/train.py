"""A small network on made-up data, trained by LightningCLI: `python train.py fit --config fit.yaml`.

Nothing in here knows of deepbore. To tune it, in this folder:

    deepbore tune --config fit.yaml --space space.yaml --metric val_loss --n_trials 15
"""

import torch
from lightning.pytorch import LightningDataModule, LightningModule
from lightning.pytorch.cli import LightningCLI
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset


class Network(LightningModule):
    """A multilayer perceptron, 2 inputs, 1 output."""

    def __init__(self, lr: float = 1e-3, width: int = 16, activation: str = "relu", momentum: float | None = None):
        super().__init__()
        self.lr, self.momentum = lr, momentum
        between = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]()
        self.net = nn.Sequential(nn.Linear(2, width), between, nn.Linear(width, 1))

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        """The loss of a batch."""
        x, y = batch
        return mse_loss(self.net(x), y)

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> None:
        """Logs the loss on held-out data."""
        x, y = batch
        self.log("val_loss", mse_loss(self.net(x), y))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """SGD if it has a momentum, else Adam."""
        if self.momentum is None:
            return torch.optim.Adam(self.parameters(), self.lr)
        return torch.optim.SGD(self.parameters(), self.lr, self.momentum)


class Ripples(LightningDataModule):
    """256 points of a smooth function of two numbers; a quarter is held out."""

    def __init__(self, batch_size: int = 32):
        super().__init__()
        self.batch_size = batch_size
        x = torch.rand(256, 2, generator=torch.Generator().manual_seed(0))
        self.data = TensorDataset(x, (6 * x).sin().sum(1, keepdim=True))

    def train_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        """Three quarters."""
        return DataLoader(TensorDataset(*self.data[:192]), self.batch_size, shuffle=True)

    def val_dataloader(self) -> DataLoader[tuple[Tensor, ...]]:
        """The last quarter."""
        return DataLoader(TensorDataset(*self.data[192:]), 64)


if __name__ == "__main__":
    LightningCLI(Network, Ripples)
