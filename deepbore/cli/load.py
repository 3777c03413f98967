"""`load_run`: the study of a run directory, to look at."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepbore.acquisition import ClassProbability, LogHypervolumeImprovement, default_acquisition
from deepbore.candidates import GreedyBatch
from deepbore.cli.features import space_with_features
from deepbore.component import is_number, make
from deepbore.data.journal import Journal
from deepbore.data.replay import Reading, declaring
from deepbore.data.runs import Run, journal_of, plain_data
from deepbore.errors import SettingError
from deepbore.labels import default_labels
from deepbore.loop.recipe import KINDS, check_described
from deepbore.strategies.defaults import default_classifier
from deepbore.study import Study
from deepbore.text import visible

FOREIGN = "%s is not a class of deepbore, so it is not imported. The run is shown with the default."
LARGE = "the %s of the run has a setting of %.20s, which may take long: the run is shown with the default."
LARGEST = 10_000  # of a setting that a model may be trained with for a page
log = logging.getLogger(__name__)


def load_run(run: Path) -> Study:
    """The study of a run directory, with its own parts, the classifier untrained.

    Only classes of deepbore are imported: looking at a run from elsewhere runs none of its code. Other
    parts are replaced by the defaults, with a warning. Features of a library, or of choices, are read from the files
    that the run's configuration names, if they are those of the run.

    Args:
        run: the directory; or a journal alone.

    Raises:
        JournalError: for a missing or damaged journal.
        SettingError: if a part in a configuration of version 0.1 cannot be made.
        SpaceError: if features are not found.
    """
    journal = journal_of(run)
    created = next(Journal(journal).read())  # the first line only: the study reads the rest
    with declaring(journal):
        ledger = Reading(created).ledger
    described = ledger.header.get("recipe")
    if described is not None:
        check_described(described)
        parts = _in_place_of_others(described, ledger.k)
        return Study.load(journal, space=space_with_features(Run(Path(run)), ledger), **parts)
    return Study.load(journal, **_parts(Run(run).configuration))


def _in_place_of_others(described: dict[str, Any], objectives: int) -> dict[str, Any]:
    """Defaults, by their names in a study, for parts in a header that are not deepbore's, or contain such parts."""
    foreign = []
    for name in [name for name in KINDS if name in described]:
        if others := [path for path in _class_paths(described[name]) if not path.startswith("deepbore.")]:
            foreign.append(name)
            log.warning(FOREIGN, visible(others[0]))
        elif large := [number for number in _numbers(described[name]) if number > LARGEST]:
            foreign.append(name)
            log.warning(LARGE, name, large[0])
    if {"classifier", "strategy"} & set(foreign):
        classifier = default_classifier(objectives, None)
        labels = classifier.default_labels(objectives=objectives)
        return {"classifier": classifier, "labels": labels, "acquisition": default_acquisition(classifier)}
    per_column = any(path.endswith(".PerColumn") for path in _class_paths(described))
    defaults = {
        "labels": default_labels(True, None, objectives, per_column),
        "acquisition": LogHypervolumeImprovement() if per_column else ClassProbability(),
        "candidates": GreedyBatch(),
    }
    return {name: defaults[name] for name in foreign}


def _numbers(described: Any) -> Iterator[float]:
    """The numbers in a described part."""
    if isinstance(described, dict | list):
        for each in described.values() if isinstance(described, dict) else described:
            yield from _numbers(each)
    elif is_number(described):
        yield described


def _class_paths(described: Any) -> Iterator[str]:
    """Of a described part, and of those within it."""
    if isinstance(described, dict):
        if "class_path" in described:
            yield str(described["class_path"])
        described = list(described.values())
    if isinstance(described, list):
        for each in described:
            yield from _class_paths(each)


def _parts(text: str) -> dict[str, Any]:
    """Classifier and labels of a configuration of version 0.1, by their names in a study."""
    config = plain_data(text) or {}
    data = config.get("data") if isinstance(config, dict) else None
    if not isinstance(config, dict) or not isinstance(data, dict | None):
        raise SettingError(f"the run's config.yaml must have sections, but got {config!r:.100}.")
    named = {"classifier": config.get("model"), "labels": (data or {}).get("labels")}
    return {name: make(part, KINDS[name]) for name, part in named.items() if part and _is_own(part)}


def _is_own(part: Any) -> bool:
    """Whether a part of a configuration names only what is deepbore's: functions are imported by their names, too."""
    for path in _texts(part):
        if "." in path and not path.startswith("deepbore."):
            log.warning(FOREIGN, visible(path))
            return False
    return True


def _texts(given: Any) -> Iterator[str]:
    """The texts in plain data, not the keys."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict | list):
        for each in given.values() if isinstance(given, dict) else given:
            yield from _texts(each)
