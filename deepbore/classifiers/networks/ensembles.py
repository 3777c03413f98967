"""Cross-entropy networks: several (`DeepEnsemble`) or one (`MLPClassifier`)."""

from torch import Tensor

from deepbore.classifiers.networks.network import (
    Loss,
    NetworkClassifier,
    NetworkFactory,
    OptimizerFactory,
    SchedulerFactory,
    Training,
)
from deepbore.classifiers.networks.stacked import Given
from deepbore.classifiers.posterior import Posterior


class DeepEnsemble(NetworkClassifier):
    """m networks that minimise cross-entropy from different initial weights; the scores are logits.

    The loss is BORE eq. 9, weighted. Upper confidence bounds explore by the spread of the members' logits
    (Lakshminarayanan et al., 2017). With labels of several columns the score is the logit of the mean probability over
    the columns. A single member is a point estimate, without a standard deviation.

    The mean of the members' logits, `posterior(points).mean`, does not rank points as the mean of their probabilities
    does, `posterior(points).probability`: a very confident member moves the first far and the second little.
    `ClassProbability` and `UpperConfidenceBound` rank by logits, `ExpectedProbability("samples")` by probabilities.

    Args:
        hidden: widths of the hidden layers.
        activation: of torch, by name, class or function; "auto" for ELU if d <= 10, else ReLU.
        network: a factory (number of features, number of outputs) -> module, or a module to copy, in place of `hidden`
            and `activation`.
        members: m >= 1.
        training: steps, learning rate, warm start, ...
        optimizer: a function of the parameters, as `partial(torch.optim.AdamW, lr=1e-3)`; None for Adam.
        lr_scheduler: a function of the optimizer, as `partial(ExponentialLR, gamma=0.99)`; see `Training.lr_interval`.
        loss: a function of scores and labels (B x k each), as `nn.BCEWithLogitsLoss()`; see `NetworkClassifier`.
        rows: maximal number of rows that an iteration learns from; None for as many as its steps can see, so that every
            row is seen in time.

    Example:
        >>> import torch
        >>> from deepbore import Real, SearchSpace
        >>> ensemble = DeepEnsemble(members=5).bind(SearchSpace({"x": Real(0, 1)}))
        >>> ensemble.posterior(torch.rand(7, 1, dtype=torch.float64)).members.shape
        torch.Size([5, 7])
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: Given = "auto",
        network: NetworkFactory | None = None,
        members: int = 5,
        training: Training | None = None,
        optimizer: OptimizerFactory | None = None,
        lr_scheduler: SchedulerFactory | None = None,
        loss: Loss | None = None,
        rows: int | None = None,
    ):
        super().__init__(hidden, activation, network, members, training, optimizer, lr_scheduler, loss, rows)
        self.capabilities = frozenset({"std", "members"} if members > 1 else ())

    def posterior(self, points: Tensor) -> Posterior:
        return self.member_posterior(points)


class MLPClassifier(NetworkClassifier):
    """One multi-layer perceptron, the classifier of BORE-MLP (BORE J.3): 2 hidden layers of 32, Adam, batch 64.

    It is a point estimate. For acquisitions that need standard deviations or samples, use a `DeepEnsemble`.

    Args:
        hidden: widths of the hidden layers.
        activation: of torch, by name, class or function; "auto" for ELU if d <= 10, else ReLU.
        network: a factory (number of features, number of outputs) -> module, or a module to copy, in place of `hidden`
            and `activation`.
        training: steps, learning rate, warm start, ...
        optimizer: a function of the parameters, as `partial(torch.optim.AdamW, lr=1e-3)`; None for Adam.
        lr_scheduler: a function of the optimizer, as `partial(ExponentialLR, gamma=0.99)`; see `Training.lr_interval`.
        loss: a function of scores and labels (B x k each), as `nn.BCEWithLogitsLoss()`; see `NetworkClassifier`.
        rows: maximal number of rows that an iteration learns from; None for as many as its steps can see, so that every
            row is seen in time.
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: Given = "auto",
        network: NetworkFactory | None = None,
        training: Training | None = None,
        optimizer: OptimizerFactory | None = None,
        lr_scheduler: SchedulerFactory | None = None,
        loss: Loss | None = None,
        rows: int | None = None,
    ):
        super().__init__(hidden, activation, network, 1, training, optimizer, lr_scheduler, loss, rows)

    def posterior(self, points: Tensor) -> Posterior:
        return self.member_posterior(points)
