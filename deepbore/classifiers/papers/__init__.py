"""Classifiers of the papers behind deepbore, for comparison."""
