"""What a run knows: configurations and their outcomes, in memory and in files."""

from deepbore.data.budget import Budget

__all__ = ["Budget"]
