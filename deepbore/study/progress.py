"""`ProgressBar`: the one progress bar of a run, in a terminal or a notebook."""

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self, SupportsFloat

from deepbore.data.observations import Observations
from deepbore.data.outcome import Outcome


class ProgressBar:
    """Trials done, best value, failures and, if the run logs them, threshold and seconds per suggestion, on one line.

    Args:
        observations: what is shown.
        goal: how many trials the study has asked for in the end; None if nobody knows.
        logged: gives what the run has logged by name.
        shown: whether anything is shown.
    """

    def __init__(
        self,
        observations: Observations,
        goal: int | None,
        logged: Callable[[], Mapping[str, SupportsFloat]] = dict,
        shown: bool = True,
    ):
        self.observations, self.goal, self.logged, self.shown = observations, goal, logged, shown
        self.bar: Any = None
        self._shows_warning = warnings.showwarning

    def __enter__(self) -> Self:
        if self.shown:
            n_pending = len(self.observations.pending_rows)
            done = self.observations.n_asked - n_pending
            self.bar = _tqdm()(total=self.goal, initial=done, desc="trials", unit="trial", dynamic_ncols=True)
            self._shows_warning, warnings.showwarning = warnings.showwarning, self._show_warning
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            if warnings.showwarning == self._show_warning:  # else somebody has their own by now
                warnings.showwarning = self._shows_warning
            self._show()
            self.bar.close()
            self.bar = None

    def __call__(self, row: int, outcome: Outcome) -> None:
        """Moves on by one trial."""
        if self.bar is not None:
            self._show()
            self.bar.update()

    def _show_warning(self, *about: Any, **more: Any) -> None:
        """A warning on a line of its own, above the bar."""
        with _tqdm().external_write_mode(file=sys.stderr):
            self._shows_warning(*about, **more)

    def _show(self) -> None:
        observations, logged = self.observations, self.logged()
        best = observations.best if observations.k == 1 else None
        shown = {
            "best": math.nan if best is None or best.value is None else best.value,
            "tau": float(logged.get("tau", math.nan)),
            "s/suggestion": float(logged.get("seconds_per_suggestion", math.nan)),
            "failed": observations.n_failed or math.nan,
        }
        known = {name: f"{value:.4g}" for name, value in shown.items() if not math.isnan(value)}
        self.bar.set_postfix(known, refresh=False)


def somebody_watches() -> bool:
    """Whether stderr is a terminal, or this is a notebook."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    return "ipykernel.zmqshell" in sys.modules and sys.modules["IPython"].get_ipython() is not None


def _tqdm() -> Any:
    """The bar for where this runs; without ipywidgets a notebook gets one of text, and that is no reason to warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm  # for runs that show one
    return tqdm
