"""Components and their old names: `deepbore.component` and `deepbore.validation` of version 0.2."""

import importlib

import pytest

from deepbore import component, validation
from deepbore.acquisition import ClassProbability, UpperConfidenceBound
from deepbore.component import describe, make
from deepbore.errors import SettingError


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        ("parts", "P" + "art", component.Component),
        ("parts", "describe", component.describe),
        ("checks", "whole", validation.whole),
    ],
)
def test_old_modules_give_the_new_objects_with_a_warning(module, name, value):
    old = importlib.import_module("deepbore." + module)
    with pytest.warns(DeprecationWarning, match=rf"is now {value.__module__}.{value.__name__}"):
        assert getattr(old, name) is value
    with pytest.raises(AttributeError):
        _ = old.no_such_name


def test_a_component_is_made_again_from_its_description():
    again = make(describe(UpperConfidenceBound(2.0)), UpperConfidenceBound)
    assert type(again) is UpperConfidenceBound
    assert again.kappa == 2.0


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("os.path.join", "not a class of deepbore"),
        ("deepbore.acquisition.Nowhere", "must be a ClassProbability"),
        ("deepbore.acquisition.UpperConfidenceBound", "must be a ClassProbability"),
    ],
)
def test_a_description_of_another_class_is_refused(path, says):
    with pytest.raises(SettingError, match=says):
        make({"class_path": path, "init_args": {}}, ClassProbability)
