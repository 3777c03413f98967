"""The command line: `deepbore fit` and `tune`, and `best`, `plot` and `report` to look at a run."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from deepbore.cli import tune
from deepbore.cli.run_directory import CONFIG, journal_of
from deepbore.errors import DeepBoreError, JournalError

HELP = """deepbore: Bayesian optimisation by probabilistic classification

  deepbore fit --config FILE.yaml    run an optimisation; `deepbore fit --help` says more
  deepbore tune --config FILE.yaml --space SPACE.yaml --metric NAME
                                     tune your own LightningCLI program; `deepbore tune --help` says more
  deepbore best RUN                  the best configuration of a run directory
  deepbore plot RUN                  a picture of a run: RUN/history.png
  deepbore report RUN                a page with all pictures of a run: RUN/report.html
"""

FIT_HELP = """deepbore fit: an optimisation is one Lightning fit, an iteration is an epoch

  deepbore fit --config configs/hpolib_protein.yaml
  deepbore fit --config configs/hpolib_protein.yaml --loop.n_trials 200 --loop.seed 1 --run runs/longer

  --config FILE            YAML with the settings below; may be given more than once
  --run DIR                where the run is kept: config.yaml, journal.jsonl, journal.jsonl.ckpt, metrics.csv
                           (default: runs/ and the problem's name and a number)
  --resume RUN             go on with a run that was interrupted, up to loop.n_trials in total
  --warm_start FILE        earlier results, a CSV file: a column for each parameter and one named value
  --problem CLASS          what to optimise, as class_path and init_args: deepbore.problems.HPOLib, Digits, ..., or
                           FunctionProblem for your own function
  --loop.n_trials N        evaluations (default 100), earlier results not counted
  --loop.n_initial N       results before the classifier is asked (default 10), earlier ones counted
  --loop.batch_size Q      trials proposed in one iteration (default 1)
  --loop.seed N            of everything random in the run (default 0)
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
    commands: dict[str, Callable[[list[str]], None]] = {
        "fit": _fit,
        "tune": _tune,
        "best": _best,
        "plot": _plot,
        "report": _report,
    }
    if command in ("-h", "--help"):
        print(HELP)
        return 0
    if command not in commands:
        print(
            f"deepbore: the command must be one of {', '.join(commands)}, but got {command!r}.\n\n{HELP}",
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
    from deepbore.cli.fit import run_fit  # noqa: PLC0415  # takes seconds to import: only for a run

    run_fit(["--help" if arg == "--help-all" else arg for arg in args])


def _tune(args: list[str]) -> None:
    if args in ([], ["-h"], ["--help"]):
        print(tune.HELP)
        return
    arguments = tune.fit_arguments(args)
    from deepbore.cli.fit import run_fit  # noqa: PLC0415

    run_fit(arguments)


# --- looking at a run ------------------------------------------------------------------------------------------------


def _best(args: list[str]) -> None:
    run = _run(args, "best")
    from deepbore.cli.load import load_run  # noqa: PLC0415
    from deepbore.cli.summary import summary  # noqa: PLC0415

    print(summary(load_run(run)))


def _plot(args: list[str]) -> None:
    run = _run(args, "plot")
    from deepbore.cli.load import load_run  # noqa: PLC0415
    from deepbore.plots import history  # noqa: PLC0415

    target = run / "history.png" if run.is_dir() else run.with_suffix(".png")
    history(load_run(run), title=run.name, path=target)
    print(target)


def _report(args: list[str]) -> None:
    run = _run(args, "report")
    from deepbore.cli.load import load_run  # noqa: PLC0415
    from deepbore.plots import report  # noqa: PLC0415

    study = load_run(run)
    study.fit()
    target = run / "report.html" if run.is_dir() else run.with_suffix(".html")
    config = run / CONFIG
    configuration = config.read_text(encoding="utf-8") if config.exists() else ""
    last = datetime.fromtimestamp(journal_of(run).stat().st_mtime).astimezone()
    facts = {"last event": f"{last:%Y-%m-%d %H:%M %Z}", "pictures": "of the classifier trained anew on these trials"}
    page = report(study, title=f"deepbore: {run.resolve().name}", facts=facts, configuration=configuration)
    target.write_text(page, encoding="utf-8")
    print(target)


def _run(args: list[str], command: str) -> Path:
    if len(args) != 1 or args[0].startswith("-"):
        raise JournalError(f"usage: deepbore {command} RUN, a run directory or a journal, but got {args}.")
    return Path(args[0])
