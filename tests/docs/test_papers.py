"""The protocols in configs/papers: the papers' numbers, where they stand, and a run of each."""

import re

import pytest

from deepbore import Study
from deepbore.cli.config import RunCLI, load_yaml
from deepbore.cli.main import main
from deepbore.loop.quiet import quiet
from processes import ROOT

FOLDER = ROOT / "configs" / "papers"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}
THIRD, QUARTER = 1 / 3, 1 / 4

# --- the papers' numbers: (setting, value) by where they stand -------------------------------------------------------

BORE = {"gamma": THIRD}  # Tiao et al. 2021, section 5
J1 = {**BORE, "RandomForest.trees": 100, "RandomForest.min_samples_split": 2, "RandomForest.max_depth": None}
J2 = {
    **BORE,
    "XGBoost.rounds": 100,
    "XGBoost.learning_rate": 0.3,
    "XGBoost.min_child_weight": 1,
    "XGBoost.max_depth": 6,
}
DISCRETE = {"RandomSearch.samples": 500}  # section 5
CONTINUOUS = {"DifferentialEvolution.evaluations": 2000, "DifferentialEvolution.near_best": False}  # section 5
RANDOM_STARTS = {"MultiStartLBFGS.restarts": 3, "MultiStartLBFGS.samples": 3, "MultiStartLBFGS.near_best": False}
NETWORK = {"MLPClassifier.hidden": [32, 32], "Training.steps": 100, "Training.batch_size": 64}
J3 = {**BORE, **NETWORK, **RANDOM_STARTS}
FIGURES_7_AND_11 = {**CONTINUOUS, "ExpectedProbability.by": "samples", "Calibrated.ensemble": True}
D31 = {  # Oliveira et al. 2022, appendix D.3.1
    "gamma": QUARTER,
    "KernelPLS.kernel": "rational_quadratic",
    "KernelPLS.regularisation": 0.025,
    "KernelPLS.prior": False,
    "MultiStartLBFGS.iterations": 1000,
    "MultiStartLBFGS.near_best": False,
}
SVGD = {  # table D.4
    "SVGDCandidates.steps": 1000,
    "SVGDCandidates.step_size": 0.001,
    "SVGDCandidates.start": "uniform",
    "SVGDCandidates.sweeps": 0,
}
D2 = {**NETWORK, **SVGD, "gamma": QUARTER, "batch_size": 10, "n_initial": 10}  # section 7, appendix D.2, table D.3
E = {"gamma": QUARTER, "FourierLogistic.features": 300, "SVGDCandidates.optimizer": "lbfgs", "Noisy.scale": 0.01}
UPPER = {"UpperConfidenceBound.kappa": 3}  # appendices D.3.1 and E
S5 = {  # Hassen & Rish 2021, section 5
    "gamma": THIRD,
    "LaplaceGGN.hidden": [32, 32],
    "LaplaceGGN.activation": "relu",
    "Training.batch_size": 32,
    "EpsilonGreedy.epsilon": 0.1,
    "ExpectedProbability.by": "samples",  # eq. 7.6
}
RELU, ELU = {"MLPClassifier.activation": "relu"}, {"MLPClassifier.activation": "elu"}
PUBLISHED = {
    "bore_mlp": {**J3, **RELU},
    "bore_mlp_elu": {**J3, **ELU},
    "bore_mlp_quarter": {**J3, **RELU, "gamma": QUARTER},  # Oliveira et al. 2022, D.3.1
    "bore_rf": {**J1, **DISCRETE},
    "bore_rf_continuous": {**J1, **CONTINUOUS},
    "bore_rf_platt": {**J1, **FIGURES_7_AND_11, "Calibrated.method": "platt"},
    "bore_rf_isotonic": {**J1, **FIGURES_7_AND_11, "Calibrated.method": "isotonic"},
    "bore_xgb": {**J2, **DISCRETE},
    "bore_xgb_continuous": {**J2, **CONTINUOUS},
    "bore_xgb_platt": {**J2, **FIGURES_7_AND_11, "Calibrated.method": "platt"},
    "bore_xgb_isotonic": {**J2, **FIGURES_7_AND_11, "Calibrated.method": "isotonic"},
    "bore_gp": {**BORE, **RANDOM_STARTS},
    "lfbo_rf": {**J1, **CONTINUOUS},  # Song et al. 2022: LFBO takes BORE's settings
    "lfbo_xgb": {**J2, **CONTINUOUS},
    "lfbo_mlp": {**J3, **RELU},
    "bore_pls": D31,
    "borepp": {**D31, **UPPER},
    "batch_bore": {**D2, **RELU},
    "batch_bore_elu": {**D2, **ELU},
    "batch_bore_camel": {**D2, **ELU, "Training.steps": 200},  # table D.3's footnote
    "batch_bore_hartmann3": {**D2, **ELU, "SVGDCandidates.steps": 500},  # table D.4's footnote
    "fourier_logistic": E,
    "fourier_logistic_pp": {**E, **UPPER},
    "boggn": {**S5, "RandomSearch.samples": 500},  # section 5.2
    "boggn_continuous": {**S5, "MultiStartLBFGS.samples": 2000, "MultiStartLBFGS.near_best": False},  # 5 and 5.2
}


def settings(node, name=""):
    """All settings of a file, each by its part's name, if it has one, and its own."""
    found = {}
    for key, value in node.items():
        if isinstance(value, dict):
            part = "Training" if key == "training" else str(value.get("class_path", name)).rpartition(".")[2]
            found |= settings(value, part)
        else:
            found |= {f"{name}.{key}": value, key: value}
    return found


def opened(name):
    with quiet():
        return RunCLI(["--config", str(FILES[name])])


def test_every_file_is_in_the_table():
    assert set(FILES) == set(PUBLISHED)


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_the_numbers_of_the_paper(name):
    has = settings(load_yaml(FILES[name].read_text()))
    assert {setting: has[setting] for setting in PUBLISHED[name]} == PUBLISHED[name]
    assert f"{'ImprovementLabels' if name.startswith('lfbo') else 'ThresholdLabels'}.gamma" in has
    if not {"UpperConfidenceBound.kappa", "ExpectedProbability.by"} & set(PUBLISHED[name]):
        assert "deepbore.acquisition.ClassProbability" in FILES[name].read_text()


@pytest.mark.parametrize("name", FILES)
def test_a_file_names_its_source_and_its_departures(name):
    comment = re.match(r"(#.*\n)+", FILES[name].read_text())[0]
    assert re.search(r"\((Tiao|Oliveira|Hassen|Song).*(section|appendix|eq\.)", comment.replace("\n# ", " "))
    assert "# Departures and choices:" in comment


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_protocol_runs_and_its_classifier_chooses(name):
    run = opened(name)
    loop, q = run.loop, run.loop.batch_size
    parts = {"labels": run.labels, "acquisition": loop.acquisition, "candidates": loop.candidates}
    study = Study(run.problem.space, seed=0, classifier=run.model, n_initial=loop.n_initial, **parts)
    for asked in (loop.n_initial, q, q):
        trials = study.ask(asked)
        for trial in trials:
            study.tell(trial, run.problem(trial.params))
    assert run.model.ready
    assert len({str(trial.params) for trial in study.trials}) == loop.n_initial + 2 * q


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bore_mlp_elu", "lfbo_xgb"])
def test_the_command_line_runs_a_file(name, tmp_path, capsys):
    assert main(["fit", "--config", str(FILES[name]), "--loop.n_trials", "12", "--run", str(tmp_path / "run")]) == 0
    assert "12" in capsys.readouterr().out
