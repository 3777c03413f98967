"""Searches of the papers that are no part of any default."""
