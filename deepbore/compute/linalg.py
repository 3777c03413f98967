"""What torch raises where a matrix has no factor, by a name that type checkers know."""

from torch.linalg import LinAlgError  # type: ignore[attr-defined]  # torch's types lack it

__all__ = ["LinAlgError"]
