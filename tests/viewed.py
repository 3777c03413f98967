"""What a strategy is shown after trials at points of a Sobol sequence."""

from dataclasses import replace

from deepbore import KernelPLS, Study
from deepbore.loop.engine import Engine
from deepbore.strategies import ModelStrategy


def view_after(space, trials, function, **settings):
    """The view of a study with so many trials of a function, as beside a kernel in `Turns`."""
    study = Study(space, seed=0, **settings)
    if trials:
        points = space.decode(space.points.sobol(trials, seed=1))
        study.add({name: [each[name] for each in points] for name in space.names}, [function(each) for each in points])
        study.ask()
    return replace(Engine(study.state).view(), first=ModelStrategy(KernelPLS()))
