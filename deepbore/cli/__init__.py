"""The command line. Light to import: each command loads what it needs."""
