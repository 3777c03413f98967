"""The public names, and the one list of them: `deepbore/__init__.py` imports each from here when it is first used."""

import typing_extensions

from . import errors as errors, plots as plots, problems as problems, testing as testing
from .acquisition import (
    Acquisition as Acquisition,
    ClassProbability as ClassProbability,
    ExpectedProbability as ExpectedProbability,
    LogExpectedImprovement as LogExpectedImprovement,
    PosteriorSample as PosteriorSample,
    QuantileBound as QuantileBound,
    TheoremBound as TheoremBound,
    UpperConfidenceBound as UpperConfidenceBound,
)
from .candidates import (
    BelieverBatch as BelieverBatch,
    BoTorchBatch as BoTorchBatch,
    Candidates as Candidates,
    DifferentialEvolution as DifferentialEvolution,
    EpsilonGreedy as EpsilonGreedy,
    GreedyBatch as GreedyBatch,
    LibrarySearch as LibrarySearch,
    LocalSearch as LocalSearch,
    MultiStartLBFGS as MultiStartLBFGS,
    RaisedIncumbent as RaisedIncumbent,
    RandomSearch as RandomSearch,
    RelaxedSearch as RelaxedSearch,
    SVGDCandidates as SVGDCandidates,
    ThompsonBatch as ThompsonBatch,
)
from .classifiers import (
    AtBudgets as AtBudgets,
    Calibrated as Calibrated,
    Classifier as Classifier,
    DeepEnsemble as DeepEnsemble,
    DeepPLS as DeepPLS,
    FourierLogistic as FourierLogistic,
    GPClassifier as GPClassifier,
    HyperDeepEnsemble as HyperDeepEnsemble,
    KernelPLS as KernelPLS,
    LaplaceGGN as LaplaceGGN,
    LibraryPLS as LibraryPLS,
    MCDropout as MCDropout,
    MLPClassifier as MLPClassifier,
    RandomForest as RandomForest,
    RelativeRatio as RelativeRatio,
    Relaxed as Relaxed,
    Training as Training,
    XGBoost as XGBoost,
)
from .data.outcome import (
    Outcome as Outcome,
)
from .data.trial import (
    Budget as Budget,
    Trial as Trial,
)
from .errors import (
    TrialPruned as TrialPruned,
)
from .evaluators import (
    Evaluator as Evaluator,
    ExecutorEvaluator as ExecutorEvaluator,
    Objective as Objective,
    ProcessEvaluator as ProcessEvaluator,
    SerialEvaluator as SerialEvaluator,
)
from .labels import (
    DecayingGamma as DecayingGamma,
    EmphasiseChanges as EmphasiseChanges,
    ImprovementLabels as ImprovementLabels,
    Labelling as Labelling,
    PreferenceLabels as PreferenceLabels,
    RankGradedLabels as RankGradedLabels,
    RungLabels as RungLabels,
    SeveralThresholds as SeveralThresholds,
    ThresholdLabels as ThresholdLabels,
    ValueGradedLabels as ValueGradedLabels,
)
from .pruners import (
    MedianPruner as MedianPruner,
    PatientPruner as PatientPruner,
    Pruner as Pruner,
    SuccessiveHalvingPruner as SuccessiveHalvingPruner,
)
from .space import (
    Categorical as Categorical,
    Condition as Condition,
    Integer as Integer,
    Library as Library,
    Normal as Normal,
    Ordinal as Ordinal,
    Real as Real,
    SearchSpace as SearchSpace,
)
from .strategies import (
    Strategy as Strategy,
)
from .study import (
    DistributedStudy as DistributedStudy,
    ExpectedImprovementBelow as ExpectedImprovementBelow,
    NoImprovement as NoImprovement,
    Result as Result,
    Study as Study,
    TargetReached as TargetReached,
    maximize as maximize,
    minimize as minimize,
)

# former names, which warn where they are used, and in type checkers
@typing_extensions.deprecated("Suggester is called DistributedStudy now.")
class Suggester(DistributedStudy): ...

@typing_extensions.deprecated("Ambitious is called RaisedIncumbent now.")
class Ambitious(RaisedIncumbent): ...

__version__: str
