"""A classifier inside BoTorch, for BoTorch's acquisitions and optimisers."""

from deepbore.acquisition.botorch import BoTorchAcquisition, BoTorchClassifier, EveryMember, joint_acquisition

__all__ = ["BoTorchAcquisition", "BoTorchClassifier", "EveryMember", "joint_acquisition"]
