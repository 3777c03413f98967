"""The races of BORE (Tiao et al. 2021): figures 3 to 7, 10 and 11."""

from itertools import product

from figures.kinds import Claim, Panel, Race
from peers.searches import LIMITS, name_of

MLP, RF, XGB, GP = "paper:bore-mlp", "paper:bore-rf", "paper:bore-xgb", "paper:bore-gp"
MLP_ELU, RF_DE, XGB_DE = "paper:bore-mlp-elu", "paper:bore-rf-continuous", "paper:bore-xgb-continuous"
TPE, GP_BO = "hyperopt-tpe", "gp-ei"
DISCRETE = ("random", GP_BO, TPE, "smac", "regularised-evolution")
CONTINUOUS = ("random", TPE, "smac", "differential-evolution")

HPOLIB = ("protein_structure", "naval_propulsion", "parkinsons_telemonitoring", "slice_localization")
MLP_RANDOM = name_of("bore_mlp", "random search", 500)
NASBENCH = ("cifar10", "cifar100", "imagenet")
RACETRACKS = ("racing/ucb", "racing/ethz_a", "racing/ethz_b")
SLOW = {GP_BO: 10, GP: 10, "smac": 10}
LIBRARIES = (
    "GP-EI is ours on BoTorch, in the place of AutoGluon's GP-BO; TPE is HyperOpt's, SMAC is SMAC3's. `deepbore`, with "
    "its defaults, is in no paper."
)


def ahead(problem: str, firsts: tuple[str, ...], seconds: tuple[str, ...], at: int | None) -> list[Claim]:
    """Each of the first methods ahead of each of the second ones."""
    return [Claim(problem, first, second, at) for first, second in product(firsts, seconds)]


HPOBENCH = Race(
    name="bore-3",
    paper="BORE, figure 3",
    caption="Immediate regret on the four tables of tuned networks (HPOBench's, of Klein & Hutter 2019; 9 parameters).",
    reports="BORE-RF and BORE-XGB are ahead of all baselines on all four data sets and near the optimum after 100 to "
    "200 evaluations; every variant but BORE-MLP on parkinsons is ahead of TPE.",
    departures=LIBRARIES,
    panels=tuple(Panel(f"hpolib/{name}", f"hpolib/{name}", (*DISCRETE, MLP, RF, XGB, "deepbore")) for name in HPOLIB),
    trials=200,
    paper_trials=None,
    paper_seeds=100,
    few=SLOW,
    claims=tuple(
        claim
        for name in HPOLIB
        for claim in (
            *ahead(f"hpolib/{name}", (RF, XGB), DISCRETE, 200),
            *ahead(f"hpolib/{name}", (RF, XGB), (TPE,), None),
            *([] if name.startswith("parkinsons") else ahead(f"hpolib/{name}", (MLP,), (TPE,), 200)),
        )
    ),
)

NASBENCH201 = Race(
    name="bore-4",
    paper="BORE, figure 4",
    caption="Immediate regret on the three tables of NASBench201 (6 categories with 5 values).",
    reports="All variants of BORE end with the lowest regret on all three data sets; BORE-MLP has the lowest at any "
    "time, then BORE-RF, then BORE-XGB and BORE-GP.",
    departures=f"{LIBRARIES} BORE-MLP with another search is ours, too.",
    explanation="BORE-MLP is behind BORE-RF here. Its network is not what keeps it back: the same one, its acquisition "
    "maximised by 500 random configurations, has less regret. L-BFGS over relaxed categories ends between the "
    "configurations, and what is rounded from there is another point. The text doesn't say how it was done.",
    panels=tuple(
        Panel(f"nasbench201/{name}", f"nasbench201/{name}", (*DISCRETE, MLP, MLP_RANDOM, RF, XGB, GP, "deepbore"))
        for name in NASBENCH
    ),
    trials=200,
    paper_trials=None,
    paper_seeds=100,
    few=SLOW,
    claims=tuple(
        claim
        for name in NASBENCH
        for claim in (
            *ahead(f"nasbench201/{name}", (MLP, RF, XGB, GP), DISCRETE, 200),
            *ahead(f"nasbench201/{name}", (MLP,), (RF,), None),
            *ahead(f"nasbench201/{name}", (RF,), (XGB, GP), None),
        )
    ),
)

ROBOT = Race(
    name="bore-5",
    paper="BORE, figure 5",
    caption="Negative reward of two robot hands that push objects (14 parameters).",
    reports="BORE-XGB ends with the highest reward, then BORE-RF and TPE with about the same, then BORE-MLP.",
    departures=f"500 evaluations where the paper has about 10,000. {LIBRARIES}",
    panels=(Panel("robot-pushing", "robot-pushing", (*CONTINUOUS, MLP, RF_DE, XGB_DE, "deepbore")),),
    trials=500,
    seeds=10,
    paper_trials=10_000,
    paper_seeds=50,
    few={"smac": 5},
    metric="value",
    checkpoints=(50, 100, 200, 500),
    claims=(
        *ahead("robot-pushing", (XGB_DE,), (RF_DE, TPE), 500),
        Claim("robot-pushing", RF_DE, TPE, 500, level=True),
        *ahead("robot-pushing", (RF_DE, TPE), (MLP,), 500),
    ),
)

RACING = Race(
    name="bore-6",
    paper="BORE, figure 6",
    caption="Best lap time in seconds on three racetracks.",
    reports="All variants of BORE are ahead of all baselines but GP-BO. BORE-MLP is as good as GP-BO, or a little "
    "better, on two tracks: on UC Berkeley's it leads for the first 40 evaluations and GP-BO catches up in the last "
    "10; on ETH Zürich's track B it leads throughout.",
    departures="The published dynamics are those of our simulation (docs of `RacingLine`); ETH Zürich's tracks come "
    "from a file that DEEPBORE_TRACKS names, and on them `deepbore` is the default before length scales of wide spaces "
    f"were alike. BORE-MLP has ReLU or ELU units: the paper does not say. {LIBRARIES}",
    panels=tuple(
        Panel(track, track, (*CONTINUOUS, GP_BO, MLP, MLP_ELU, RF_DE, XGB_DE, "deepbore")) for track in RACETRACKS
    ),
    trials=50,
    paper_trials=50,
    paper_seeds=100,
    few={"smac": 10},
    metric="value",
    checkpoints=(20, 30, 40, 50),
    claims=(
        *(
            claim
            for track in RACETRACKS
            for claim in (*ahead(track, (MLP, RF_DE, XGB_DE), CONTINUOUS, 50), *ahead(track, (GP_BO,), CONTINUOUS, 50))
        ),
        Claim("racing/ucb", MLP, GP_BO, 40),
        Claim("racing/ucb", MLP, GP_BO, 50, level=True),
        Claim("racing/ethz_b", MLP, GP_BO, None),
        Claim("racing/ethz_b", MLP, GP_BO, 50),
    ),
)


def calibration(name: str, number: int, variant: str, plain: str) -> Race:
    """Figures 7 and 11."""
    platt, isotonic = f"paper:bore-{variant}-platt", f"paper:bore-{variant}-isotonic"
    return Race(
        name=name,
        paper=f"BORE, figure {number}",
        caption=f"BORE-{variant.upper()} with calibrated probabilities: best lap time on UC Berkeley's track.",
        reports="Platt's scaling and isotonic regression both make it worse.",
        panels=(Panel("racing/ucb", "racing/ucb", (plain, platt, isotonic, "random")),),
        trials=50,
        paper_trials=50,
        paper_seeds=100,
        metric="value",
        checkpoints=(20, 30, 40, 50),
        claims=tuple(ahead("racing/ucb", (plain,), (platt, isotonic), 50)),
    )


def search_panel(recipe: str) -> Panel:
    """A half of figure 10."""
    names = [name_of(recipe, search, n) for search in ("random search", "differential evolution") for n in LIMITS]
    return Panel(recipe.replace("_", "-"), "nasbench201/cifar10", tuple(names))


def search_claims(recipe: str) -> list[Claim]:
    """What appendix G.1 says of a half of figure 10."""
    rs, de = ([name_of(recipe, search, n) for n in LIMITS] for search in ("random search", "differential evolution"))
    pairs = [*zip(rs, de, strict=True), (de[-1], de[0]), (rs[0], rs[-1])]
    return [Claim("nasbench201/cifar10", first, second, None) for first, second in pairs]


SEARCH = Race(
    name="bore-10",
    paper="BORE, figure 10 (appendix G.1)",
    caption="Random search or differential evolution for the maximum of the trees' probability, with 50 to 500 points "
    "scored: immediate regret on NASBench201's CIFAR-10.",
    reports="Random search is ahead of differential evolution by a little; a higher limit helps differential evolution "
    "somewhat, and a lower one random search.",
    explanation="Whatever the search, and however many points it scores, the differences are smaller than those "
    "between seeds. One interval of twelve that is on the other side of 0 is what chance alone gives.",
    panels=(search_panel("bore_rf"), search_panel("bore_xgb")),
    trials=200,
    paper_trials=None,
    paper_seeds=100,
    claims=(*search_claims("bore_rf"), *search_claims("bore_xgb")),
)

RACES = (
    HPOBENCH,
    NASBENCH201,
    ROBOT,
    RACING,
    calibration("bore-7", 7, "rf", RF_DE),
    SEARCH,
    calibration("bore-11", 11, "xgb", XGB_DE),
)
