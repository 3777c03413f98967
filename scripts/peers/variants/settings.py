"""What the variants share: the settings of a study, the search by the classifier alone, and the priors of before."""

from collections.abc import Callable

import deepbore as db

Settings = dict[str, object]  # of `Study`


def by(search: db.LocalSearch) -> Settings:
    """A search by the classifier alone, as all were when the earlier variants were measured."""
    search.nearby = False  # read by `default_strategy`
    return {"candidates": db.GreedyBatch(search)}


def alone(variant: Callable[[], Settings]) -> Callable[[], Settings]:
    """A variant without the head of the near rows, unless it says itself what searches."""
    return lambda: by(db.LocalSearch()) | variant()


def independent(variant: Callable[[], Settings]) -> Callable[[], Settings]:
    """A variant whose kernels have independent priors of their length scales, as all had when it was measured."""
    return with_kernels(variant, alike=False)


def believing(variant: Callable[[], Settings]) -> Callable[[], Settings]:
    """A variant to whose kernels each failure is bad, and which have no rival, as with all when it was measured."""
    return with_kernels(variant, crashes=False, additive=False)


def with_kernels(variant: Callable[[], Settings], **changed: bool) -> Callable[[], Settings]:
    """A variant all of whose kernels have some settings changed."""

    def settings() -> Settings:
        given = variant()
        given = given if "strategy" in given else {"classifier": db.KernelPLS()} | given
        models = given["strategy"].models if "strategy" in given else (given["classifier"],)
        for part in (part for model in models for part in model.modules()):
            if isinstance(part, db.KernelPLS):
                vars(part).update(changed)
        return given

    return settings
