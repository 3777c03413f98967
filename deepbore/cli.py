"""The command line: `deepbore fit`, `deepbore best RUN`, `deepbore plot RUN`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deepbore.errors import DeepBoreError, JournalError

if TYPE_CHECKING:
    from deepbore.study import Study

JOURNAL = "journal.jsonl"

HELP = """deepbore: Bayesian optimisation by probabilistic classification

  deepbore fit --config FILE.yaml    run an optimisation; `deepbore fit --help` says more
  deepbore best RUN                  the best configuration of a run directory
  deepbore plot RUN                  a picture of a run: RUN/history.png
"""

FIT_HELP = """deepbore fit: an optimisation is one Lightning fit, an iteration is an epoch

  deepbore fit --config configs/hpolib_protein.yaml
  deepbore fit --config configs/hpolib_protein.yaml --loop.n_trials 200 --loop.seed 1 --run runs/longer

  --config FILE            YAML with the settings below; may be given more than once
  --run DIR                where the run is kept: config.yaml, journal.jsonl, journal.ckpt, metrics.csv
                           (default: runs/ and the problem's name and a number)
  --resume RUN             go on with a run that was interrupted, up to loop.n_trials in total
  --problem CLASS          what to optimise, as class_path and init_args: deepbore.problems.HPOLib, Digits, ..., or
                           FunctionProblem for your own function
  --loop.n_trials N        evaluations (default 100)
  --loop.n_initial N       of them before the classifier is asked (default 10)
  --loop.batch_size Q      trials proposed in one iteration (default 1)
  --loop.seed N            of everything random in the run (default 0)
  --loop.acquisition CLASS --loop.candidates CLASS
  --evaluation.workers N   evaluations at the same time, each in a process of its own (default 1, in this process)
  --evaluation.timeout S   seconds that one may take before it counts as failed (default: no limit)
  --evaluation.retries N   how many times a failed one is tried again (default 0)
  --model CLASS            the classifier: KernelPLS (default), DeepPLS, DeepEnsemble, MLPClassifier, ...
  --data.labels CLASS      ValueGradedLabels, ThresholdLabels, ... (default: what suits the model)
  --trainer.*              every setting of Lightning's Trainer: accelerator, devices, max_time, logger, callbacks, ...

  --print_config           the whole configuration that would run
  --help-all               every setting, with its type and default
"""


def main(args: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status."""
    command, *rest = list(sys.argv[1:] if args is None else args) or ["--help"]
    commands: dict[str, Callable[[list[str]], None]] = {"fit": _fit, "best": _best, "plot": _plot}
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
    from deepbore.run import run_fit  # noqa: PLC0415  # takes seconds to import: only for a run

    run_fit(["--help" if arg == "--help-all" else arg for arg in args])


# --- looking at a run ------------------------------------------------------------------------------------------------


def _best(args: list[str]) -> None:
    study = _study(args, "best")
    print(summary(study))


def _plot(args: list[str]) -> None:
    study = _study(args, "plot")
    from deepbore.plots import history  # noqa: PLC0415

    run = Path(args[0])
    target = run / "history.png" if run.is_dir() else run.with_suffix(".png")
    direction = study.observations.direction
    history(study.result.values, direction=direction, gamma=_gamma(run), title=run.name, path=target)
    print(target)


def _study(args: list[str], command: str) -> "Study":
    if len(args) != 1 or args[0].startswith("-"):
        raise JournalError(f"usage: deepbore {command} RUN, a run directory or a journal, but got {args}.")
    from deepbore.study import Study  # noqa: PLC0415

    run = Path(args[0])
    return Study.load(run / JOURNAL if run.is_dir() else run)


def _gamma(run: Path) -> float:
    """The proportion that the run's configuration names, or that of the labels that suit its classifier."""
    import yaml  # noqa: PLC0415

    from deepbore import classifiers  # noqa: PLC0415
    from deepbore.labels import suited_labels  # noqa: PLC0415

    file = run / "config.yaml"
    config = yaml.safe_load(file.read_text()) if file.exists() else {}
    labels = (config.get("data") or {}).get("labels") or {}
    gamma = (labels.get("init_args") or {}).get("gamma")
    if isinstance(gamma, float):
        return gamma
    name = (config.get("model") or {}).get("class_path", "KernelPLS").rpartition(".")[2]
    head = getattr(classifiers, name, classifiers.KernelPLS)
    return suited_labels(head.estimates_labels).proportion(0)


def summary(study: "Study", optimum: float | None = None) -> str:
    """What a run has found, in a few lines."""
    from deepbore.observations import Status  # noqa: PLC0415  # this module is light to import

    observations = study.observations
    statuses = [int(code) for code in observations.status]
    parts = [f"{len(statuses)} trials"]
    unfinished = (Status.FAILED, Status.PENDING)
    parts += [f"{n} {status.name.lower()}" for status in unfinished if (n := statuses.count(status))]
    if observations.n_distinct == study.space.cardinality:
        parts.append("every configuration of the space")
    counts = ", ".join(parts)
    best = study.best_trial
    if best is None or best.value is None:
        return f"no value yet ({counts})"
    regret = "" if optimum is None else f", {abs(best.value - optimum):.3g} from the optimum"
    lines = [f"best value {best.value:.8g} in trial {best.id} ({counts}{regret})"]
    return "\n".join([*lines, *(f"  {name}: {value}" for name, value in best.params.items())])


if __name__ == "__main__":
    sys.exit(main())
