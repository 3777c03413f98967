"""Classifiers of the papers that deepbore builds on, for comparison with them."""
