"""`Rows`: the buffers of observations, as they are read."""

from torch import Tensor

from deepbore.data.buffers import Buffers
from deepbore.data.outcomes import Status


class Rows:
    """n rows of several buffers."""

    _rows: Buffers
    _signs: list[float]  # 1 where a value is minimised, -1 where it is maximised

    def __len__(self) -> int:
        """n, pending and failed rows included."""
        return self._rows.n

    @property
    def points(self) -> Tensor:
        """n x d."""
        return self._rows["points"]

    @property
    def values(self) -> Tensor:
        """Values to minimise (n x k); NaN where a trial is pending or failed."""
        return self._rows["values"]

    @property
    def user_values(self) -> Tensor:
        """Values in the user's sign (n x k); NaN where a trial is pending or failed."""
        return self.values * self.values.new_tensor(self._signs)

    @property
    def constraints(self) -> Tensor:
        """Black-box constraints (n x c), kept where <= 0; NaN in rows that have none. The first outcome fixes c."""
        return self._rows["constraints"]

    @property
    def budgets(self) -> Tensor:
        """Budgets (n); NaN where there is none."""
        return self._rows["budgets"]

    @property
    def tasks(self) -> Tensor:
        """Numbers of the tasks (n): 0 for this run, t for the earlier one named `task_names[t - 1]`."""
        return self._rows["tasks"]

    @property
    def noise(self) -> Tensor | None:
        """Standard deviations of the values (n), NaN in rows that have none told; None while no row has."""
        noise = self._rows["noise"]
        return noise[:, 0] if noise.shape[1] else None

    @property
    def first_rows(self) -> Tensor:
        """For each row the first one of this run with the same configuration (n); rows of earlier tasks stand alone."""
        return self._rows["first"]

    @property
    def status(self) -> Tensor:
        """`Status` codes (n)."""
        return self._rows["status"]

    @property
    def feasible(self) -> Tensor:
        """Whether a trial is complete and no constraint is violated (n booleans)."""
        return (self.status == Status.COMPLETE) & ~(self.constraints > 0).any(-1)

    @property
    def finished_rows(self) -> Tensor:
        """Numbers of the trials that are complete or failed, in order."""
        return (self.status != Status.PENDING).nonzero().squeeze(-1)
