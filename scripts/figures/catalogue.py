"""All figures, by name."""

from figures import batch_races, boggn_race, bore_races, classification, densities, ratio_toy, steps, theory
from figures.kinds import Figure, Race

_ALL: tuple[Figure, ...] = (
    *bore_races.RACES,
    *densities.FIGURES,
    *classification.FIGURES,
    *ratio_toy.FIGURES,
    *steps.FIGURES,
    *theory.FIGURES,
    *batch_races.RACES,
    boggn_race.RACE,
)
_PAPERS = ("bore", "batch", "boggn")


def _place(figure: Figure) -> tuple[int, str]:
    paper, _, number = figure.name.partition("-")
    return _PAPERS.index(paper), number.zfill(2) if number.isdigit() else number.replace("theory", "0")


FIGURES: dict[str, Figure] = {figure.name: figure for figure in sorted(_ALL, key=_place)}
RACES: dict[str, Race] = {name: figure for name, figure in FIGURES.items() if isinstance(figure, Race)}
