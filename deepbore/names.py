"""Names that users of other tools type, and what deepbore calls the same: for errors about unknown names."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

ARGUMENTS = {  # of functions and classes
    # Optuna
    "sampler": 'strategy=, or classifier=, acquisition= and candidates=; "random", "sobol" and "grid" are strategies',
    "storage": "journal=, a file",
    "study_name": "journal=, a file: its name is that of the study",
    "load_if_exists": 'if_exists="load"',
    "n_startup_trials": "n_initial=",
    "n_jobs": "workers=",
    "show_progress_bar": "progress=",
    "catch": "max_failures=: an objective that raises is a failed trial, and the run goes on",
    "gc_after_trial": "callbacks=[lambda study, trial: gc.collect()]",
    "func": "objective, the first argument",
    "fixed_distributions": "Study(space)",
    "search_space": "space",
    "study_directions": "directions=",
    # Ax, BoTorch
    "parameters": "space, the second argument",
    "total_trials": "n_trials=",
    "objectives": 'directions={"loss": "minimize", ...}',
    "objective_name": 'directions={"loss": "minimize"}',
    "outcome_constraints": "Outcome(value, constraints=[...])",
    "parameter_constraints": 'SearchSpace({...}, constraints=["a + b <= 1"])',
    "random_seed": "seed=",
    "experiment_name": "journal=, a file",
    # Ray Tune, W&B
    "metric": "the value that the objective returns",
    "mode": "direction=",
    "num_samples": "n_trials=",
    "param_space": "space",
    "config": "space",
    "max_concurrent_trials": "workers=",
    "max_concurrent": "workers=",
    "time_budget_s": "timeout=",
    "points_to_evaluate": "Study(space).enqueue(params), or Real(..., default=...)",
    "evaluated_rewards": "Study(space).add(columns, values)",
    "scheduler": "budget=, or pruner=",
    "search_alg": "strategy=",
    # scikit-learn, scikit-optimize, hyperopt, SMAC
    "random_state": "seed=",
    "n_calls": "n_trials=",
    "n_iter": "n_trials=",
    "max_evals": "n_trials=",
    "n_initial_points": "n_initial=",
    "init_points": "n_initial=",
    "dimensions": "space",
    "pbounds": "space",
    "algo": "strategy=",
    "configspace": "deepbore.integrations.configspace.from_configspace",
    "walltime_limit": "timeout=",
    "max_cost": "cost_limit=",
    "resource_limit": "cost_limit=",
    "n_workers": "workers=",
    "maximize": 'direction="maximize"',
    "minimize": 'direction="minimize"',
    "batch": "batch_size=",
    "early_stopping": "stop_when=[NoImprovement(trials=20)]",
    # of parameters of a space
    "lower": "low",
    "upper": "high",
    "lo": "low",
    "hi": "high",
    "min": "low",
    "max": "high",
    "bounds": "low and high: Real(low, high)",
    "log_scale": "log=True",
    "prior": "log=True; what is believed of the best value is prior= of Real, Integer, Ordinal, Categorical",
    "base": "log=True",
    "q": "step=",
    "values": "choices",
    "categories": "choices",
    "items": "choices",
    "condition": "when=",
    "conditions": "when=",
    "default_value": "default=",
    "weights": "prior=",
    "mu": "prior=Normal(centre, spread)",
    # of pruners
    "n_warmup_steps": "warmup_steps=",
    "n_min_trials": "startup_trials=",
    "min_resource": "low=",
    "reduction_factor": "factor=",
    "grace_period": "low=",
    "wrapped_pruner": "pruner=",
}
ATTRIBUTES = {  # of the package, and of what it gives
    # Optuna
    "create_study": "Study(space), or minimize(objective, space, n_trials)",
    "load_study": "Study.load(journal)",
    "delete_study": "the journal, a file that you may delete",
    "best_trials": "pareto_front",
    "trials_dataframe": "to_frame()",
    "get_trials": "trials",
    "enqueue_trial": "enqueue(params)",
    "add_trial": "add(params, value)",
    "add_trials": "add(columns, values)",
    "set_user_attr": "study.annotate(trial, {...})",
    "user_attrs": "attributes",
    "system_attrs": "attributes",
    "set_metric_names": 'directions={"loss": "minimize", ...}',
    "metric_names": "objectives",
    "number": "id",
    "state": "status",
    "duration": "attributes",
    "suggest_float": 'Real(low, high, log=...) in the space; its value is params["NAME"]',
    "suggest_int": 'Integer(low, high, log=...) in the space; its value is params["NAME"]',
    "suggest_categorical": 'Categorical([...]) in the space; its value is params["NAME"]',
    "suggest_uniform": 'Real(low, high) in the space; its value is params["NAME"]',
    "suggest_loguniform": 'Real(low, high, log=True) in the space; its value is params["NAME"]',
    "set_constraint": "Outcome(value, constraints=[...])",
    "TPESampler": "the default strategy, which needs no name",
    "RandomSampler": 'strategy="random"',
    "GridSampler": 'strategy="grid"',
    "QMCSampler": 'strategy="sobol"',
    "HyperbandPruner": "SuccessiveHalvingPruner, or Budget",
    "ASHAScheduler": "SuccessiveHalvingPruner, or Budget",
    "MedianStoppingRule": "MedianPruner",
    "ThresholdPruner": "a Pruner of your own, one method",
    "PercentilePruner": "MedianPruner, or a Pruner of your own, one method",
    "NopPruner": "pruner=None",
    "visualization": "plots",
    "Choice": "Categorical([...])",
    # Ax
    "AxClient": "Study(space)",
    "create_experiment": "Study(space)",
    "get_next_trial": "ask_one()",
    "get_next_trials": "ask(q)",
    "complete_trial": "tell(trial, value)",
    "log_trial_failure": "tell(trial, failed=True)",
    "get_best_parameters": "best_params",
    "get_pareto_optimal_parameters": "pareto_front",
    "attach_trial": "enqueue(params), or add(params, value)",
    "optimize_loop": "minimize(objective, space, n_trials)",
    "arm": "params",
    # Ray Tune, W&B, hyperopt
    "Tuner": "minimize(objective, space, n_trials)",
    "run": "minimize(objective, space, n_trials)",
    "fmin": "minimize(objective, space, n_trials)",
    "sweep": "minimize(objective, space, n_trials)",
    "agent": "minimize(objective, space, n_trials)",
    "get_best_result": "best_trial",
    "best_config": "best_params",
    "best_result": "best_value",
    "get_dataframe": "study.to_frame()",
    "results_df": "study.to_frame()",
    "uniform": "Real(low, high)",
    "loguniform": "Real(low, high, log=True)",
    "quniform": "Real(low, high, step=...)",
    "randint": "Integer(low, high)",
    "lograndint": "Integer(low, high, log=True)",
    "choice": "Categorical([...])",
    # scikit-optimize, SciPy, ConfigSpace
    "Float": "Real(low, high)",
    "Int": "Integer(low, high)",
    "ConfigurationSpace": "SearchSpace",
    "Space": "SearchSpace",
    "gp_minimize": "minimize(objective, space, n_trials)",
    "suggest": "ask()",
    "observe": "tell(trial, value)",
    "x": "best_params",
    "fun": "best_value",
    "best_params_": "best_params",
    "best_score_": "best_value",
}


LIKE = 0.7  # from which a name in a declaration or a configuration is near: others may be meant for something else


def meant(name: str, known: Collection[str], foreign: dict[str, str] = ARGUMENTS) -> str:
    """An unknown name in quotes, with what is likely meant: the same in words of deepbore, or the nearest known name.

    Example:
        >>> meant("n_calls", ["n_trials"]), meant("sed", ["seed"])
        ("'n_calls'. Here it is n_trials=", "'sed'. Did you mean 'seed'?")
    """
    if name in foreign:
        return f"{name!r}. Here it is {foreign[name]}"
    hint = did_you_mean(name, known, "{!r}")
    return f"{name!r}." + hint if hint else f"{name!r}"


def did_you_mean(name: str, known: Iterable[str], shown: str = "{}", likeness: float = 0.6) -> str:
    """A hint that ends a message, " Did you mean ...?"; empty where no known name is near.

    Args:
        name: that is not known.
        known: names; one that ends with a dot and the name, as `loop.seed` does with `seed`, is nearest.
        shown: how a name is shown.
        likeness: from which a name is near, from 0 to 1: as `difflib` has it.

    Example:
        >>> did_you_mean("sed", ["loop.seed", "seed"], "--{}"), did_you_mean("x", ["seed"])
        (' Did you mean --seed?', '')
    """
    near = nearest(name, known, likeness)
    return f" Did you mean {shown.format(near)}?" if near else ""


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is likely meant; None where none is near."""
    names = sorted(known)
    within = [each for each in names if each.endswith(f".{name}")]
    return next(iter(within or difflib.get_close_matches(name, names, 1, likeness)), None)


def no_attribute(of: str, name: str, known: Collection[str]) -> AttributeError:
    """The error of an attribute that is not there, with what is likely meant."""
    return AttributeError(f"{of} has no attribute {meant(name, known, ATTRIBUTES)}", name=name)


# --- declarations of parameters ---------------------------------------------------------------------------------------


TYPES = {  # of a parameter, in YAML and journals, with their settings
    "real": {"low", "high", "log", "step", "default", "prior", "when"},
    "integer": {"low", "high", "log", "step", "default", "prior", "when"},
    "ordinal": {"choices", "default", "prior", "when"},
    "categorical": {"choices", "features", "default", "prior", "when"},
    "library": {"features", "names", "size", "default", "when"},
}
OTHER_TYPES = {  # what others call them
    **dict.fromkeys(("float", "double", "continuous", "uniform", "range", "number", "quniform"), "real"),
    **dict.fromkeys(("loguniform", "log_uniform", "log", "logreal"), "real, log: true"),
    **dict.fromkeys(("int", "randint", "discrete", "int_uniform", "q_uniform"), "integer"),
    **dict.fromkeys(("cat", "choice", "choices", "category", "enum", "string", "str", "nominal"), "categorical"),
    **dict.fromkeys(("bool", "boolean", "flag"), "categorical, choices: [false, true]"),
    **dict.fromkeys(("grid", "values", "ordered"), "ordinal"),
}
OTHER_SETTINGS = {
    **dict.fromkeys(("min", "lower", "minimum", "lb", "from", "start"), "low"),
    **dict.fromkeys(("max", "upper", "maximum", "ub", "to", "stop", "end"), "high"),
    **dict.fromkeys(("log_scale", "logscale", "log_uniform", "logarithmic"), "log: true"),
    **dict.fromkeys(("values", "options", "categories", "items", "levels", "value"), "choices"),
    **dict.fromkeys(("q", "quantum", "interval"), "step"),
    **dict.fromkeys(("condition", "conditions", "if", "parent", "depends_on"), "when"),
    **dict.fromkeys(("init", "initial", "default_value"), "default"),
    **dict.fromkeys(("distribution", "kind"), "type"),
}


def slip_in(declared: Mapping[str, Any]) -> str:
    """What is wrong with a parameter that has a type or a setting which others call so, or which is nearly right.

    Example:
        >>> slip_in({"type": "float", "min": 0, "max": 1})
        "has type 'float'. Did you mean real?"
        >>> slip_in({"type": "real", "min": 0, "max": 1})
        "has no setting 'min'. Did you mean low?"
        >>> slip_in({"type": "real", "low": 0, "high": 1})
        ''
    """
    kind = declared.get("type")
    if isinstance(kind, str) and kind not in TYPES:
        near = OTHER_TYPES.get(kind.lower()) or nearest(kind, TYPES, LIKE)
        return f"has type {kind!r}. Did you mean {near}?" if near else ""
    for setting in map(str, declared) if kind in TYPES else ():
        known = TYPES[str(kind)] | {"type"}
        if setting not in known:
            near = OTHER_SETTINGS.get(setting) or nearest(setting, known, LIKE)
            hint = f"Did you mean {near}?" if near else f"It has {', '.join(sorted(known))}."
            return f"has no setting {setting!r}. {hint}"
    return ""
