"""What `scripts/report_benchmark.py` is made of.

rows         the runs in the files of results
facts        what is known of each problem: suite, dimension, half, best possible value
regrets      from values to regrets: what is subtracted, and below what all regrets count the same
intervals    means over problems with their intervals, and the rule by which one is ahead
comparison   methods at one number of evaluations: ranks, ratios of regrets, wins, targets reached
tables       Markdown tables of comparisons
sections     which runs are compared with each other: of one suite, dimension, half and number of workers
section      the tables of one of them
runs_table   the methods' versions, and the commands that make the runs
ablation     the page for variants of one method
pages        docs/results.md, a page for each suite, and the table of docs/compared.md
pictures     curves of the share of targets reached
"""

from reporting import intervals as bootstrap  # its former name  # noqa: F401
