"""A user's mistakes, each of which a type checker should find: one in each line that ends in a comment."""

import deepbore
from deepbore import Real, Study, minimize

SPACE = {"x": Real(0, 1)}


def text(params: dict[str, float]) -> str:
    """Something that is no value."""
    return str(params)


def nothing(params: dict[str, float]) -> None:
    """A forgotten return."""
    params["x"] += 1


minimize(text, SPACE, 5)  # no value
minimize(nothing, SPACE, 5)  # no value
minimize(len, SPACE, 5, sede=0)  # no option
minimize(len, SPACE, 5, if_exists="append")  # no such
Study(SPACE, direction="up")  # no such
Study(SPACE).optimize(text, 5)  # no value
print(deepbore.minimise)  # no such
deepbore.Suggester(SPACE)  # former name
deepbore.Ambitious()  # former name
