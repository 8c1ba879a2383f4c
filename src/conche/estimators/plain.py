"""A model without its nodes: scikit-learn's own, with the same predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer

from ..common.arrays import Array
from ..errors import ParameterError
from .base import LinearModel


def to_sklearn(model: Any) -> Any:
    """A plain scikit-learn model with the same predictions, for whatever takes one (ONNX, say).

    A regressor becomes a `LinearRegression`, a classifier a `RidgeClassifier` (squared loss) or a
    `LogisticRegression`, one against the rest for more than two classes. Where missing values are
    filled, a `SimpleImputer` comes first; a `StreamPipeline` becomes a `Pipeline`. The new model
    shares nothing with the old one, and cannot go on with the stream.

    Parameters
    ----------
    model : a trained estimator of Conche's, or a `StreamPipeline` with one at its end.

    Returns
    -------
    A fitted scikit-learn model.

    Examples
    --------
    >>> import conche
    >>> task = conche.gaussian_tasks(1, 30, 4)[0]
    >>> model = conche.ConcheRegressor(n_nodes=2).fit(task.X, task.y)
    >>> to_sklearn(model)
    LinearRegression()
    """
    if isinstance(model, Pipeline):
        return Pipeline([*model.steps[:-1], (model.steps[-1][0], to_sklearn(model.steps[-1][1]))])
    if not isinstance(model, LinearModel):
        raise ParameterError(f"to_sklearn takes a model of Conche, not {type(model).__name__}")
    state = model.state_  # NotFittedError, as in scikit-learn, before the first task
    plain = _classifier(model) if is_classifier(model) else _regressor(model)
    _name_columns(plain, model)
    if state.setup.scaling.missing != "mean":
        return plain
    assert state.coefficients is not None and state.coefficients.means is not None
    imputer = SimpleImputer(keep_empty_features=True).fit(state.coefficients.means[None])
    _name_columns(imputer, model)
    return Pipeline([("missing", imputer), ("model", plain)])


def _regressor(model: LinearModel) -> LinearRegression:
    plain = LinearRegression(fit_intercept=model.fit_intercept)
    plain.coef_, plain.intercept_ = np.array(model.coef_), model.intercept_
    return plain


def _classifier(model: Any) -> Any:
    state, classes = model.state_, np.array(model.classes_)
    if len(classes) < 2:
        only = classes.tolist()[0]
        raise ParameterError(f"to_sklearn needs two classes or more; so far all are {only!r}")
    coef, intercept = np.array(state.coef), np.array(state.intercept)
    if state.settings.loss == "squared":
        plain = RidgeClassifier(fit_intercept=model.fit_intercept)
        plain.coef_, plain.intercept_ = coef, intercept
        plain._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1).fit(classes)
        vars(plain)["classes_"] = classes  # older versions read them from the binarizer
        return plain
    if len(classes) == 2:
        return _logistic(coef, intercept, classes)
    every = OneVsRestClassifier(LogisticRegression())
    every.classes_, every.label_binarizer_ = classes, LabelBinarizer(sparse_output=True)
    every.label_binarizer_.fit(classes)
    every.estimators_ = [
        _logistic(coef[c : c + 1], intercept[c : c + 1], np.array([0, 1]))
        for c in range(len(classes))
    ]
    for one in every.estimators_:
        one.n_features_in_ = model.n_features_in_
    return every


def _logistic(coef: Array, intercept: Array, classes: Array) -> LogisticRegression:
    one = LogisticRegression()
    one.coef_, one.intercept_, one.classes_ = coef, intercept, classes
    return one


def _name_columns(plain: Any, model: LinearModel) -> None:
    plain.n_features_in_ = model.n_features_in_
    names = model.state_.schema.names
    if names is not None:
        plain.feature_names_in_ = np.array(names, dtype=object)
