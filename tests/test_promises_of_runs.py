"""What docstrings and guides promise of runs, where somebody has relied on it in vain."""

import pytest

from deepbore import ProcessEvaluator, Real, SearchSpace, Study
from deepbore.data.outcomes import Status
from deepbore.errors import SettingError

LINE = SearchSpace({"x": Real(0, 1)})


def statuses(study):
    return [trial.status for trial in study.trials]


# --- evaluators ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_process_is_left")
def test_a_worker_that_comes_later_and_cannot_load_the_objective_ends_the_run(tmp_path, monkeypatch):
    module = tmp_path / "edited_meanwhile.py"
    module.write_text('import time\ndef f(p):\n    time.sleep(60 * (p["x"] > 0.9))\n    return p["x"]\n')
    monkeypatch.syspath_prepend(tmp_path)
    from edited_meanwhile import f

    def edit(study, trial):
        module.write_text('def f(p):\n    return p["x"\n')

    study = Study(LINE, seed=0)
    for x in (0.1, 0.95, 0.2):
        study.enqueue({"x": x})
    evaluator = ProcessEvaluator(f, workers=1, timeout=0.5)
    with pytest.warns(RuntimeWarning, match="timed out"), pytest.raises(SettingError, match="import the objective"):
        study.optimize(evaluator, 12, callbacks=[edit])
    assert statuses(study)[:3] == [Status.COMPLETE, Status.FAILED, Status.PENDING]
    assert Status.FAILED not in statuses(study)[2:]
    module.write_text('def f(p):\n    return p["x"]\n')
    study.optimize(evaluator, 0)  # what was left
    assert Status.PENDING not in statuses(study)
