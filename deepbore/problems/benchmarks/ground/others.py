"""Two forecasters, the fit of a differential equation, an image filter, and a schedule of jobs on machines."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deepbore.problems.base import Array, benchmark_package
from deepbore.problems.benchmarks.ground.task import Function, GroundTask, Tunable, sklearn, within
from deepbore.space import Categorical, Integer, Params, Real

# --- forecasters -----------------------------------------------------------------------------------------------------

SMOOTHING: Mapping[str, Tunable] = {
    "level": Real(1e-3, 1.0, log=True),
    "trend": Categorical(["none", "additive", "damped"]),
    "slope": Real(1e-4, 1.0, log=True),
    **within("trend", "damped", {"damping": Real(0.7, 1.0)}),
    "season": Categorical(["none", "additive", "multiplicative"]),
    **within("season", ["additive", "multiplicative"], {"seasonal": Real(1e-4, 1.0, log=True)}),
    "transform": Categorical(["none", "log", "root"]),
    "warm": Integer(1, 8),
    "outliers": Categorical(["keep", "clip"]),
    **within("outliers", "clip", {"limit": Real(0.5, 6.0, log=True)}),
}
TRANSFORMS: Mapping[str, tuple[Any, Any]] = {
    "none": (lambda y: y, lambda z: z),
    "log": (np.log, np.exp),
    "root": (np.sqrt, np.square),
}


def series(count: int = 180, period: int = 12) -> Array:
    """A positive monthly series: a bent trend, a season that grows, jumps, and noise."""
    stream, t = np.random.default_rng(0), np.arange(count)
    level = 60 + 0.5 * t + 12 * np.sin(t / 31) + 15 * (t > 110)
    shape = 1 + 0.18 * np.sin(2 * np.pi * t / period) + 0.07 * np.cos(4 * np.pi * t / period)
    y = level * shape * np.exp(0.04 * stream.normal(size=count))
    y[stream.choice(count, 5, replace=False)] *= 1.5
    return np.asarray(y)


def smoothed(params: Params, y: Array, period: int = 12, ahead: int = 3) -> float:
    """The mean error, by the mean, of forecasts by Holt and Winters, some steps ahead over the second half."""
    forward, back = TRANSFORMS[params["transform"]]
    z = forward(y)
    level, slope = float(z[:period].mean()), 0.0
    kind = params["season"]
    season = (
        list(z[:period] / level if kind == "multiplicative" else z[:period] - level) if kind != "none" else [0.0] * 12
    )
    damping: float = {"none": 0.0, "additive": 1.0, "damped": params.get("damping", 1.0)}[params["trend"]]
    errors, spread = [], float(np.std(np.diff(z))) + 1e-9
    for k in range(period, len(z) - ahead):
        own = season[k % period]
        expected = (level + damping * slope) * (own if kind == "multiplicative" else 1) + (
            own if kind == "additive" else 0
        )
        seen = z[k]
        if params["outliers"] == "clip":
            seen = expected + np.clip(seen - expected, -params["limit"] * spread, params["limit"] * spread)
        base = seen / own if kind == "multiplicative" else seen - own
        rate = params["level"] if k > period * params["warm"] // 4 else max(params["level"], 0.3)
        before, level = level, rate * base + (1 - rate) * (level + damping * slope)
        slope = params["slope"] * (level - before) + (1 - params["slope"]) * damping * slope
        if kind != "none":
            share = params["seasonal"]
            season[k % period] = (
                share * (seen / level if kind == "multiplicative" else seen - level) + (1 - share) * own
            )
        later = season[(k + ahead) % period]
        forecast = level + damping * ahead * slope
        forecast = forecast * later if kind == "multiplicative" else forecast + (later if kind == "additive" else 0)
        if k >= len(z) // 2:
            errors.append(abs(back(forecast) - y[k + ahead]))
    return float(np.mean(errors) / y.mean())


def smoothing() -> Function:
    """Forecasts of a monthly series."""
    y = series()

    def value(params: Params) -> float:
        with np.errstate(all="ignore"):
            return smoothed(params, y)

    return value


LAGGED: Mapping[str, Tunable] = {
    "lags": Integer(1, 24),
    "differences": Integer(0, 1),
    "window": Integer(2, 24, log=True),
    "waves": Integer(0, 4),
    "model": Categorical(["ridge", "neighbours", "trees"]),
    **within("model", "ridge", {"alpha": Real(1e-4, 1e3, log=True), "forgetting": Real(0.9, 1.0)}),
    **within("model", "neighbours", {"count": Integer(1, 30, log=True), "power": Real(1.0, 4.0)}),
    **within(
        "model",
        "trees",
        {"leaf": Integer(1, 30, log=True), "depth": Integer(1, 12, log=True), "share": Real(0.1, 1.0)},
    ),
}


def lagged() -> Function:
    """The years of the sunspots, from the years before."""
    data = benchmark_package("statsmodels.datasets.sunspots", "statsmodels", extra="heldout").load_pandas().data
    activity = np.sqrt(data["SUNACTIVITY"].to_numpy(np.float64))

    def value(params: Params) -> float:
        x, y, last = features(params, activity)
        cut = 2 * len(y) // 3
        model, settings = regressor(params, cut)
        predicted = model.fit(x[:cut], y[:cut], **settings).predict(x[cut:]) + last[cut:]
        truth = (y + last)[cut:]
        return float(np.mean((predicted - truth) ** 2) / truth.var())

    return value


def features(params: Params, activity: Array, start: int = 25) -> tuple[Array, Array, Array]:
    """Lags, the mean of a window and waves -> the value, less the last one where differences are taken."""
    rows = range(start, len(activity))
    columns = [[activity[k - lag] for k in rows] for lag in range(1, params["lags"] + 1)]
    columns.append([activity[k - params["window"] : k].mean() for k in rows])
    for wave in range(1, params["waves"] + 1):
        columns += [[function(2 * np.pi * k * wave / 11.0) for k in rows] for function in (np.sin, np.cos)]
    last = params["differences"] * activity[start - 1 : -1]
    return np.array(columns).T, activity[start:] - last, last


def regressor(params: Params, count: int) -> tuple[Any, Params]:
    """The model of a configuration, and the settings of its fit."""
    if params["model"] == "ridge":
        weight = params["forgetting"] ** np.arange(count)[::-1]
        return sklearn("linear_model.Ridge", alpha=params["alpha"]), {"sample_weight": weight}
    if params["model"] == "neighbours":
        settings = {"n_neighbors": params["count"], "p": params["power"], "weights": "distance"}
        return sklearn("neighbors.KNeighborsRegressor", **settings), {}
    settings = {"min_samples_leaf": params["leaf"], "max_depth": params["depth"], "max_features": params["share"]}
    return sklearn("ensemble.ExtraTreesRegressor", n_estimators=12, random_state=0, **settings), {}


# --- a differential equation -----------------------------------------------------------------------------------------

RATES = ("birth", "hunt", "death", "feed", "crowd", "hunger")
TRUE = (1.1, 0.45, 0.4, 0.12, 0.03, 0.2)
PREY: Mapping[str, Tunable] = {
    **{name: Real(0.01, 3.0, log=True) for name in RATES},
    "prey": Real(1.0, 20.0, log=True),
    "hunters": Real(0.5, 10.0, log=True),
}


def prey() -> Function:
    """The root mean squared error of hunters and prey, simulated, beside a noisy record of them."""
    integrate = benchmark_package("scipy.integrate", "scipy").odeint
    t = np.linspace(0, 25, 60)

    def change(state: Any, _: float, birth: float, hunt: float, death: float, feed: float, crowd: float, hunger: float):  # type: ignore[no-untyped-def]
        a, b = max(state[0], 0.0), max(state[1], 0.0)
        eaten = hunt * a * b / (1 + hunger * a)
        return [birth * a - crowd * a * a - eaten, feed / hunt * eaten - death * b]

    clean = integrate(change, [8.0, 3.0], t, args=TRUE)
    record = clean * np.exp(0.1 * np.random.default_rng(0).normal(size=clean.shape))

    def value(params: Params) -> float:
        start, rates = [params["prey"], params["hunters"]], tuple(params[name] for name in RATES)
        found = integrate(change, start, t, args=rates, mxstep=200, full_output=True, printmessg=False)[0]
        return float(np.sqrt(np.mean((np.log1p(np.abs(found)) - np.log1p(record)) ** 2)))

    return value


# --- an image filter -------------------------------------------------------------------------------------------------

FILTER: Mapping[str, Tunable] = {
    "first": Categorical(["none", "median", "opening"]),
    **within("first", "median", {"median": Integer(1, 7)}),
    **within("first", "opening", {"opening": Integer(1, 5)}),
    "smooth": Categorical(["gauss", "variation", "means"]),
    **within("smooth", "gauss", {"sigma": Real(0.1, 4.0, log=True), "order": Integer(1, 3)}),
    **within("smooth", "variation", {"weight": Real(1e-3, 1.0, log=True), "rounds": Integer(3, 40, log=True)}),
    **within("smooth", "means", {"reach": Integer(1, 4), "spread": Real(0.01, 1.0, log=True)}),
    "sharpen": Real(0.0, 2.0),
    "radius": Real(0.3, 4.0, log=True),
    "gamma": Real(0.5, 2.0, log=True),
}


def filtered() -> Function:
    """The squared error of a noisy and darkened photograph that is mended, by that of the best constant."""
    benchmark_package("PIL", "pillow")
    ndimage = benchmark_package("scipy.ndimage", "scipy")
    clean = sklearn("datasets.load_sample_image", image_name="china.jpg")[120:216, 200:296].mean(-1) / 255
    stream = np.random.default_rng(0)
    noisy = np.clip(clean**1.3 + 0.08 * stream.normal(size=clean.shape), 0, 1)
    hits = stream.random(clean.shape) < 0.06
    noisy[hits] = stream.integers(0, 2, hits.sum())

    def value(params: Params) -> float:
        image = noisy
        if params["first"] == "median":
            image = ndimage.median_filter(image, params["median"])
        elif params["first"] == "opening":
            image = ndimage.grey_closing(ndimage.grey_opening(image, params["opening"]), params["opening"])
        image = smoothed_image(params, image, ndimage)
        image = image + params["sharpen"] * (image - ndimage.gaussian_filter(image, params["radius"]))
        image = np.clip(image, 0, 1) ** params["gamma"]
        return float(np.mean((image - clean) ** 2) / clean.var())

    return value


def smoothed_image(params: Params, image: Array, ndimage: Any) -> Array:
    """An image after the smoothing of a configuration."""
    if params["smooth"] == "gauss":
        for _ in range(params["order"]):
            image = ndimage.gaussian_filter(image, params["sigma"])
        return image
    if params["smooth"] == "variation":  # descent on the squared error and the total variation
        found = image.copy()
        for _ in range(params["rounds"]):
            falls, runs = np.diff(found, axis=0, append=found[-1:]), np.diff(found, axis=1, append=found[:, -1:])
            size = np.sqrt(falls**2 + runs**2 + 1e-4)
            bend = np.diff(falls / size, axis=0, prepend=0) + np.diff(runs / size, axis=1, prepend=0)
            found = found + 0.1 * (image - found + params["weight"] * bend)
        return np.asarray(found)
    reach = params["reach"]
    total, weight = np.zeros_like(image), np.zeros_like(image)
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            other = np.roll(image, (down, right), (0, 1))
            own = np.exp(-((other - image) ** 2) / (2 * params["spread"] ** 2))
            total, weight = total + own * other, weight + own
    return np.asarray(total / weight)


# --- a schedule ------------------------------------------------------------------------------------------------------

RULE: Mapping[str, Tunable] = {
    "work": Real(-3.0, 3.0),
    "remaining": Real(-3.0, 3.0),
    "due": Real(-3.0, 3.0),
    "slack": Real(-3.0, 3.0),
    "waited": Real(-3.0, 3.0),
    "load": Real(-3.0, 3.0),
    "weight": Real(-3.0, 3.0),
    "setup": Real(-3.0, 3.0),
    "bend": Real(0.3, 3.0, log=True),
    "wait": Categorical([False, True]),
    **within("wait", True, {"horizon": Real(0.1, 5.0, log=True)}),
}


def schedule(jobs: int = 24, machines: int = 5) -> Function:
    """The weighted lateness of jobs that each machine takes by a priority, the sum of weighted features."""
    stream = np.random.default_rng(0)
    order = np.array([stream.permutation(machines) for _ in range(jobs)])
    work = stream.uniform(1, 10, (jobs, machines))
    family, importance = stream.integers(0, 4, jobs), stream.uniform(0.5, 3, jobs)
    due = work.sum(1) * stream.uniform(1.2, 4.0, jobs)

    def value(params: Params) -> float:
        return dispatched(params, order, work, family, importance, due)

    return value


def dispatched(params: Params, order: Any, work: Array, family: Any, importance: Array, due: Array) -> float:
    """The weighted lateness of one schedule."""
    jobs, machines = work.shape
    step, last = np.zeros(jobs, int), np.full(machines, -1)
    free_at, ready = np.zeros(machines), np.zeros(jobs)
    while (step < machines).any():
        machine = int(np.where([((step < machines) & (_next(order, step) == each)).any() for each in range(machines)],
                               free_at, np.inf).argmin())  # fmt: skip
        queue = np.flatnonzero((step < machines) & (_next(order, step) == machine))
        now = max(free_at[machine], ready[queue].min())
        here = queue[ready[queue] <= now + (params["horizon"] if params["wait"] else 0.0)]
        left = np.array([work[job, order[job, step[job] :]].sum() for job in here])
        own, change = work[here, machine], family[here] != last[machine]
        score = (
            params["work"] * own / 5
            + params["remaining"] * left / 25
            + params["due"] * np.sign(due[here] - now) * np.abs((due[here] - now) / 30) ** params["bend"]
            + params["slack"] * (due[here] - now - left) / 30
            + params["waited"] * (now - ready[here]) / 20
            + params["load"] * free_at[machine] / 100
            + params["weight"] * importance[here]
            + params["setup"] * change
        )
        job = int(here[score.argmin()])
        start = max(now, ready[job])
        free_at[machine] = ready[job] = start + work[job, machine] + (2.0 if family[job] != last[machine] else 0.0)
        last[machine], step[job] = family[job], step[job] + 1
    return float((importance * np.maximum(ready - due, 0)).sum() / jobs)


def _next(order: Any, step: Any) -> Any:
    """The machine that each job needs next; the last one for those that are done."""
    return order[np.arange(len(step)), np.minimum(step, order.shape[1] - 1)]


TASKS: dict[str, GroundTask] = {
    "smoothing": GroundTask(SMOOTHING, smoothing),
    "sunspots": GroundTask(LAGGED, lagged),
    "hunters": GroundTask(PREY, prey),
    "photograph": GroundTask(FILTER, filtered),
    "workshop": GroundTask(RULE, schedule),
}
