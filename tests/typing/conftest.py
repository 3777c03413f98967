"""The programs are looked at, and not run."""

collect_ignore = ["users_program.py", "mistaken_program.py"]
