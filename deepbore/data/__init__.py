"""What a run knows: configurations and their outcomes, in memory and in files."""
