"""The five jobs of a fresh environment: the cheapest of them, and what the documentation says of all."""

import json

import pytest

import five_jobs
from processes import ROOT


def test_the_times_in_the_documentation_are_the_scripts():
    found = json.loads((ROOT / "docs" / "results" / "five_jobs.json").read_text())
    assert list(found["seconds"]) == [job.__doc__.strip(".") for job in five_jobs.JOBS]
    assert five_jobs.table(found) in (ROOT / "docs" / "examples.md").read_text()


@pytest.mark.slow
def test_a_run_from_yaml_is_killed_and_goes_on_with_the_wheel():
    found = five_jobs.measured((five_jobs.yaml_run,))
    assert list(found["seconds"]) == ["A YAML run, killed and resumed"]
