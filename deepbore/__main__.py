"""`python -m deepbore` is `deepbore`."""

import deepbore.cli.__main__  # noqa: F401  # runs it
