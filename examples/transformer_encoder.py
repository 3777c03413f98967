"""A transformer reads sequences, trained by a Lightning Trainer: AdamW, a warm-up of the learning rate, clipping.

    python examples/transformer_encoder.py --trials 100

The order of ten jobs on one machine is a sequence of priorities; a change to the next job costs the more the more the
two differ. Attention compares each job with all others.
"""

import argparse
from functools import partial

import torch
from lightning.pytorch import Trainer
from torch import Tensor, nn

from deepbore import DeepEnsemble, Real, Study, Training

JOBS = torch.rand(10, 3, generator=torch.Generator().manual_seed(0))


class Transformer(nn.Module):
    """One layer of attention over the jobs, each described by its priority and what it is."""

    def __init__(self, features: int, outputs: int):
        super().__init__()
        assert features == len(JOBS)
        self.register_buffer("jobs", JOBS)
        self.enter = nn.Linear(1 + JOBS.shape[1], 16)
        self.attention = nn.TransformerEncoderLayer(16, nhead=2, dim_feedforward=32, dropout=0.0, batch_first=True)
        self.score = nn.Linear(16, outputs)

    def forward(self, x: Tensor) -> Tensor:
        tokens = torch.cat([x[..., None], self.jobs.expand(len(x), -1, -1)], dim=-1)
        score: Tensor = self.score(self.attention(self.enter(tokens)).mean(-2))
        return score


def objective(params: dict[str, float]) -> float:
    """The cost of changing from each job to the next."""
    order = JOBS[torch.tensor(list(params.values())).argsort()]
    return float((order[1:] - order[:-1]).norm(dim=-1).sum())


def main() -> None:
    """Looks for the cheapest order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100)
    n_trials = parser.parse_args().trials

    head = DeepEnsemble(
        network=Transformer,
        members=2,
        optimizer=partial(torch.optim.AdamW, lr=3e-3),
        lr_scheduler=partial(torch.optim.lr_scheduler.LinearLR, start_factor=0.1, total_iters=100),
        training=Training(steps=20, lr_interval="step"),
    )
    study = Study({f"job_{n}": Real(0, 1) for n in range(len(JOBS))}, classifier=head, n_initial=20, seed=0)
    quiet = dict.fromkeys(["logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"], False)
    trainer = Trainer(accelerator="cpu", max_epochs=-1, gradient_clip_val=1.0, **quiet)  # type: ignore[arg-type]
    study.optimize(objective, n_trials, trainer=trainer)
    print(f"cost {study.best_value:.2f} after {len(study.trials)} orders")


if __name__ == "__main__":
    main()
