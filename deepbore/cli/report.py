"""The page of a run: what its journal says at once, then what its classifier has learned."""

import logging
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from deepbore.cli.run_directory import Run
from deepbore.data.journal import refuse_link, replace_file
from deepbore.plots.page.page import report

if TYPE_CHECKING:
    from deepbore.data.replay import Record
    from deepbore.study import Study

SOON = 3.0  # seconds after which a page that is open looks for the classifier's part
log = logging.getLogger(__name__)


def write_report(run: Run, target: Path, *, quick: bool = False, every: float | None = None) -> None:
    """Writes the page, at first without the classifier, which takes some seconds to load and to train.

    Args:
        run: the run.
        target: where to.
        quick: whether it stays without the classifier.
        every: seconds after which the page shows itself anew; None for never.
    """
    last = datetime.fromtimestamp(run.last_event).astimezone()
    facts = {"state": run.state, "last event": f"{last:%Y-%m-%d %H:%M:%S}"}
    times = refuse_link(run.journal.with_name(f"{run.journal.name}.times"))

    def write(shown: "Record | Study", again: float | None) -> None:
        page = report(shown, title=run.name, facts=facts, configuration=run.configuration, times=times, every=again)
        replace_file(target, page.encode(errors="replace"))  # a reason may hold a file name that is no text

    if quick or every is None or not target.exists():  # later the page before it stays until the new one is whole
        write(run.record, every if quick else every or SOON)
    if quick:
        return
    from deepbore.cli.load import load_run  # torch and Lightning

    try:
        study = load_run(run.path)
        study.fit()
        write(study, every)
    except Exception as error:  # whatever a classifier may do: the rest of the page stays
        log.warning("the page is without the classifier: %s", error)
        write(run.record, every)
