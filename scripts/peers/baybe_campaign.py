"""A run of BayBE on a table of reactions: JSON from standard input, yields to standard output."""

import json
import sys

import numpy as np
import pandas as pd
import torch
from baybe import Campaign
from baybe.parameters import CustomDiscreteParameter, NumericalDiscreteParameter
from baybe.searchspace import SearchSpace
from baybe.targets import NumericalTarget

TARGET = "yield"


def main() -> None:
    asked = json.load(sys.stdin)
    np.random.seed(asked["seed"])
    torch.manual_seed(asked["seed"])
    parameters = []
    for name, levels in asked["levels"].items():
        if name in asked["descriptors"]:
            split = asked["descriptors"][name]
            data = pd.DataFrame(split["data"], index=split["index"], columns=split["columns"])
            parameters.append(CustomDiscreteParameter(name, data.loc[:, data.nunique() > 1]))
        else:
            parameters.append(NumericalDiscreteParameter(name, levels))
    value_of = {tuple(row): value for row, value in zip(asked["rows"], asked["yields"], strict=True)}
    campaign = Campaign(SearchSpace.from_product(parameters), NumericalTarget(TARGET).to_objective())
    found = []
    while len(found) < asked["budget"]:
        batch = campaign.recommend(asked["batch"])
        batch[TARGET] = [value_of[tuple(row)] for row in batch[list(asked["levels"])].values.tolist()]
        campaign.add_measurements(batch)
        found += batch[TARGET].tolist()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
