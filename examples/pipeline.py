"""A scikit-learn pipeline whose steps are choices, each with parameters of its own.

    python examples/pipeline.py --trials 30

A choice is an estimator with a name; `when=` says for which choice a parameter is there. `DeepBoreSearchCV` stands
where scikit-learn's `RandomizedSearchCV` or `GridSearchCV` would.
"""

import argparse

from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from deepbore import Categorical, Integer, Real
from deepbore.integrations.sklearn import DeepBoreSearchCV

PIPELINE = Pipeline([("scale", StandardScaler()), ("reduce", PCA()), ("model", SVC())])
SPACE = {
    "scale": Categorical({"standard": StandardScaler(), "minmax": MinMaxScaler(), "none": "passthrough"}),
    "reduce": Categorical({"pca": PCA(), "best": SelectKBest()}),
    "reduce__n_components": Integer(2, 30, when={"reduce": "pca"}),
    "reduce__k": Integer(2, 30, when={"reduce": "best"}),
    "model": Categorical({"svc": SVC(), "forest": RandomForestClassifier(random_state=0)}),
    "model__C": Real(1e-3, 1e3, log=True, when={"model": "svc"}),
    "model__gamma": Real(1e-5, 1e1, log=True, when={"model": "svc"}),
    "model__max_depth": Integer(2, 20, when={"model": "forest"}),
}


def main() -> None:
    """Searches, and tests the best pipeline on rows that the search has not seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    given = parser.parse_args()
    known, unseen, labels, unseen_labels = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    search = DeepBoreSearchCV(PIPELINE, SPACE, n_iter=given.trials, cv=3, random_state=0)
    search.fit(known, labels)
    print(f"{search.study_}: {search.study_.space.points.plain(search.best_params_)}")
    print(
        f"cross-validated accuracy {search.best_score_:.3f}, on unseen rows {search.score(unseen, unseen_labels):.3f}"
    )


if __name__ == "__main__":
    main()
