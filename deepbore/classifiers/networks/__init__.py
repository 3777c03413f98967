"""Classifiers made of neural networks, trained warm by a fixed number of gradient steps an iteration."""
