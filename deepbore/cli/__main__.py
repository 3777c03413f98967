"""`python -m deepbore.cli` is `deepbore`."""

import sys

from deepbore.cli.main import main

sys.exit(main())
