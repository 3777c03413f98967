"""What a run knows: configurations and their outcomes, in memory and in files."""

from deepbore.data.trial import Budget

__all__ = ["Budget"]
