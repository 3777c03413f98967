"""`python -m deepbore.cli` is `deepbore`."""

import os
import sys

if sys.argv[1:2] and sys.argv[1] not in ("fit", "tune"):  # a folder that is only looked at gives no modules
    sys.path[:] = [entry for entry in sys.path if entry not in ("", os.getcwd())]

from deepbore.cli.main import main

sys.exit(main())
