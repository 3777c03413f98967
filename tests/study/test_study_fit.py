"""What `Study.fit` changes, and what it leaves."""

import pytest
import torch

from deepbore import EmphasiseChanges, Study, ThresholdLabels
from deepbore.errors import SettingError
from plane import SQUARE
from tried import some_bowl


def told(**settings):
    study = Study(SQUARE, seed=0, **settings)
    study.add(*some_bowl(20, 0))
    return study


@pytest.mark.parametrize("epochs", [0, -1, None, 1.5])
def test_epochs_are_a_whole_number_from_one_on(epochs):
    with pytest.raises(SettingError, match="epochs"):
        told().fit(epochs)


def test_a_fit_leaves_what_labels_remember_and_the_stream_of_the_run():
    study = told(labels=EmphasiseChanges(ThresholdLabels(0.3)))
    before, stream = study.state.recipe.labels.state_dict(), study.state.generator.get_state()
    study.fit(1)
    assert str(study.state.recipe.labels.state_dict()) == str(before)
    assert torch.equal(study.state.generator.get_state(), stream)
    assert study.classifier.ready


def test_a_recommendation_after_a_fit_is_found_anew(monkeypatch):
    study, looks = told(), []
    monkeypatch.setattr("deepbore.study.study.recommend", lambda state: looks.append(len(state.observations)) or 3)
    for _ in range(2):
        assert study.recommended.id == 3
    assert looks == [20]
    study.fit(1)
    assert study.recommended.id == 3
    assert looks == [20, 20]
    study.tell(study.ask()[0], 1.0)
    assert study.recommended.id == 3
    assert looks == [20, 20, 21]
