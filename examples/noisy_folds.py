"""Cross-validation: the mean over the folds is told with its standard error, and `recommended` goes by more than luck.

    python examples/noisy_folds.py --trials 30

The best value that was seen is best by luck, too: of many similar configurations it is the one whose folds came out
well. The classifier, which knows how uncertain each mean is, looks at what stands beside it. What it recommends is then
evaluated again, with other folds: all evaluations of one configuration count as their mean.
"""

import argparse

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from deepbore import Outcome, Real, SearchSpace, Study

SPACE = SearchSpace({"C": Real(1e-3, 1e3, log=True), "gamma": Real(1e-5, 10, log=True)})
FOLDS = 5


def accuracy(params: dict, seed: int) -> Outcome:
    """The mean accuracy over the folds, and its standard error; that folds agree by chance does not make it 0."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    scores = cross_val_score(make_pipeline(StandardScaler(), SVC(**params)), *load_wine(return_X_y=True), cv=folds)
    return Outcome(scores.mean(), noise=max(scores.std(ddof=1), 0.01) / np.sqrt(FOLDS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    trials = parser.parse_args().trials
    study = Study(SPACE, direction="maximize", seed=0)
    for n in range(trials):
        if n % 5 == 4 and n > trials // 2:  # now and then what is recommended, again
            study.enqueue(study.recommended.params)
        (trial,) = study.ask()
        study.tell(trial, accuracy(trial.params, seed=n))
    recommended = study.recommended
    again = np.mean([accuracy(recommended.params, seed=1000 + n).values[0] for n in range(10)])
    print(f"best value seen: {study.best_trial.value:.3f}")
    print(f"recommended: {recommended.params}, accuracy over 50 other folds {again:.3f}")
