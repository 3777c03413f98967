"""What a run has found, in a few lines."""

from deepbore.data.outcomes import Status
from deepbore.study import Study


def summary(study: Study, optimum: float | None = None) -> str:
    """What a run has found, in a few lines."""
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
    return "\n".join([*lines, *(f"  {name}: {value}" for name, value in best.params.items())])
