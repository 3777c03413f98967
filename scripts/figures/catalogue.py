"""All figures, by name."""

from figures import batch_races, boggn_race, bore_races
from figures.kinds import Figure, Race

RACES: dict[str, Race] = {race.name: race for race in (*bore_races.RACES, *batch_races.RACES, boggn_race.RACE)}
FIGURES: dict[str, Figure] = {**RACES}
