"""Classifiers of neural networks, trained from warm weights by a fixed number of gradient steps per iteration."""
