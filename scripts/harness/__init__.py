"""What drives methods on problems, and keeps what was found.

job        Job: what is optimised how
ledger     what a run has found so far
running    one run, from the first evaluation to its row
pool       many runs, one process each
files      rows in files, and which jobs they leave to be done
working    jobs to rows, with a line that says how far it is
measuring  measurements that are no races: rows in one file, each made once
"""
