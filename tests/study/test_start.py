"""What a study imports: in closed form it asks and recommends without Lightning, and without what Lightning imports."""

import subprocess
import sys
from abc import ABCMeta

import pytest
from lightning.pytorch import LightningModule

from deepbore import KernelPLS, MLPClassifier
from deepbore.classifiers import Classifier, TrainedClassifier
from deepbore.errors import SettingError
from processes import ENV

NOT_NEEDED = {"lightning", "torchmetrics", "torchvision", "laplace", "matplotlib", "pandas", "botorch", "gpytorch",
              "sklearn", "sympy", "scipy.signal", "scipy.stats", "optuna", "jsonargparse"}  # fmt: skip

FOREST = {"sklearn", "scipy.stats", "pandas"}  # of `RoughGround`, which proposes where there are unordered choices
CHOICE, LEVELS = 'db.Categorical(["a", "b"])', "db.Ordinal([1, 5])"


def imported(code):
    """What a program in a process of its own prints, word by word."""
    done = subprocess.run([sys.executable, "-c", code], env=ENV, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


STUDY = """
import sys
import deepbore as db
space = db.SearchSpace({{"x": db.Real(0, 1), "k": db.Integer(1, 9), "c": {choice}}})
study = db.Study(space, n_initial=4, seed=0, {settings})
for n in range(6):
    (trial,) = study.ask()
    study.tell(trial, None if n == 2 else trial.params["x"], failed=n == 2)
study.ask(3)
assert study.classifier.ready and study.recommended is not None
print(*{names!r} & set(sys.modules))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "choice", "needed"),
    [
        ("", LEVELS, set()),
        ("", CHOICE, FOREST),
        ("classifier=db.KernelPLS(noisy=True)", CHOICE, set()),
        ("classifier=db.FourierLogistic()", CHOICE, set()),
    ],
)
def test_a_study_that_learns_in_closed_form_imports_no_lightning(settings, choice, needed):
    assert imported(STUDY.format(settings=settings, choice=choice, names=NOT_NEEDED - needed)) == []


RUN = """
import sys
import deepbore as db
seen = []
def objective(params, trial):
    seen.append({{"lightning", "scipy.optimize"}} & set(sys.modules))
    for step in range(3):
        trial.report(params["x"] / (1 + step), step=step)
    return params["x"]
space = {{"x": db.Real(0, 1), "k": db.Integer(1, 9), "c": {choice}}}
study = db.minimize(objective, space, 8, n_initial=4, progress=False, batch_size=2, {settings}).study
assert study.classifier.ready and study.recommended is not None and not seen[0], seen[0]
print(*{names!r} & set(sys.modules))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "choice", "needed"),
    [
        ("", LEVELS, set()),
        ("", CHOICE, FOREST),
        ("pruner=db.MedianPruner(startup_trials=2)", LEVELS, set()),
        ("noisy=True", CHOICE, set()),
        ("timeout=600", LEVELS, set()),
    ],
)
def test_a_run_whose_models_learn_in_closed_form_imports_no_lightning(settings, choice, needed):
    assert imported(RUN.format(settings=settings, choice=choice, names=NOT_NEEDED - needed)) == []


def test_a_classifier_of_the_users_has_the_bases_that_it_names():
    class Plain(Classifier):
        pass

    class Steps(TrainedClassifier):
        def training_step(self, batch, batch_idx=0):
            return batch.z.mean()

    assert type(Classifier) is type(KernelPLS) is ABCMeta
    assert Plain.__bases__ == (Classifier,)
    assert not issubclass(Plain, LightningModule)
    assert issubclass(Steps, LightningModule)
    assert issubclass(MLPClassifier, LightningModule)
    assert not issubclass(KernelPLS, LightningModule)


def test_a_training_step_without_lightning_is_refused_with_the_class_that_has_it():
    with pytest.raises(SettingError, match=r"Steps is a plain one.*deepbore\.classifiers\.TrainedClassifier"):

        class Steps(Classifier):
            def training_step(self, batch, batch_idx=0):
                return batch.z.mean()
