"""A storage for tests of shared studies."""

import pytest


@pytest.fixture
def url(tmp_path):
    """Where an SQLite storage is, or will be made."""
    return f"sqlite:///{tmp_path}/storage.db"
