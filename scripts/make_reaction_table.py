#!/usr/bin/env python
"""The small cut of the direct arylation table that docs/reactions.md works with.

    python scripts/make_reaction_table.py FOLDER docs/reactions

FOLDER is experiments/data/direct_arylation of github.com/b-shields/edbo (MIT licence; Shields et al., Nature 2021). The
cut has the 192 reactions at 105 degrees and .1 mol/l, and eight columns of the DFT descriptors of each component.
"""

import sys
from pathlib import Path

import pandas as pd

COLUMNS = ["dipole", "molar_mass", "molar_volume", "homo_energy", "lumo_energy", "electronegativity", "hardness"]
COLUMNS += ["electrophilicity"]
COMPONENTS = {"base": "base", "ligand": "ligand-boltzmann", "solvent": "solvent"}


def main(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    yields = pd.read_csv(source / "experiment_index.csv").query("Concentration == 0.1 and Temp_C == 105")
    found = {}
    for name, file in COMPONENTS.items():
        frame = pd.read_csv(source / f"{file}_dft.csv").rename(columns=lambda each: each.removesuffix("_Boltz"))
        frame.columns = [each.removeprefix(f"{name}_") for each in frame.columns]
        short = frame.set_index("SMILES")["file_name"]
        found[name] = yields[f"{name.capitalize()}_SMILES"].map(short)
        frame.set_index("file_name")[COLUMNS].rename_axis(name).to_csv(target / f"{name}s.csv", float_format="%.6g")
    pd.DataFrame({**found, "yield": yields["yield"]}).to_csv(target / "yields.csv", index=False)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
