"""One run, from the first evaluation to its row."""

from deepbore.problems.suites import problem as problem_of
from deepbore.space import Params
from harness.job import Job
from harness.ledger import Ledger
from peers import methods
from peers.base import Peer

CHECKPOINTS = (25, 50, 100, 200, 500, 1000, 2000, 5000)  # at which recommendations are asked for
NOISY = ("bbob-noisy/", "noisy/", "networks-noisy/")  # how the names of noisy problems begin
Row = dict[str, object]


def run(job: Job) -> Row:
    """One run as a row of the results; scripts/benchmark.py says what stands in it."""
    problem = problem_of(job.problem, seed=job.seed)
    noisy = job.problem.startswith(NOISY)
    ledger = Ledger(problem, job.workers if job.rounds else 0)
    how = {"n_initial": job.initial, "noisy": noisy, "workers": job.workers}
    how |= {"constrained": True} if problem.constraints else {}
    peer = methods.make(job.method, problem.space, job.seed, **how)
    try:
        seconds = optimise(peer, ledger, job)
        row: Row = {
            "problem": job.problem,
            "method": job.label,
            "seed": job.seed,
            "workers": job.workers,
            "n": job.trials,
            "best": ledger.best,
            "recommended": ledger.recommended,
            "seconds": round(seconds, 3),
            "failed": ledger.failed,
            "version": peer.version,
        }
        return row | ({"rounds": ledger.rounds} if job.rounds else {})
    finally:
        peer.close()


def optimise(peer: Peer, ledger: Ledger, job: Job) -> float:
    """Runs to the end; returns the seconds of processor time that the peer took."""
    seconds, pending = 0.0, list[Params]()
    while (left := job.trials - ledger.n) > 0:
        started = peer.clock()
        if job.asynchronous or not pending:
            room = min(job.workers, left) - len(pending)
            pending += peer.ask(room) if room > 0 else []
        seconds += peer.clock() - started
        if not pending:  # nothing is left to try
            break
        params = pending.pop(0)
        outcome = ledger.evaluate(params)
        started = peer.clock()
        peer.tell_outcome(params, outcome)
        seconds += peer.clock() - started
        if peer.noisy and ledger.n in CHECKPOINTS:
            ledger.recommend(peer.recommend())
    return seconds
