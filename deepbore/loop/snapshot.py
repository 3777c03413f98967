"""`Snapshot`: what a run knows beyond its journal, in a file beside it, so that it goes on with the same proposals."""

import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.errors import JournalError

DAMAGED = (OSError, RuntimeError, pickle.UnpicklingError, ValueError, TypeError, LookupError, AttributeError, EOFError)


@dataclass(frozen=True)
class Snapshot:
    """The state of a run when it has chosen its next points, written before the journal says that they are asked.

    So wherever a process dies, the journal is at most these points behind. Tensors and numbers only: it is read
    without running any code (torch's `weights_only`).

    Attributes:
        asked: trials asked for before these points.
        points: what is asked next, q x d.
        generator: state of the stream of random numbers.
        classifier: name of the class.
        weights: its state dict; None before it is bound to a space.
        optimizers: their state dicts.
    """

    asked: int
    points: Tensor
    generator: Tensor
    classifier: str
    weights: dict[str, Any] | None
    optimizers: list[dict[str, Any]]

    @classmethod
    def take(cls, asked: int, points: Tensor, generator: torch.Generator, classifier: Classifier) -> "Snapshot":
        """The state as it is now."""
        bound = classifier.space is not None
        weights = dict(classifier.state_dict()) if bound else None
        optimizers = [each.state_dict() for each in _optimizers(classifier)] if bound else []
        return cls(asked, points, generator.get_state(), type(classifier).__name__, weights, optimizers)

    def give(self, generator: torch.Generator, classifier: Classifier) -> None:
        """Puts a classifier, bound to its space, and the stream into this state.

        Raises:
            JournalError: if the classifier is another.
        """
        if self.classifier != type(classifier).__name__:
            raise JournalError(f"it is of a {self.classifier}, not of a {type(classifier).__name__}")
        try:
            if self.weights is not None:
                classifier.load_state_dict(self.weights)
                for optimizer, state in zip(_optimizers(classifier), self.optimizers, strict=True):
                    optimizer.load_state_dict(state)
            generator.set_state(self.generator)
        except DAMAGED as error:
            raise JournalError(f"it does not fit the {self.classifier}: {error}") from error

    def save(self, journal: Path) -> None:
        """Writes it beside a journal, in the place of the one before, whole or not at all.

        Raises:
            JournalError: if it can't be written.
        """
        path = beside(journal)
        half = path.with_suffix(".ckpt.part")
        try:
            with half.open("wb") as file:
                torch.save(vars(self), file)
                file.flush()
                os.fsync(file.fileno())
            half.replace(path)
        except (OSError, RuntimeError) as error:
            raise JournalError(f"{path} can't be written ({error}). Free the disk or name another journal.") from error

    @classmethod
    def load(cls, journal: Path) -> "Snapshot":
        """The one beside a journal.

        Raises:
            JournalError: if it is missing or damaged.
        """
        path = beside(journal)
        if not path.exists():
            raise JournalError("it is missing")
        try:
            snapshot = cls(**torch.load(path, weights_only=True, map_location="cpu"))
            if not (isinstance(snapshot.asked, int) and isinstance(snapshot.points, Tensor)):
                raise TypeError("no snapshot")
        except DAMAGED as error:
            raise JournalError(f"it is damaged ({type(error).__name__})") from error
        return snapshot


def beside(journal: Path) -> Path:
    """The file of a journal's snapshot: run.jsonl -> run.ckpt."""
    return journal.with_suffix(".ckpt")


def _optimizers(classifier: Classifier) -> list[torch.optim.Optimizer]:
    made = classifier.configure_optimizers()
    return list(made) if isinstance(made, list) else [made]
