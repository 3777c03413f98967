"""One line for every export that has a contract; `test_house.py` checks that none is missing."""

import numpy as np

from deepbore import acquisition, candidates, classifiers, labels, problems, space, strategies
from deepbore.data import Budget

QUICK = classifiers.Training(steps=50)

CLASSIFIERS = {
    "MLPClassifier": lambda: classifiers.MLPClassifier(training=QUICK),
    "DeepEnsemble": lambda: classifiers.DeepEnsemble(training=QUICK),
    "HyperDeepEnsemble": lambda: classifiers.HyperDeepEnsemble(training=QUICK),
    "MCDropout": lambda: classifiers.MCDropout(training=QUICK),
    "LaplaceGGN": lambda: classifiers.LaplaceGGN(training=QUICK),
    "KernelPLS": classifiers.KernelPLS,
    "LibraryPLS": classifiers.LibraryPLS,
    "DeepPLS": lambda: classifiers.DeepPLS(training=QUICK),
    "RandomForest": lambda: classifiers.RandomForest(trees=30),
    "XGBoost": lambda: classifiers.XGBoost(rounds=30),
    "Calibrated": lambda: classifiers.Calibrated(classifiers.MLPClassifier(training=QUICK)),
    "FourierLogistic": classifiers.FourierLogistic,
    "GPClassifier": classifiers.GPClassifier,
    "RelativeRatio": classifiers.RelativeRatio,
    "PerColumn": lambda: classifiers.PerColumn(classifiers.KernelPLS(), columns=1),
    "Relaxed": lambda: classifiers.Relaxed(classifiers.MLPClassifier(training=QUICK)),
    "AtBudgets": lambda: classifiers.AtBudgets(classifiers.KernelPLS(), Budget("epochs", 1, 9)),
}
LABELLINGS = {
    "ThresholdLabels": labels.ThresholdLabels,
    "ImprovementLabels": labels.ImprovementLabels,
    "SeveralThresholds": labels.SeveralThresholds,
    "ValueGradedLabels": labels.ValueGradedLabels,
    "RankGradedLabels": labels.RankGradedLabels,
    "ObjectiveLabels": lambda: labels.ObjectiveLabels(2),
    "ChebyshevLabels": labels.ChebyshevLabels,
    "NonDominationLabels": labels.NonDominationLabels,
    "EmphasiseChanges": lambda: labels.EmphasiseChanges(labels.ThresholdLabels(0.3)),
    "RungLabels": lambda: labels.RungLabels(labels.ThresholdLabels(0.3)),
}
COMPARING = {
    "PreferenceLabels"
}  # labellings of studies in which nothing is told a value: tests/study/test_comparisons.py
ACQUISITIONS = {
    "ClassProbability": acquisition.ClassProbability,
    "UpperConfidenceBound": acquisition.UpperConfidenceBound,
    "LogExpectedImprovement": acquisition.LogExpectedImprovement,
    "LogHypervolumeImprovement": acquisition.LogHypervolumeImprovement,
    "QuantileBound": acquisition.QuantileBound,
    "ExpectedProbability": acquisition.ExpectedProbability,
    "PosteriorSample": acquisition.PosteriorSample,
    "TheoremBound": acquisition.TheoremBound,
}
ONLY_FOR = {  # acquisitions of some classifiers
    "TheoremBound": "KernelPLS",
    "LogExpectedImprovement": "KernelPLS",
    "LogHypervolumeImprovement": "PerColumn",
}
CANDIDATES = {
    "RandomSearch": candidates.RandomSearch,
    "LocalSearch": candidates.LocalSearch,
    "LibrarySearch": candidates.LibrarySearch,
    "EpsilonGreedy": lambda: candidates.EpsilonGreedy(candidates.LocalSearch(), epsilon=0.5),
    "MultiStartLBFGS": lambda: candidates.MultiStartLBFGS(restarts=3, samples=100, iterations=20),
    "DifferentialEvolution": lambda: candidates.DifferentialEvolution(evaluations=400, population=20),
    "BelieverBatch": candidates.BelieverBatch,
    "BoTorchBatch": lambda: candidates.BoTorchBatch(restarts=2, samples=100, iterations=10),
    "GreedyBatch": candidates.GreedyBatch,
    "RelaxedSearch": lambda: candidates.RelaxedSearch(
        candidates.MultiStartLBFGS(restarts=3, samples=100, iterations=20)
    ),
    "RaisedIncumbent": lambda: candidates.RaisedIncumbent(share=0.5),
    "ThompsonBatch": candidates.ThompsonBatch,
    "SVGDCandidates": lambda: candidates.SVGDCandidates(steps=20),
}
STRATEGIES = {
    "Evolution": lambda: strategies.Evolution(begin=6),
    "GridSampling": strategies.GridSampling,
    "ModelStrategy": lambda: strategies.ModelStrategy(classifiers.KernelPLS()),
    "NearBest": strategies.NearBest,
    "NeglectedChoices": strategies.NeglectedChoices,
    "OtherBranches": strategies.OtherBranches,
    "RandomSampling": strategies.RandomSampling,
    "RoughGround": strategies.RoughGround,
    "SobolSampling": strategies.SobolSampling,
    "Turns": lambda: strategies.Turns(
        [strategies.ModelStrategy(classifiers.KernelPLS()), strategies.NearBest(), strategies.OtherBranches()]
    ),
}
SEARCHES_ONLY = {  # searches of one classifier, or checked with another one
    "RelaxedSearch": "Relaxed",
    "SVGDCandidates": "KernelPLS",  # it samples a density: flat for networks after a few steps on graded labels
}
CONTINUOUS_ONLY = {"BoTorchBatch", "MultiStartLBFGS"}
PARAMETERS = {
    "Real": space.Real(-5, 5),
    "Real, log": space.Real(1e-5, 1e-1, log=True),
    "Real, believed": space.Real(1e-5, 1e-1, log=True, prior=space.Normal(1e-3, 3.0)),
    "Integer": space.Integer(1, 6),
    "Integer, believed": space.Integer(1, 512, log=True, prior=space.Normal(64, 2.0)),
    "Integer, log": space.Integer(8, 1024, log=True),
    "Integer, many": space.Integer(0, 10**7),
    "Integer, steps": space.Integer(16, 512, step=16),
    "Integer, many steps": space.Integer(-10, 990, step=5),
    "Real, steps": space.Real(0, 1, step=0.05),
    "Real, many steps": space.Real(-1.5, 100, step=0.1),
    "Ordinal": space.Ordinal([1, 2, 4, 8]),
    "Ordinal, believed": space.Ordinal([1, 2, 4, 8], prior=space.Normal(2, 1.0)),
    "Ordinal, words": space.Ordinal(["small", "large"]),
    "Categorical": space.Categorical(["a", "b", "c"]),
    "Library": space.Library(np.eye(40, 64, dtype=bool), names=[f"level {k}" for k in range(40)]),
    "Library, without names": space.Library(np.packbits(np.eye(50, 64, dtype=bool), axis=1)),
    "Categorical, weighted": space.Categorical(["a", "b", "c"], prior=[0.7, 0.2, 0.1]),
    "Categorical, mixed": space.Categorical([True, "auto", 3]),
    "Categorical, described": space.Categorical(
        ["a", "b", "c", "d", "e"], features=[[0.0, 1.0], [0.1, 1.0], [5.0, 2.0], [5.0, 2.5], [9.0, 9.0]]
    ),
}
PROBLEMS = {
    "Branin": problems.Branin,
    "Branches": problems.Branches,
    "Hartmann": lambda: problems.Hartmann(6),
    "Rosenbrock": lambda: problems.Rosenbrock(4),
    "SineParabola": problems.SineParabola,
    "PolicySearch": lambda: problems.PolicySearch("pendulum"),
    "RobotPushing": lambda: problems.RobotPushing(noise=0.01),
    "RacingLine": lambda: problems.RacingLine("ucb"),
    "DigitsArchitecture": problems.DigitsArchitecture,
    "Coco": lambda: problems.Coco("bbob-mixint", 3, 1, 5),
    "PressureVessel": problems.PressureVessel,
    "WeldedBeam": problems.WeldedBeam,
    "DigitsUnderLimit": lambda: problems.DigitsUnderLimit(epochs=1),
    "ZDT": lambda: problems.ZDT(3),
    "DTLZ2": lambda: problems.DTLZ2(3),
    "WFG": lambda: problems.WFG(4),
    "CocoBiobjective": lambda: problems.CocoBiobjective(12),
    "DigitsTradeOff": lambda: problems.DigitsTradeOff(epochs=1),
    "LearningCurves": lambda: problems.LearningCurves("digits"),
    "Choices": problems.Choices,
    "Bits": problems.Bits,
    "NetworkRun": lambda: problems.NetworkRun("rate-digits"),
    "TrainingRun": lambda: problems.TrainingRun("svm-iris"),
}
