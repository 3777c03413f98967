"""The public names, and the one list of them: `deepbore/__init__.py` imports each from here when it is first used."""

from . import errors as errors
from . import plots as plots
from . import problems as problems
from . import testing as testing
from .space import (
    Real as Real,
    Integer as Integer,
    Ordinal as Ordinal,
    Categorical as Categorical,
    Condition as Condition,
    SearchSpace as SearchSpace,
)
from .data.outcomes import (
    Outcome as Outcome,
)
from .labels import (
    ThresholdLabels as ThresholdLabels,
    ImprovementLabels as ImprovementLabels,
    SeveralThresholds as SeveralThresholds,
    ValueGradedLabels as ValueGradedLabels,
    RankGradedLabels as RankGradedLabels,
    EmphasiseChanges as EmphasiseChanges,
    DecayingGamma as DecayingGamma,
)
from .classifiers import (
    MLPClassifier as MLPClassifier,
    DeepEnsemble as DeepEnsemble,
    HyperDeepEnsemble as HyperDeepEnsemble,
    MCDropout as MCDropout,
    LaplaceGGN as LaplaceGGN,
    FourierLogistic as FourierLogistic,
    GPClassifier as GPClassifier,
    DeepPLS as DeepPLS,
    KernelPLS as KernelPLS,
    RandomForest as RandomForest,
    XGBoost as XGBoost,
    Calibrated as Calibrated,
    Training as Training,
)
from .acquisition import (
    ClassProbability as ClassProbability,
    ExpectedProbability as ExpectedProbability,
    UpperConfidenceBound as UpperConfidenceBound,
    TheoremBound as TheoremBound,
    QuantileBound as QuantileBound,
    PosteriorSample as PosteriorSample,
    LogExpectedImprovement as LogExpectedImprovement,
)
from .candidates import (
    RandomSearch as RandomSearch,
    LocalSearch as LocalSearch,
    MultiStartLBFGS as MultiStartLBFGS,
    BoTorchBatch as BoTorchBatch,
    DifferentialEvolution as DifferentialEvolution,
    GreedyBatch as GreedyBatch,
    ThompsonBatch as ThompsonBatch,
    SVGDCandidates as SVGDCandidates,
    EpsilonGreedy as EpsilonGreedy,
)
from .evaluators import (
    Evaluator as Evaluator,
    SerialEvaluator as SerialEvaluator,
    ProcessEvaluator as ProcessEvaluator,
    ExecutorEvaluator as ExecutorEvaluator,
)
from .study import (
    Study as Study,
    Result as Result,
    Suggester as Suggester,
    minimize as minimize,
    maximize as maximize,
)

__version__: str
