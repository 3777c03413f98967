"""What a worker process needs. Light to import: no torch."""
