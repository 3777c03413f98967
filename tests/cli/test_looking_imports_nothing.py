"""Looking at a run imports no module but deepbore's, whatever its configuration names."""

import json
import sys

from deepbore import Real, SearchSpace, Study
from deepbore.cli.load import load_run


def kept_by_version_0_1(folder):
    """A run directory whose journal has no recipe, so that its configuration says which parts it has."""
    study = Study(SearchSpace({"x": Real(0, 1)}), journal=folder / "journal.jsonl")
    (trial,) = study.ask()
    study.tell(trial, 1.0)
    study.close()
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    kept = [{name: value for name, value in line.items() if name not in ("crc", "id", "recipe")} for line in lines]
    kept[0] |= {"version": 1, "direction": kept[0].pop("directions")[0]}
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))


def test_a_function_that_a_configuration_names_is_not_imported(tmp_path, monkeypatch, caplog):
    kept_by_version_0_1(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "not_ours.py").write_text("def network(features, outputs):\n    return None\n")
    (tmp_path / "config.yaml").write_text(
        "model: {class_path: deepbore.classifiers.MLPClassifier, init_args: {network: not_ours.network}}"
    )
    assert type(load_run(tmp_path).classifier).__name__ == "KernelPLS"
    assert "not_ours" not in sys.modules
    assert "not_ours.network is not a class of deepbore" in caplog.text
