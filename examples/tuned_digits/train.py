"""A training script as there are many: a Lightning network on handwritten digits. Nothing in here knows of deepbore.

python train.py
"""

import logging

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)  # a training run is a line, not a page


class Network(LightningModule):
    """64 pixels -> one hidden layer -> 10 digits."""

    def __init__(self, lr: float = 1e-3, width: int = 32, dropout: float = 0.0, weight_decay: float = 0.0):
        super().__init__()
        self.lr, self.weight_decay = lr, weight_decay
        self.net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 10))

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """The loss of a batch."""
        images, digits = batch
        return cross_entropy(self.net(images), digits)

    def validation_step(self, batch: list[Tensor]) -> None:
        """Logs loss and accuracy on images that were not trained on."""
        images, digits = batch
        logits = self.net(images)
        self.log("val_loss", cross_entropy(logits, digits))
        self.log("val_accuracy", (logits.argmax(1) == digits).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam with weight decay."""
        return torch.optim.AdamW(self.parameters(), self.lr, weight_decay=self.weight_decay)


def digits() -> list[TensorDataset]:
    """1000 images to train on, 400 to choose hyperparameters by, and 397 that are kept for the end."""
    images, labels = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    data = TensorDataset(images.float() / 16, labels)
    return random_split(data, [1000, 400, 397], torch.Generator().manual_seed(0))


def train(network: Network, batch_size: int = 64, epochs: int = 5) -> dict[str, float]:
    """One training run: loss and accuracy on the validation images, and the accuracy on those kept for the end."""
    training, validation, kept = digits()
    trainer = Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(network, DataLoader(training, batch_size, shuffle=True), DataLoader(validation, 400))
    metrics = {name: float(value) for name, value in trainer.callback_metrics.items()}
    images, labels = kept[:]
    with torch.inference_mode():
        right = network.eval().net(images).argmax(1) == labels
    return metrics | {"kept_accuracy": float(right.float().mean())}


if __name__ == "__main__":
    seed_everything(0, verbose=False)
    print(train(Network()))
