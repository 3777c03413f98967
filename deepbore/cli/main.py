"""The command line: `deepbore fit` and `tune`, and `best`, `plot`, `report`, ... to look at runs."""

import difflib
import sys
from collections.abc import Callable, Sequence

from deepbore.cli import looking, tune
from deepbore.errors import DeepBoreError

HELP = """deepbore: Bayesian optimisation by probabilistic classification

  deepbore fit --config FILE.yaml    run an optimisation; `deepbore fit --help` says more
  deepbore tune --config FILE.yaml --space SPACE.yaml --metric NAME
                                     tune your own LightningCLI program; `deepbore tune --help` says more

  deepbore best RUN                  the best configuration of a run directory
  deepbore plot RUN                  a picture of a run: RUN/history.png
  deepbore report RUN                a page about a run: RUN/report.html; --quick does without the classifier
  deepbore watch RUN                 the same page, written anew while the run goes on
  deepbore compare RUN RUN ...       runs beside each other: a table, and a picture in comparison.png
  deepbore list DIR                  the runs in a folder: trials, best value, state
"""

FIT_HELP = """deepbore fit: an optimisation is one Lightning fit, an iteration is an epoch

  deepbore fit --config configs/hpolib_protein.yaml
  deepbore fit --config configs/hpolib_protein.yaml --loop.n_trials 200 --loop.seed 1 --run runs/longer

  --config FILE            YAML with the settings below; may be given more than once
  --run DIR                where the run is kept: config.yaml, journal.jsonl, journal.jsonl.ckpt, metrics.csv
                           (default: runs/ and the problem's name and a number)
  --resume RUN             go on with a run that was interrupted, up to loop.n_trials in total
  --warm_start FILE        earlier results, a CSV file: a column for each parameter and one named value
  --earlier_tasks.NAME FILE  the same of another task, of whatever scale, as many as there are
  --problem CLASS          what to optimise, as class_path and init_args: deepbore.problems.HPOLib, Digits, ..., or
                           FunctionProblem for your own function
  --loop.n_trials N        evaluations (default 100), earlier results not counted
  --loop.n_initial N       results before the classifier is asked (default 10), earlier ones counted
  --loop.batch_size Q      trials proposed in one iteration (default 1)
  --loop.seed N            of everything random in the run (default 0)
  --loop.timeout S         seconds, the initial design included, after which no further trial begins (default: no limit)
  --loop.max_failures N    the run ends with an error if the first N evaluations have all failed (default 20)
  --loop.budget SETTINGS   cheap fidelities: '{unit: epochs, low: 1, high: 81, factor: 3}'; the problem takes the trial
  --loop.acquisition CLASS --loop.candidates CLASS
  --evaluation.workers N   evaluations at the same time, each in a process of its own (default 1, in this process)
  --evaluation.timeout S   seconds that one may take before it counts as failed (default: no limit)
  --evaluation.retries N   how many times a failed one is tried again (default 0)
  --evaluator CLASS        an evaluator of your own, in place of --evaluation.*
  --model CLASS            the classifier: KernelPLS (default), DeepPLS, DeepEnsemble, MLPClassifier, ...
  --data.labels CLASS      ValueGradedLabels, ThresholdLabels, ... (default: what suits the model)
  --trainer.*              settings of Lightning's Trainer: accelerator, devices, max_time, logger, callbacks, ...

  --print_config           the whole configuration that would run
  --help-all               every setting, with its type and default
"""


def main(args: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    command, *rest = list(sys.argv[1:] if args is None else args) or ["--help"]
    commands: dict[str, Callable[[list[str]], None]] = {"fit": _fit, "tune": _tune, **looking.COMMANDS}
    if command in ("-h", "--help"):
        print(HELP)
        return 0
    if command not in commands:
        near = difflib.get_close_matches(command, commands, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        print(
            f"deepbore: the command must be one of {', '.join(commands)}, but got {command!r}.{hint}\n\n{HELP}",
            file=sys.stderr,
        )
        return 2
    try:
        commands[command](rest)
    except DeepBoreError as error:
        print(f"deepbore: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as shells have it
    return 0


# --- fit -------------------------------------------------------------------------------------------------------------


def _fit(args: list[str]) -> None:
    if args in ([], ["-h"], ["--help"]):
        print(FIT_HELP)
        return
    from deepbore.cli.fit import run_fit  # takes seconds to import: only for a run

    run_fit(["--help" if arg == "--help-all" else arg for arg in args])


def _tune(args: list[str]) -> None:
    if args in ([], ["-h"], ["--help"]):
        print(tune.HELP)
        return
    arguments = tune.fit_arguments(args)
    from deepbore.cli.fit import run_fit

    run_fit(arguments)
