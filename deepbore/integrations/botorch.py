"""A classifier inside BoTorch: its acquisitions, for one point or several, and its optimisers."""

from deepbore.acquisition.botorch import BoTorchAcquisition, BoTorchClassifier, EveryMember, joint_acquisition

__all__ = ["BoTorchAcquisition", "BoTorchClassifier", "EveryMember", "joint_acquisition"]
