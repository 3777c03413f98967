"""`DeepBoreSearchCV` beside scikit-learn's own searches."""

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupShuffleSplit,
    KFold,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from deepbore import (
    Categorical,
    Condition,
    ExpectedImprovementBelow,
    Integer,
    NoImprovement,
    Ordinal,
    Real,
    SearchSpace,
)
from deepbore.errors import JournalError, SettingError
from deepbore.integrations.sklearn import DeepBoreSearchCV

X, Y = (part[:400] for part in load_digits(return_X_y=True))

SPACE = {
    "svc__C": Real(1e-3, 1e3, log=True),
    "svc__kernel": Categorical(["linear", "rbf"]),
    "svc__gamma": Real(1e-5, 1.0, log=True, when=Condition("svc__kernel", "rbf")),
}

PIPELINE = make_pipeline(StandardScaler(), SVC())


def test_a_pipeline_is_tuned_scored_and_refitted():
    search = DeepBoreSearchCV(PIPELINE, SPACE, n_iter=15, batch_size=2, cv=3, random_state=1).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == len(search.study_.trials) == 15
    assert search.best_score_ == scores.max() == search.study_.best_trial.value
    assert search.best_params_ == search.study_.best_trial.params
    assert search.best_score_ > 0.9
    assert (search.predict(X) == Y).mean() > 0.95
    for trial, params in zip(search.study_.trials, search.cv_results_["params"], strict=True):
        assert trial.params == params
        assert ("svc__gamma" in params) == (params["svc__kernel"] == "rbf")


def test_a_finite_space_is_exhausted_as_by_a_grid_search():
    tree, depths = DecisionTreeClassifier(random_state=0), [1, 2, 4, 8]
    search = DeepBoreSearchCV(tree, {"max_depth": Ordinal(depths)}, n_iter=20, batch_size=3, cv=3).fit(X, Y)
    grid = GridSearchCV(tree, {"max_depth": depths}, cv=3).fit(X, Y)
    assert search.best_score_ == grid.best_score_
    assert sorted(search.cv_results_["mean_test_score"]) == sorted(grid.cv_results_["mean_test_score"])


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_raises_is_a_failed_trial():
    space = {"max_depth": Integer(-3, 8)}  # below 1 scikit-learn refuses
    search = DeepBoreSearchCV(DecisionTreeClassifier(random_state=0), space, n_iter=12, cv=3).fit(X, Y)
    assert search.study_.observations.ledger.statistics.n_failed == 4
    assert search.best_params_["max_depth"] > 3
    assert len(search.cv_results_["params"]) == 8
    with pytest.raises(ValueError, match="fits failed"):
        DeepBoreSearchCV(DecisionTreeClassifier(), {"max_depth": Integer(-3, 0)}, n_iter=3).fit(X, Y)


def test_of_several_scores_the_named_one_is_maximised():
    tree, space = DecisionTreeClassifier(random_state=0), {"max_depth": Integer(1, 8)}
    settings = {"scoring": ["accuracy", "f1_macro"], "n_iter": 8, "cv": 3}
    search = DeepBoreSearchCV(tree, space, refit="f1_macro", **settings).fit(X, Y)
    assert search.study_.best_trial.value == search.cv_results_["mean_test_f1_macro"].max()
    with pytest.raises(SettingError, match="refit must name"):
        DeepBoreSearchCV(tree, space, refit=False, **settings).fit(X, Y)


def test_it_is_a_scikit_learn_estimator():
    search = clone(DeepBoreSearchCV(PIPELINE, SPACE, n_iter=3)).set_params(n_iter=0, estimator__svc__C=2.0)
    assert search.get_params()["estimator__svc__C"] == 2.0
    with pytest.raises(SettingError, match="n_iter >= 1"):
        search.fit(X, Y)


def test_the_same_seed_gives_the_same_search():
    results = [
        DeepBoreSearchCV(PIPELINE, SPACE, n_iter=12, cv=2, random_state=3).fit(X, Y).cv_results_ for _ in range(2)
    ]
    assert results[0]["params"] == results[1]["params"]
    assert np.array_equal(results[0]["mean_test_score"], results[1]["mean_test_score"])


def proposed(random_state, fits=1):
    """What each of several fits of one search tries."""
    tree = DecisionTreeClassifier(random_state=0)
    search = DeepBoreSearchCV(tree, {"ccp_alpha": Real(0, 0.1)}, n_iter=2, cv=2, random_state=random_state)
    return [search.fit(X, Y).cv_results_["params"] for _ in range(fits)]


def test_random_state_is_what_scikit_learn_takes():
    assert proposed(np.int64(3)) == proposed(3)
    one, other = proposed(None, fits=2)
    assert one != other
    first, second = proposed(np.random.RandomState(0), fits=2)
    assert first != second
    assert [first, second] == proposed(np.random.RandomState(0), fits=2)
    with pytest.raises(SettingError, match="random_state must be an integer, None or a RandomState"):
        proposed("now")


# regression: each of these was wrong once
@pytest.mark.slow
def test_a_search_of_scikit_learn_ends_with_such_a_space(uncounted):
    trees, sklearn = pytest.importorskip("sklearn.tree"), pytest.importorskip("deepbore.integrations.sklearn")
    search = sklearn.DeepBoreSearchCV(trees.DecisionTreeClassifier(), uncounted, n_iter=30, batch_size=8, cv=2)
    search.fit(np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2)
    assert len(search.cv_results_["params"]) == 20


@pytest.mark.parametrize(
    "scoring", [["accuracy", "f1_macro"], ("accuracy", "f1_macro"), {"accuracy": "accuracy", "f1": "f1_macro"}]
)
def test_several_scores_without_one_that_counts_are_refused_before_any_fit(scoring):
    fitted = []

    class Tree(DecisionTreeClassifier):
        def fit(self, *args, **settings):
            fitted.append(self.max_depth)
            return super().fit(*args, **settings)

    search = DeepBoreSearchCV(Tree(), {"max_depth": Integer(1, 8)}, n_iter=2, scoring=scoring, refit=False, cv=2)
    with pytest.raises(SettingError, match="refit must name the one to maximise, but got refit=False"):
        search.fit(*load_iris(return_X_y=True))
    assert fitted == []


# --- estimators as choices, journals, ends ----------------------------------------------------------------------------

CHOSEN = {
    "clf": Categorical({"svc": SVC(), "tree": DecisionTreeClassifier(random_state=0)}),
    "clf__C": Real(1e-2, 1e2, log=True, when={"clf": "svc"}, default=1.0),
    "clf__max_depth": Integer(1, 8, when={"clf": "tree"}),
}


def test_estimators_and_tuples_are_choices():
    steps = Pipeline([("scale", StandardScaler()), ("clf", SVC())])
    search = DeepBoreSearchCV(steps, CHOSEN, n_iter=8, cv=2).fit(X, Y)
    assert {type(params["clf"]).__name__ for params in search.cv_results_["params"]} == {
        "SVC",
        "DecisionTreeClassifier",
    }
    assert set(search.study_.to_frame()["clf"]) == {"svc", "tree"}
    assert type(search.best_estimator_["clf"]) is type(search.best_params_["clf"])
    assert not hasattr(CHOSEN["clf"].choices[0], "classes_")  # each fit has its clone
    layers = {"hidden_layer_sizes": Categorical({"one": (8,), "two": (8, 8)}), "alpha": Real(1e-5, 1, log=True)}
    network = DeepBoreSearchCV(MLPClassifier(max_iter=5), layers, n_iter=4, cv=2)
    with pytest.warns(ConvergenceWarning):
        network.fit(X[:60], Y[:60])
    assert {params["hidden_layer_sizes"] for params in network.cv_results_["params"]} == {(8,), (8, 8)}


def test_a_search_with_a_journal_goes_on_where_it_ended(tmp_path):
    settings = {"cv": 2, "random_state": 3, "journal": tmp_path / "search.jsonl"}
    whole = DeepBoreSearchCV(PIPELINE, SPACE, n_iter=14, cv=2, random_state=3).fit(X, Y)
    DeepBoreSearchCV(PIPELINE, SPACE, n_iter=6, **settings).fit(X, Y)
    rest = DeepBoreSearchCV(PIPELINE, SPACE, n_iter=14, **settings).fit(X, Y)
    assert [trial.params for trial in rest.study_.trials] == [trial.params for trial in whole.study_.trials]
    assert rest.best_score_ == whole.best_score_
    assert rest.best_params_ == whole.best_params_
    none = DeepBoreSearchCV(PIPELINE, SPACE, n_iter=14, **settings).fit(X, Y)  # nothing is left to try
    assert none.best_params_ == whole.best_params_
    assert len(none.cv_results_["params"]) == 1


def test_a_search_ends_by_time_or_by_a_rule():
    tree, space = DecisionTreeClassifier(random_state=0), {"ccp_alpha": Real(0, 0.1)}
    ended = DeepBoreSearchCV(tree, space, n_iter=100, cv=2, timeout=1e-9).fit(X, Y)
    assert len(ended.study_.trials) == 1
    ended = DeepBoreSearchCV(tree, space, n_iter=100, cv=2, stop_when=NoImprovement(trials=3)).fit(X, Y)
    assert 4 <= len(ended.study_.trials) < 100
    for settings, says in [({"timeout": 0}, "timeout > 0"), ({"stop_when": ExpectedImprovementBelow(0.1)}, "scores")]:
        with pytest.raises(SettingError, match=says):
            DeepBoreSearchCV(tree, space, n_iter=3, **settings).fit(X, Y)


# regression: a parameter changed its hash by being used, which scikit-learn's own checks refuse
def test_a_fit_leaves_the_space_as_it_was():
    search = DeepBoreSearchCV(PIPELINE, SPACE, n_iter=12, cv=2)
    space = SearchSpace(SPACE)
    before = joblib.hash(search), joblib.hash(space)
    DeepBoreSearchCV(PIPELINE, space, n_iter=12, cv=2).fit(X, Y)
    search.fit(X, Y)
    search_again = clone(search)
    assert (joblib.hash(search_again), joblib.hash(space)) == before


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "name"), [(Ridge(), "alpha"), (LogisticRegression(), "C")])
@pytest.mark.filterwarnings("ignore")
def test_it_passes_the_checks_of_scikit_learn_that_its_own_search_passes(estimator, name):
    def failed(search):
        return {each["check_name"] for each in check_estimator(search, on_fail=None) if each["status"] == "failed"}

    theirs = failed(RandomizedSearchCV(estimator, {name: [1e-3, 10.0]}, n_iter=2, random_state=0, cv=2))
    assert failed(DeepBoreSearchCV(estimator, {name: Real(1e-3, 10, log=True)}, n_iter=4, cv=2)) <= theirs


class Same(ClassifierMixin, BaseEstimator):
    """A classifier that is the same whatever its parameters are: its scores differ by the splits alone."""

    def __init__(self, C=1.0, other=None):
        self.C, self.other = C, other

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(np.asarray(X)[:, 1] > 0, self.classes_[0], self.classes_[1])


RANDOM = np.random.default_rng(0)
FEATURES, CLASSES, GROUPS = RANDOM.normal(size=(60, 3)), RANDOM.integers(0, 2, 60), np.arange(60) // 3
SHUFFLES = [
    KFold(3, shuffle=True),
    KFold(3, shuffle=True, random_state=np.random.RandomState(0)),
    StratifiedKFold(3, shuffle=True),
    ShuffleSplit(3),
    StratifiedShuffleSplit(3),
    RepeatedStratifiedKFold(n_splits=2, n_repeats=2),
]
OF_C = {"C": Real(1e-3, 1, log=True)}


# regression: the splitter was asked again for each batch, so that configurations were compared on different splits
@pytest.mark.parametrize("cv", SHUFFLES, ids=lambda cv: type(cv).__name__)
@pytest.mark.parametrize("batch_size", [1, 4])
def test_all_configurations_are_compared_on_the_same_splits(cv, batch_size):
    np.random.seed(1)  # which splitters without a random_state draw from: by chance all splits have equal scores
    search = DeepBoreSearchCV(Same(), OF_C, n_iter=6, batch_size=batch_size, cv=cv).fit(FEATURES, CLASSES)
    found = [search.cv_results_[f"split{k}_test_score"] for k in range(search.n_splits_)]
    assert np.ptp(found, axis=1).max() == 0
    assert np.ptp(found) > 0  # the splits differ


def test_each_fit_splits_by_itself():
    search = DeepBoreSearchCV(Same(), OF_C, n_iter=2, cv=KFold(3, shuffle=True))
    assert len({tuple(search.fit(FEATURES, CLASSES).cv_results_["split0_test_score"]) for _ in range(12)}) > 1


def test_groups_and_splits_that_are_read_once_go_with_it():
    search = DeepBoreSearchCV(Same(), OF_C, n_iter=4, cv=GroupShuffleSplit(3)).fit(FEATURES, CLASSES, groups=GROUPS)
    assert np.ptp(search.cv_results_["split0_test_score"]) == 0
    for cv in (KFold(3).split(FEATURES), list(KFold(3).split(FEATURES))):
        search = DeepBoreSearchCV(Same(), OF_C, n_iter=4, cv=cv).fit(FEATURES, CLASSES)
        assert search.n_splits_ == 3
        assert np.ptp(search.cv_results_["split0_test_score"]) == 0


OTHER = FEATURES + 1e-9
WEIGHTS = np.ones(60)


# regression: a fit on other data took the trials of the earlier one for its own, and did not search
@pytest.mark.parametrize(
    ("says", "changed", "data", "given"),
    [
        ("data", {}, (OTHER, CLASSES), {}),
        ("data", {}, (FEATURES, 1 - CLASSES), {}),
        ("data", {}, (FEATURES.astype(np.float32), CLASSES), {}),
        ("data", {}, (FEATURES, CLASSES), {"sample_weight": WEIGHTS}),
        ("estimator", {"estimator": Same(other=3)}, (FEATURES, CLASSES), {}),
        ("estimator", {"estimator": LogisticRegression()}, (FEATURES, CLASSES), {}),
        ("scoring", {"scoring": "balanced_accuracy"}, (FEATURES, CLASSES), {}),
        ("cv", {"cv": 4}, (FEATURES, CLASSES), {}),
        ("cv", {"cv": KFold(3, shuffle=True)}, (FEATURES, CLASSES), {}),
        ("data and scoring", {"scoring": "f1"}, (OTHER, CLASSES), {}),
    ],
)
def test_a_journal_of_another_search_is_refused_by_name(says, changed, data, given, tmp_path):
    settings = {"n_iter": 3, "cv": 3, "journal": tmp_path / "search.jsonl", "estimator": Same(), "space": OF_C}
    first = DeepBoreSearchCV(**settings).fit(FEATURES, CLASSES)
    kept = settings["journal"].read_bytes()
    with pytest.raises(JournalError, match=f"a search with other {says}, whose scores"):
        DeepBoreSearchCV(**settings | {"n_iter": 6} | changed).fit(*data, **given)
    assert settings["journal"].read_bytes() == kept
    again = DeepBoreSearchCV(**settings | {"n_iter": 6}).fit(FEATURES.copy(order="F"), CLASSES.copy())
    assert len(again.study_.trials) == 6
    assert again.study_.trials[0].params == first.study_.trials[0].params


def test_splits_that_differ_at_each_fit_do_not_go_on(tmp_path):
    shuffles = {"cv": KFold(3, shuffle=True), "journal": tmp_path / "search.jsonl", "n_iter": 2}
    DeepBoreSearchCV(Same(), OF_C, **shuffles).fit(FEATURES, CLASSES)
    with pytest.raises(JournalError, match=r"other cv.*random_state"):
        DeepBoreSearchCV(Same(), OF_C, **shuffles).fit(FEATURES, CLASSES)


@pytest.mark.parametrize("kind", ["frame", "text", "sparse", "list"])
def test_the_same_data_go_on_whatever_holds_them(kind, tmp_path):
    def made():
        if kind == "frame":
            return pytest.importorskip("pandas").DataFrame({"a": FEATURES[:, 0], "b": FEATURES[:, 1]})
        if kind == "text":
            pandas = pytest.importorskip("pandas")
            return pandas.DataFrame({"a": [f"text {k}" for k in range(60)], "b": FEATURES[:, 1]})
        return csr_matrix(FEATURES) if kind == "sparse" else FEATURES.tolist()

    class Any(Same):
        def predict(self, X):
            return np.resize(self.classes_, X.shape[0] if hasattr(X, "shape") else len(X))

    settings = {"cv": 2, "journal": tmp_path / "search.jsonl"}
    DeepBoreSearchCV(Any(), OF_C, n_iter=2, **settings).fit(made(), CLASSES)
    assert len(DeepBoreSearchCV(Any(), OF_C, n_iter=3, **settings).fit(made(), CLASSES).study_.trials) == 3
    changed = made()
    if hasattr(changed, "iloc"):
        changed.iloc[3, 1] = 7.0
    else:
        changed[3] = changed[4]
    with pytest.raises(JournalError, match="other data"):
        DeepBoreSearchCV(Any(), OF_C, n_iter=4, **settings).fit(changed, CLASSES)
