"""The loop: relabel, train, propose, evaluate, record."""
