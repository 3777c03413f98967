"""What a run has found, in a few lines."""

from deepbore.data.outcomes import Status
from deepbore.data.trial import Trial
from deepbore.study import Study


def summary(study: Study, optimum: float | None = None, recommended: Trial | None = None) -> str:
    """What a run has found, in a few lines.

    Args:
        study: the run.
        optimum: the value that can be reached; None if it is not known.
        recommended: `study.recommended`, which is shown where it is another than the best trial; None to leave it out.
    """
    observations = study.observations
    statuses = [int(code) for code in observations.status]
    parts = [f"{len(statuses)} trials"]
    unfinished = (Status.FAILED, Status.PENDING)
    parts += [f"{n} {status.name.lower()}" for status in unfinished if (n := statuses.count(status))]
    if observations.n_left == 0:
        parts.append("every configuration of the space")
    counts = ", ".join(parts)
    best = study.best_trial
    if best is None or best.value is None:
        return f"no value yet ({counts})"
    regret = "" if optimum is None else f", {abs(best.value - optimum):.3g} from the optimum"
    lines = [f"best value {best.value:.8g} in trial {best.id} ({counts}{regret})"]
    lines += _configuration(best)
    if recommended is not None and recommended.id != best.id:
        lines.append(f"recommended if values are noisy: trial {recommended.id}, value {recommended.value:.8g}")
        lines += _configuration(recommended)
    return "\n".join(lines)


def _configuration(trial: Trial) -> list[str]:
    return [f"  {name}: {value}" for name, value in trial.params.items()]
