"""The errors that deepbore raises on purpose: one tree, each class also one of Python's own.

Catch `DeepBoreError` for all of them, or `ValueError`, `RuntimeError`, ... as usual. Every message names the rule, the
value that broke it and the way out. And the category of warnings about former names.
"""

from deepbore.text import visible


class DeepBoreError(Exception):
    """The root of the tree. In its message control characters, as a received file may have them, are escaped."""

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n\t")


class SpaceError(DeepBoreError, ValueError):
    """A search space, or one of its parameters, is declared wrongly."""


class PointError(DeepBoreError, ValueError):
    """A configuration does not belong to the search space."""


class TableError(DeepBoreError, ValueError):
    """A file of earlier results is no table of the search space."""


class ValueTypeError(DeepBoreError, TypeError):
    """An objective value is not a number."""


class SettingError(DeepBoreError, ValueError):
    """A setting is outside its range, or two settings contradict each other."""


class ShapeError(DeepBoreError, ValueError):
    """A tensor does not have the shape that its interface states."""


class TrialError(DeepBoreError, RuntimeError):
    """A trial is unknown, or is told a second time."""


class NoBestTrial(DeepBoreError, ValueError):
    """The best of a study was asked for, and there is none yet."""


class StudyRunning(DeepBoreError, RuntimeError):
    """A call that a study can't take while `optimize` runs, or another call is at work in the same thread."""


class SpaceExhausted(DeepBoreError, RuntimeError):
    """Every configuration of a finite space has been evaluated or is pending."""


class EvaluatorError(DeepBoreError, RuntimeError):
    """Trials can't be evaluated: what evaluates them is broken for good, or at work for another run."""


class ObjectiveError(DeepBoreError, RuntimeError):
    """An objective gives no values: it always fails, or returns what is no value."""


class TrialPruned(DeepBoreError, RuntimeError):
    """An objective ends its trial early, because it is not worth going on: no failure, but graded by its reports."""


class TrainingFailed(DeepBoreError, RuntimeError):
    """A training run in a process of its own has given no value."""


class NeverLogged(TrainingFailed):
    """A training run has ended well, and has no such metric: neither will any other."""


class RankError(DeepBoreError, RuntimeError):
    """A process of a distributed run has lost another."""


class JournalError(DeepBoreError, RuntimeError):
    """A journal is damaged, belongs to another study, or cannot be written."""


class JournalInUse(JournalError):
    """Another process writes the journal."""


class StudyLed(DeepBoreError, RuntimeError):
    """Another process leads the study of a storage."""


class MissingPackage(DeepBoreError, ImportError):
    """An optional package is needed for what was asked."""


class DeprecatedUse(DeprecationWarning):
    """A former name or setting of deepbore, which works as before; the message names the new one.

    To find them in a program of yours: `warnings.simplefilter("error", deepbore.errors.DeprecatedUse)`.
    """
