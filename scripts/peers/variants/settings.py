"""What the variants share: the settings of a study, and the search by the classifier alone."""

import deepbore as db

Settings = dict[str, object]  # of `Study`


def by(search: db.LocalSearch) -> Settings:
    """A search by the classifier alone, as all were when the earlier variants were measured."""
    search.nearby = False
    return {"candidates": db.GreedyBatch(search)}
