"""A space as a box."""

import pytest
import torch

from deepbore import Categorical, Ordinal, Real, SearchSpace, Study
from deepbore.candidates import LocalSearch, RelaxedSearch
from deepbore.classifiers import MLPClassifier, Relaxed
from deepbore.space.relaxation import Relaxation
from deepbore.testing import TOY_SPACES


@pytest.mark.parametrize("space", TOY_SPACES)
def test_a_space_and_its_box_are_the_same_configurations(space):
    relaxation = Relaxation(TOY_SPACES[space])
    points = TOY_SPACES[space].points.sample(200, torch.Generator().manual_seed(0))
    vectors = relaxation.vectors(points)
    assert vectors.shape == (200, len(relaxation.box))
    assert torch.allclose(relaxation.points(vectors), points)
    nudged = relaxation.points((vectors + 0.04 * torch.rand(vectors.shape, dtype=torch.float64)).clamp(0, 1))
    levels = [c for c in range(len(TOY_SPACES[space])) if c not in TOY_SPACES[space].points.continuous_columns]
    assert torch.equal(nudged[:, levels], points[:, levels]) or space == "mixed"  # which has an integer of many levels


# regression: each of these was wrong once
def test_a_parameter_may_be_called_as_a_relaxed_category_is():
    space = SearchSpace({"c": Categorical(["a", "b", "c"]), "c, 0": Real(0, 1)})
    parts = {"classifier": Relaxed(MLPClassifier()), "candidates": RelaxedSearch(LocalSearch())}
    study = Study(space, seed=0, n_initial=4, **parts)
    study.optimize(lambda params: params["c, 0"], 6, progress=False)
    assert len(study.trials) == 6


@pytest.mark.parametrize("fixed", [{"k": 2}, {"c": "b"}, {"c": "c", "k": 4}, {"c": "b", "x": 0.25}])
def test_the_box_of_a_space_stands_still_where_the_space_does(fixed):
    space = SearchSpace(
        {"c": Categorical(["a", "b", "c"]), "k": Ordinal([1, 2, 4]), "x": Real(0, 1, when={"c": "b"}), "y": Real(0, 1)}
    ).with_fixed(fixed)
    relaxation = Relaxation(space)
    vectors = relaxation.box.points.sample(50, torch.Generator().manual_seed(0))
    for params in space.decode(relaxation.points(vectors)):
        assert params.items() >= fixed.items()
    assert len(vectors.unique(dim=0)) == 50
    moving = {column for column in range(vectors.shape[1]) if len(vectors[:, column].unique()) > 1}
    assert not any(relaxation.box.names[column].split(",")[0] in fixed for column in moving)
