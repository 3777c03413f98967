"""`Trial`: one configuration and what became of it. Light to import."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deepbore.data.outcomes import Status


@dataclass(frozen=True)
class Trial:
    """One configuration and its outcome: a record, not a handle that changes.

    Attributes:
        id: row in the observations, counted from 0 in the order of asking.
        params: the configuration, inactive parameters left out.
        value: the (first) objective value in the user's sign; None unless complete. In a study of preferences the
            utility that all comparisons so far give it.
        status: complete, failed or pending.
        values: all k objective values in the user's sign; None unless complete.
        constraints: values of the black-box constraints, feasible where all are <= 0; None where there are none.
        budget: what it may spend, or has spent; None where there are no budgets.
        resume_from: the trial of the same configuration, on a smaller budget, that it continues: its `attributes` may
            say where a checkpoint lies. None for one that begins anew.
        task: name of the earlier task that it belongs to; None for this run's own.
        attributes: what else the outcome has brought, by name.
        reason: why there is no value; None if there is one, or none was given.
        identity: what tells its configuration from others, even if `params` are changed; None if made by hand.
        noise: standard deviation of the value; None where none was told.
    """

    id: int
    params: dict[str, Any]
    value: float | None = None
    status: Status = Status.PENDING
    values: tuple[float, ...] | None = None
    constraints: tuple[float, ...] | None = None
    budget: float | None = None
    task: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    identity: Hashable = field(default=None, repr=False, compare=False)
    resume_from: "Trial | None" = field(default=None, repr=False)
    noise: float | None = None

    @property
    def traceback(self) -> str | None:
        """The last 4000 characters of the traceback, where the objective has raised an exception."""
        return self.attributes.get("traceback")
