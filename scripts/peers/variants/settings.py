"""What the variants share: the settings of a study, the search by the classifier alone, and the priors of before."""

from collections.abc import Callable

import deepbore as db

Settings = dict[str, object]  # of `Study`


def by(search: db.LocalSearch) -> Settings:
    """A search by the classifier alone, as all were when the earlier variants were measured."""
    search.nearby = False
    return {"candidates": db.GreedyBatch(search)}


def alone(variant: Callable[[], Settings]) -> Callable[[], Settings]:
    """A variant without the head of the near rows, unless it says itself what searches."""
    return lambda: by(db.LocalSearch()) | variant()


def independent(variant: Callable[[], Settings]) -> Callable[[], Settings]:
    """A variant whose kernels have independent priors of their length scales, as all had when it was measured."""

    def settings() -> Settings:
        given = {"classifier": db.KernelPLS()} | variant()
        for part in given["classifier"].modules():
            if isinstance(part, db.KernelPLS):
                part.alike = False
        return given

    return settings
