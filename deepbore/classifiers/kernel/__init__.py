"""Probabilistic least squares with kernels."""
