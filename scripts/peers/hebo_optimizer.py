"""HEBO, the winner of NeurIPS 2020's black-box optimisation challenge."""

import warnings

import numpy as np
import pandas as pd
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO as Optimizer
from pymoo.core.mixed import MixedVariableDuplicateElimination

from deepbore.space import Params, SearchSpace
from peers.base import HandlePeer


class HEBO(HandlePeer):
    """HEBO's defaults, with the given number of Sobol points.

    Ordinals are integers to it. It knows no conditions: inactive parameters are told at the value that it had asked
    for. Failures are as bad as the worst value.
    """

    packages = ("HEBO", "pymoo", "gpytorch", "torch")

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        warnings.simplefilter("ignore")
        MixedVariableDuplicateElimination._do = duplicates
        torch.manual_seed(self.seed)
        np.random.seed(self.seed)  # HEBO and pymoo draw from it
        self.optimizer = Optimizer(as_design_space(self.space), rand_sample=self.n_initial, scramble_seed=self.seed)

    def suggest(self, q: int) -> list[tuple[Params, pd.DataFrame]]:
        rows = self.optimizer.suggest(n_suggestions=q)
        return [(self.native(rows.iloc[row].to_dict()), rows.iloc[[row]]) for row in range(len(rows))]

    def observe(self, handle: pd.DataFrame, value: float | None) -> None:
        self.optimizer.observe(handle, np.array([[self.filled()[-1]]]))

    def native(self, row: dict) -> Params:
        """HEBO's row -> our configuration, without inactive parameters."""
        columns = {}
        for name, p in self.space.parameters.items():
            value = row[name]
            if p.kind == "real":
                value = min(max(float(value), p.low), p.high)
            elif p.kind == "integer":
                value = min(max(round(value), p.low), p.high)
            else:
                value = p.choices[int(value)]
            columns[name] = [value]
        return self.space.decode(self.space.points.encode_columns(columns))[0]


def duplicates(_, pop, other, is_duplicate: np.ndarray) -> np.ndarray:
    """What pymoo says of duplicates in its populations, by hashing: it compares every pair, half of HEBO's time."""
    keys = [tuple(one.X.items()) for one in pop]
    seen = {tuple(one.X.items()) for one in (() if other is None else other)}
    for row in reversed(range(len(keys))):  # of equal ones in one population the last is none
        is_duplicate[row] |= keys[row] in seen
        if other is None:
            seen.add(keys[row])
    return is_duplicate


def as_design_space(space: SearchSpace) -> DesignSpace:
    """Our space -> HEBO's; choices by their numbers."""
    declared = []
    for name, p in space.parameters.items():
        if p.kind in ("real", "integer"):
            kind = {"real": ("num", "pow"), "integer": ("int", "pow_int")}[p.kind][p.log]
            declared.append({"name": name, "type": kind, "lb": p.low, "ub": p.high})
        elif p.kind == "ordinal":
            declared.append({"name": name, "type": "int", "lb": 0, "ub": p.levels - 1})
        else:
            declared.append({"name": name, "type": "cat", "categories": list(range(p.levels))})
    return DesignSpace().parse(declared)
