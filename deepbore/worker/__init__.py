"""The code that worker processes run. Light to import: no torch."""
