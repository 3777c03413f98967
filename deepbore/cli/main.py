"""The command line: `fit` and `tune`; `lead` and `work`; `best`, `plot`, ... to look at runs; `withdraw`, `correct`."""

import os
import select
import sys
from collections.abc import Callable, Sequence

from deepbore import __version__
from deepbore.cli import dashboard, fit_help, inspect, revise, share, tune
from deepbore.cli.new_run import leave_unused
from deepbore.cli.slips import as_nested, check_fit
from deepbore.errors import DeepBoreError
from deepbore.lazy import torchvision_named
from deepbore.names import did_you_mean

HELP = """deepbore: Bayesian optimisation by probabilistic classification

  deepbore fit --config FILE.yaml    run an optimisation; `deepbore fit --help` says more
  deepbore tune --config FILE.yaml --space SPACE.yaml --metric NAME
                                     tune your own LightningCLI program; `deepbore tune --help` says more
  deepbore lead --storage URL --study NAME --config FILE.yaml
                                     propose for workers on many machines; `deepbore lead --help` says more
  deepbore work --storage URL --study NAME TARGET
                                     evaluate trials of such a study: TARGET is train.py:train, say

  deepbore best RUN                  the best configuration of a run directory
  deepbore summary RUN               what was found, what failed, what limits it, what to do next: ten lines
  deepbore plot RUN                  a picture of a run: RUN/history.png
  deepbore report RUN                a page about a run: RUN/report.html; --quick does without the classifier
  deepbore report RUN RUN ...        several runs beside each other on one page: runs.html
  deepbore watch RUN ...             the same pages, written anew while a run goes on
  deepbore compare RUN RUN ...       runs beside each other: a table, and a picture in comparison.png
  deepbore dashboard RUNS ...        runs in a browser, live: a list, their pages, several side by side; notes, commands
  deepbore list DIR                  the runs in a folder: trials, best value, state

  deepbore withdraw RUN ID ...       takes trials back, as if they had never been told; --reason says why
  deepbore correct RUN ID VALUE ...  replaces the outcome of a trial
  deepbore rerun RUN [ID ...]        queues failed trials again, or others by their numbers
"""


def main(args: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    try:
        with torchvision_named():
            _run(*(list(sys.argv[1:] if args is None else args) or ["--help"]))
        sys.stdout.flush()
    except DeepBoreError as error:
        print(f"deepbore: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as shells have it
    except BrokenPipeError:
        if sys.platform == "win32" or _is_open():  # it was another pipe
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the buffered rest of the output
        return 141  # 128 + SIGPIPE
    return 0


def _is_open() -> bool:
    """Whether stdout is still open; `| head` closes it early."""
    output = select.poll()
    output.register(sys.stdout, 0)  # for errors only
    return not output.poll(0)


def _run(command: str, *args: str) -> None:
    commands: dict[str, Callable[[list[str]], None]] = {
        "fit": _fit,
        "tune": _tune,
        **share.COMMANDS,
        **inspect.COMMANDS,
        **revise.COMMANDS,
        **dashboard.COMMANDS,
    }
    if command in ("-h", "--help", "--version"):
        print(HELP if command != "--version" else f"deepbore {__version__}")
        return
    if command not in commands:
        hint = did_you_mean(command, commands)
        raise DeepBoreError(f"the command must be one of {', '.join(commands)}, but got {command!r}.{hint}\n\n{HELP}")
    commands[command](list(args))


# --- fit -------------------------------------------------------------------------------------------------------------


def _fit(args: list[str]) -> None:
    if args in ([], ["-h"], ["--help"]):
        print(fit_help.HELP)
        return
    arguments = as_nested(["--help" if arg == "--help-all" else arg for arg in args])
    check_fit(arguments)
    from deepbore.cli.fit import run_fit  # takes seconds to import: only for a run

    with leave_unused():
        run_fit(arguments)


def _tune(args: list[str]) -> None:
    if args in ([], ["-h"], ["--help"]):
        print(tune.HELP)
        return
    with leave_unused():
        arguments = tune.fit_arguments(args)
        from deepbore.cli.fit import run_fit

        run_fit(arguments)
