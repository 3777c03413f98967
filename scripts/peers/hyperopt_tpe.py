"""The tree-structured Parzen estimator of HyperOpt, one parameter at a time, by its documents of trials."""

import math

import hyperopt
import numpy as np
import torch
from hyperopt import hp
from hyperopt.base import JOB_STATE_DONE, Domain

from deepbore.space import Params
from deepbore.space.parameters import Parameter
from peers.base import HandlePeer


class TPE(HandlePeer):
    """`hyperopt.tpe` with its defaults (Bergstra et al., NIPS 2011), but for the size of the random design.

    Categories are `choice`, ordinals and whole numbers `quniform`, or `qloguniform` on a logarithmic scale. A parameter
    is estimated from the trials in which it was active, as in HyperOpt's own trees. Pending and failed trials count as
    bad, which is HyperOpt's way.
    """

    packages = ("hyperopt",)

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.random = np.random.default_rng(self.seed)
        self.trials = hyperopt.Trials()
        self.domain = Domain(None, {name: dimension(name, p) for name, p in self.space.parameters.items()})

    def suggest(self, q: int) -> list[tuple[Params, int]]:
        return [self.suggested() for _ in range(q)]

    def suggested(self) -> tuple[Params, int]:
        """A configuration, and the number of its trial."""
        (number,) = self.trials.new_trial_ids(1)
        seed = int(self.random.integers(2**31 - 1))  # as `hyperopt.fmin`
        settings = {"n_startup_jobs": self.n_initial, "verbose": False}
        (document,) = hyperopt.tpe.suggest([number], self.domain, self.trials, seed, **settings)
        rows, drawn = document["misc"]["idxs"], document["misc"]["vals"]
        columns = {name: [native(p, drawn[name][0])] for name, p in self.space.parameters.items()}
        params = self.space.decode(self.space.points.encode_columns(columns))[0]
        for inactive in self.space.parameters.keys() - params.keys():
            rows[inactive], drawn[inactive] = [], []
        self.trials.insert_trial_docs([document])
        self.trials.refresh()
        return params, number

    def observe(self, handle: int, value: float | None) -> None:
        document = next(trial for trial in self.trials.trials if trial["tid"] == handle)
        failed = {"status": hyperopt.STATUS_FAIL}
        document["result"] = failed if value is None else {"status": hyperopt.STATUS_OK, "loss": value}
        document["state"] = JOB_STATE_DONE
        self.trials.refresh()


def dimension(name: str, p: Parameter) -> object:
    """A parameter in HyperOpt's terms; the end levels have as large a share as others."""
    if p.kind == "categorical":
        return hp.choice(name, range(p.levels))
    if p.levels is None:
        return hp.loguniform(name, math.log(p.low), math.log(p.high)) if p.log else hp.uniform(name, p.low, p.high)
    if p.kind == "integer" and p.log:
        return hp.qloguniform(name, math.log(p.low - 0.5), math.log(p.high + 0.5), 1)
    return hp.quniform(name, -0.5, p.levels - 0.5, 1)


def native(p: Parameter, drawn: float) -> object:
    """The value that HyperOpt has drawn; its rounding may lead just over the ends."""
    if p.levels is None:
        return min(max(float(drawn), p.low), p.high)
    first = p.low if p.kind == "integer" and p.log else 0
    level = torch.tensor([drawn - first], dtype=torch.float64).clamp(0, p.levels - 1)
    return p.decode(p.from_level(level))[0]
