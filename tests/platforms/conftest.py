"""The simulations change the process that imports them."""

collect_ignore = ["as_elsewhere.py", "as_macos.py", "as_windows.py"]
