"""What a page says of the classifier."""

import pytest
from lightning.pytorch import Trainer

from deepbore import Categorical, Real, SearchSpace, Study, plots as pictures
from deepbore.plots.page.learned import learned_sections
from deepbore.plots.sources import record_of
from deepbore.study.study import metrics_of
from drawn_studies import CUBE, MIXED, NAN
from pictured import told_at_random
from trainers import QUIET


@pytest.mark.slow
@pytest.mark.parametrize(
    "space", [MIXED, CUBE, SearchSpace({"x": Real(1, 100, log=True)})], ids=["mixed", "cube", "line"]
)
def test_a_report_of_a_study_says_what_its_classifier_has_learned(space):
    study = told_at_random(space, [float(k % 7) if k % 5 else NAN for k in range(24)])
    page = pictures.report(study, title="mine", facts={"when": "today"}, configuration="seed: 0")
    for said in (
        "<h1>mine</h1>",
        "today",
        "seed: 0",
        "Slices: predicted value",
        "Predictions of unseen trials",
        "Failures",
    ):
        assert said in page
    assert ("Importance" in page) == ("Pairs: predicted value" in page) == (len(space) > 1)
    assert len(page) < 2_300_000


def test_a_study_and_its_journal_have_one_record(tmp_path):
    from deepbore.data.replay import read_record

    study = told_at_random(MIXED, [1.0, NAN, 2.0], journal=tmp_path / "run.jsonl")
    assert record_of(study).trials == read_record(tmp_path / "run.jsonl").trials
    assert record_of(study).space == read_record(tmp_path / "run.jsonl").space


def test_what_users_write_is_escaped():
    evil = "<script>alert('x')</script>&"
    space = SearchSpace({evil: Categorical([evil, "b"]), "x": Real(0, 1)})
    page = pictures.report(told_at_random(space, [2.0, 1.0, 3.0]), title=evil, facts={evil: evil}, configuration=evil)
    assert "<script>alert" not in page


@pytest.mark.parametrize("values", [[], [NAN, NAN], [1.0], [1.0, 1.0]])
def test_a_report_of_a_run_without_anything_learned_says_so(values):
    page = pictures.report(told_at_random(MIXED, values))
    assert "nothing to learn" in page or "nothing to tell apart" in page
    assert "<h2>History</h2>" in page


def test_each_objective_has_slices_in_its_own_values():
    study = Study(CUBE, seed=0, directions={"loss": "minimize", "speed": "maximize"})
    study.optimize(lambda p: {"loss": sum(p.values()), "speed": 100 * min(p.values())}, 12, progress=False)
    study.fit()
    slices = {each.title: each for each in learned_sections(study) if each.title.startswith("Slices")}
    assert list(slices) == ["Slices: predicted loss", "Slices: predicted speed"]
    for (_, section), j in zip(slices.items(), (0, 1), strict=True):
        trials = section.charts[0].data[0]
        assert trials["y"] == pytest.approx([study.trials[row].values[j] for row in trials["trials"]])


def test_forecasts_of_a_run_with_a_trainer_are_on_the_page_and_those_of_others_are_none(tmp_path):
    study = Study(CUBE, seed=0, n_initial=5, journal=tmp_path / "run.jsonl")
    study.optimize(lambda p: sum(p.values()), 25, trainer=Trainer(accelerator="cpu", **QUIET))
    (section,) = [each for each in learned_sections(study) if each.title == "Forecasts of proposals"]
    metrics = study.state.metrics
    known = len(metrics.forecasts[1])
    assert 10 <= known <= 20
    assert f"latest {known} proposals" in section.says
    for value in (metrics.brier_score, *metrics.of_forecasts.values()):
        assert f"{value:.3f}" in section.says
    shown = section.charts[0].data[-1]
    assert sum(int(each.split()[0]) for each in shown["hovertext"]) == known
    study.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    loaded.fit()
    kept = metrics_of(loaded).forecasts[1].tolist()  # the snapshot is from before the last trial was told
    assert kept == metrics.forecasts[1].tolist()[: len(kept)]
    assert len(kept) >= known - 1
    assert f"latest {len(kept)} proposals" in pictures.report(loaded)
    (tmp_path / "run.jsonl.ckpt").write_bytes(b"")
    assert metrics_of(Study.load(tmp_path / "run.jsonl")) is None
    alone = told_at_random(CUBE, [1.0, 2.0, 3.0])
    assert not [each for each in learned_sections(alone) if each.title == "Forecasts of proposals"]
