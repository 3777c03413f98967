"""What all tests need."""

import signal

# Shells have processes in the background ignore Ctrl-C, and these hand that on: some tests are about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["plugin_package"]  # a package of its own, with tests of its own: see `test_extending.py`
