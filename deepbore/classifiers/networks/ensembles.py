"""Cross-entropy networks: one (`MLPClassifier`) or several (`DeepEnsemble`)."""

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from deepbore.classifiers.networks.network import NetworkClassifier, NetworkFactory, Training
from deepbore.classifiers.posterior import Posterior, of_members


class DeepEnsemble(NetworkClassifier):
    """m networks that minimise cross-entropy from different initial weights; their scores are logits.

    The loss is BORE eq. 9, weighted; the spread of the members' logits is what upper confidence bounds explore by
    (Lakshminarayanan et al., 2017). With labels of several columns the score is the logit of the mean probability over
    the columns. One member alone is a point estimate, without a deviation.

    The mean of the members' logits, `posterior(points).mean`, does not rank points as the mean of their probabilities
    does, `posterior(points).probability`: a member that is very sure moves the first far and the second little.
    `ClassProbability` and `UpperConfidenceBound` rank by logits, `ExpectedProbability("samples")` by probabilities.

    Args:
        hidden: widths of the hidden layers.
        activation: "elu", "relu", "tanh", or "auto" (ELU for d <= 10, else ReLU).
        network: a factory (number of features, number of outputs) -> module, in place of `hidden` and `activation`.
        members: m >= 1.
        training: steps, learning rate, warm start, ...

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
        activation: str = "auto",
        network: NetworkFactory | None = None,
        members: int = 5,
        training: Training | None = None,
    ):
        super().__init__(hidden, activation, network, members, training)
        self.capabilities = frozenset({"std", "members"} if members > 1 else ())

    def loss(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        losses = binary_cross_entropy_with_logits(outputs, z.expand_as(outputs), reduction="none")
        return (losses * weight[:, None]).mean((1, 2)).sum()

    def loss_gradient(self, outputs: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        return (outputs.sigmoid() - z) * (weight[:, None] / z.numel())

    def posterior(self, points: Tensor) -> Posterior:
        self.check_points(points)
        return of_members(self._scores(self.encode(points)), self.link, type(self).__name__)

    def _scores(self, x: Tensor) -> Tensor:
        """Features (n x e) -> logits of every member or sample (m x n)."""
        outputs = self._outputs(x)
        if outputs.shape[-1] == 1:  # to the last digit, and sooner
            return outputs.squeeze(-1)
        return self.link.score_of_mean(outputs, -1)


class MLPClassifier(DeepEnsemble):
    """One multi-layer perceptron, the classifier of BORE-MLP (BORE J.3): 2 hidden layers of 32, Adam, batch 64.

    It is a point estimate: where an acquisition needs deviations or samples, use a `DeepEnsemble`.

    Args:
        hidden: widths of the hidden layers.
        activation: "elu", "relu", "tanh", or "auto" (ELU for d <= 10, else ReLU).
        network: a factory (number of features, number of outputs) -> module, in place of `hidden` and `activation`.
        training: steps, learning rate, warm start, ...
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (32, 32),
        activation: str = "auto",
        network: NetworkFactory | None = None,
        training: Training | None = None,
    ):
        super().__init__(hidden, activation, network, 1, training)
