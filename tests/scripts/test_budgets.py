"""The measurement of budgets and pruners: what the documentation says of it is what the script prints."""

import budgets
from peers.by_budget import METHODS
from processes import ROOT


def test_the_tables_of_the_documentation_are_the_scripts():
    shown = budgets.tables(ROOT / "docs" / "results" / "budgets.jsonl")
    page = (ROOT / "docs" / "outcomes.md").read_text()
    assert budgets.NAMES.keys() == METHODS.keys()
    for table in shown.split("\n\n"):
        assert table in page
