"""The races of batch BORE (Oliveira et al. 2022): figures 1, 2 and E.1."""

from figures.bore_races import ahead
from figures.kinds import Claim, Panel, Race

BASELINES = ("local-penalisation", "q-ei")
RECIPES = {"camel": "paper:batch-bore-camel", "hartmann3": "paper:batch-bore-hartmann3"}  # others have the plain one
FUNCTIONS = ("branin", "camel", "hartmann3", "hartmann6", "rosenbrock5", "ackley10")


def recipe(function: str) -> str:
    """Batch BORE as the paper sets it for a function."""
    return RECIPES.get(function, "paper:batch-bore")


def on(function: str) -> tuple[str, ...]:
    """The methods of figure 1's panel: deepbore's design begins where Ackley's function is best."""
    ours = () if function == "ackley10" else ("deepbore",)
    return ("random", *BASELINES, recipe(function), *ours)


BENCHMARKS = Race(
    name="batch-1",
    paper="Batch BORE, figure 1",
    caption="Simple regret in batches of ten on six functions, after 10 initial points.",
    reports="Batch BORE is ahead of locally penalised EI (LP-EI) and q-EI on most functions. LP-EI could not go on "
    "after 100 iterations on some.",
    departures="50 batches where the paper has 200. The text at hand names the six-hump camel and Hartmann's function "
    "in 3-D; the other functions are our choice. Initial points are a Sobol design, the paper's were drawn. LP-EI and "
    "q-EI are ours on BoTorch, in the place of GPyOpt's and BoTorch's. `deepbore`, with its defaults, is in no paper; "
    "on Ackley's function it is left out, whose best point is the first of its design.",
    explanation="The runs here end after ten batches, a twentieth of the paper's. So far batch BORE is behind q-EI and "
    "LP-EI on all six functions: its network begins slowly. What it reaches after 2000 evaluations is not seen.",
    panels=tuple(Panel(name, name, on(name)) for name in FUNCTIONS),
    trials=510,
    seeds=5,
    paper_trials=2010,
    paper_seeds=5,
    workers=10,
    checkpoints=(60, 110, 210, 510),
    claims=tuple(claim for name in FUNCTIONS for claim in ahead(name, (recipe(name),), BASELINES, 510)),
)

PP, PLS, MLP = "paper:borepp", "paper:bore-pls", "paper:bore-mlp-quarter"
GPS = ("gp-ei-rq", "gp-ucb-rq")
TABLES = ("hpolib/parkinsons_telemonitoring", "hpolib/slice_localization")
RACE, DIGITS = "racing/ucb", "digits-architecture"
EVERY = ("random", *GPS, MLP, PLS, PP, "deepbore")

REAL_DATA = Race(
    name="batch-2",
    paper="Batch BORE, figure 2",
    caption="Simple regret of BORE++ on tuned networks, a racing line (the lap time itself), and an architecture.",
    reports="BORE++ is ahead of BORE with probabilistic least squares (PLS) everywhere, which is about as good as "
    "random search, or worse. BORE with a network and BORE++ are ahead of the others, but for GP-EI and GP-UCB on the "
    "racing line, and GP-EI at the end on the architecture. BORE++ is ahead of BORE with a network on the two tables.",
    departures="200 evaluations on the tables where the paper has 500. The racing line has 12 parameters, the paper's "
    "20. The architecture is tuned on our table of real trainings on scikit-learn's digits: the surrogate of MNIST "
    "can't be had. `deepbore`, with its defaults, is in no paper.",
    panels=(
        *(Panel(name, name, EVERY) for name in TABLES),
        Panel(RACE, RACE, EVERY, trials=50),
        Panel(DIGITS, DIGITS, (*EVERY, "hyperopt-tpe")),
    ),
    trials=200,
    seeds=10,
    paper_trials="500 on the tables, 50 on the racing line, 200 on the architecture",
    paper_seeds="10, on the racing line 5",
    metric="regret",
    checkpoints=(25, 50, 100, 200),
    claims=(
        *(
            claim
            for name, n in ((TABLES[0], 200), (TABLES[1], 200), (RACE, 50), (DIGITS, 200))
            for claim in (Claim(name, PP, PLS, n), Claim(name, PLS, "random", n, level=True))
        ),
        *(claim for name in TABLES for claim in (Claim(name, PP, MLP, 200), *ahead(name, (PP, MLP), GPS, 200))),
        *ahead(RACE, GPS, (PP, MLP), 50),
        *ahead(RACE, (PP, MLP), (PLS, "random"), 50),
        Claim(RACE, PP, MLP, 50, level=True),
        Claim(DIGITS, PP, MLP, 200, level=True),
        *ahead(DIGITS, ("gp-ei-rq",), (PP, MLP), 200),
        *ahead(DIGITS, (PP, MLP), ("gp-ucb-rq", "hyperopt-tpe", "random"), 200),
    ),
)

FOURIER, FOURIER_PP = "paper:fourier-logistic", "paper:fourier-logistic-pp"
ROSENBROCK = ("noisy/rosenbrock3", "noisy/rosenbrock4", "noisy/rosenbrock5")

DIMENSIONS = Race(
    name="batch-E1",
    paper="Batch BORE, figure E.1",
    caption="Cumulative regret of batch BORE and BORE++ by Fourier features on Rosenbrock's function in 3, 4 and 5 "
    "dimensions, with noise of variance 1e-4.",
    reports="BORE++ has a clear advantage in low dimensions, which gets less and ends with more dimensions.",
    departures="Batches of ten, 50 of them at full size, 20 after 210 evaluations; the text gives neither.",
    explanation="BORE++ has more cumulative regret in all three dimensions. What the text leaves open does not turn "
    "it: `python scripts/batch_protocol.py` (three dimensions, 20 batches, three seeds) has the usual domain and a "
    "small one, SVGD from uniform points and from the density, regret of all points and of the best of each batch. "
    "What helps most is the scale of the bound: three deviations of the probability instead of the logit halve the "
    "difference, and on the usual domain from uniform starts BORE++ then leads on two seeds of three. The rest of the "
    "regret is what exploring costs here: the function is largest in the corners, which are what is uncertain.",
    panels=tuple(Panel(name, name, (FOURIER, FOURIER_PP)) for name in ROSENBROCK),
    trials=510,
    seeds=10,
    paper_trials=None,
    paper_seeds=10,
    workers=10,
    metric="cumulative regret",
    checkpoints=(60, 110, 210, 510),
    claims=(
        Claim(ROSENBROCK[0], FOURIER_PP, FOURIER, 510),
        Claim(ROSENBROCK[1], FOURIER_PP, FOURIER, 510),
        Claim(ROSENBROCK[2], FOURIER_PP, FOURIER, 510, level=True),
    ),
)

RACES = (BENCHMARKS, REAL_DATA, DIMENSIONS)
