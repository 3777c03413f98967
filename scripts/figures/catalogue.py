"""All figures, by name."""

from figures import bore_races
from figures.kinds import Figure, Race

FIGURES: dict[str, Figure] = {figure.name: figure for figure in bore_races.RACES}
RACES = {name: figure for name, figure in FIGURES.items() if isinstance(figure, Race)}
