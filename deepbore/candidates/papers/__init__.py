"""Optimisers of the papers that no default uses."""
