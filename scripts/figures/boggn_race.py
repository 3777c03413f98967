"""The race of BOGGN (2021): figure 3."""

from figures.bore_races import ahead
from figures.kinds import Panel, Race

TABLE, FUNCTIONS = "hpolib/protein_structure", ("branin", "camel", "hartmann3", "hartmann6")
BASELINES = ("random", "gp-ei", "hyperopt-tpe")
BORE, BOGGN, BOGGN_CONTINUOUS = "paper:bore-mlp", "paper:boggn", "paper:boggn-continuous"

RACE = Race(
    name="boggn-3",
    paper="BOGGN, figure 3",
    caption="Immediate regret of BOGGN on the table of networks for proteins, and on functions.",
    reports="BOGGN is ahead of TPE, GP-BO, Hyperband, random search and BORE everywhere.",
    departures="No Hyperband: the tables have one budget here, and functions have none. Hartmann's function, of which "
    "the text gives no dimension, is taken in 3-D and 6-D. `deepbore`, with its defaults, is in no paper.",
    panels=(
        Panel(TABLE, TABLE, (*BASELINES, BORE, BOGGN, "deepbore")),
        *(Panel(name, name, (*BASELINES, BORE, BOGGN_CONTINUOUS, "deepbore"), trials=100) for name in FUNCTIONS),
    ),
    trials=200,
    paper_trials=None,
    paper_seeds=200,
    few={"gp-ei": 10},
    checkpoints=(25, 50, 100, 200),
    claims=(
        *ahead(TABLE, (BOGGN,), (*BASELINES, BORE), 200),
        *(claim for name in FUNCTIONS for claim in ahead(name, (BOGGN_CONTINUOUS,), (*BASELINES, BORE), 100)),
    ),
)
