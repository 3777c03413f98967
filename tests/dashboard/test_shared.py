"""A shared study in an Optuna storage is shown as a run."""

import pytest

optuna = pytest.importorskip("optuna")

from deepbore.dashboard.content import Content  # noqa: E402
from deepbore.dashboard.runs import row_of  # noqa: E402
from deepbore.dashboard.shared import studies_in  # noqa: E402
from deepbore.errors import SettingError  # noqa: E402


def objective(trial):
    x, kind = trial.suggest_float("x", 0, 1), trial.suggest_categorical("kind", ["a", "b", None])
    trial.suggest_int("n", 1, 8)
    if trial.number == 2:
        raise optuna.TrialPruned
    if trial.number == 3:
        return float("nan")
    trial.report(x, 1)
    return x + (kind == "a")


@pytest.mark.usefixtures("quiet_optuna")
def test_a_study_is_a_run_that_goes_on(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(study_name="<b>mine</b>", storage=url)
    study.optimize(objective, 6)
    (entry,) = studies_in(url)
    entry.look()
    assert not entry.error
    row = row_of(entry)
    assert row["name"] == "<b>mine</b>"
    assert row["trials"] == 6
    assert row["value"] == study.best_value
    assert row["counts"] == {"failed": 1, "pruned": 1}
    assert row["state"] == "running"
    assert [trial.params for trial in entry.ledger.trials] == [trial.params for trial in study.trials]
    assert "history" in Content(entry).news([])
    study.optimize(objective, 1)
    entry._looked = 0.0
    entry.look()
    assert row_of(entry)["trials"] == 7


@pytest.mark.usefixtures("quiet_optuna")
def test_an_error_of_the_storage_says_nothing_of_its_address(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/study.db"
    optuna.create_study(study_name="mine", storage=url)
    (entry,) = studies_in(url)

    def fail(*_args, **_named):
        raise RuntimeError("postgresql://me:secret@db is away")

    monkeypatch.setattr(entry._storage, "get_all_trials", fail)
    entry.look()
    assert "RuntimeError" in entry.error
    assert "secret" not in entry.error


@pytest.mark.usefixtures("quiet_optuna")
@pytest.mark.parametrize("url", ["sqlite:///{}/nothing.db", "sqlite:///{}/no/folder.db", "nonsense://me:secret@x"])
def test_a_storage_that_is_none_is_refused_in_words(tmp_path, url):
    with pytest.raises(SettingError, match="storage") as refused:
        studies_in(url.format(tmp_path))
    assert "secret" not in str(refused.value)
