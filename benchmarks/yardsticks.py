"""What several benchmarks measure the defaults against: ridges of scikit-learn on all rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import conche
from conche.common.arrays import Array

ALPHAS = 10.0 ** np.arange(-6, 6.1, 0.5)  # that RidgeCV chooses from, on standardised columns
Rows = tuple[Array, Array]  # X and y


class Case(NamedTuple):
    """A number that has to stay within a limit."""

    name: str
    value: float
    limit: float

    @property
    def kept(self) -> bool:
        return self.value <= self.limit  # not a number is not within a limit


def report(cases: Iterable[Case]) -> bool:
    """Print the cases as they come; returns whether all are within their limits."""
    kept = True
    for case in cases:
        mark = "ok  " if case.kept else "FAIL"
        print(f"{mark} {case.name:90} {case.value:9.4g} <= {case.limit:g}", flush=True)
        kept &= case.kept
    return kept


def learn(tasks: Sequence[Rows], n_nodes: int = 1, classes: bool = False) -> Any:
    """Our estimator with its defaults, after one pass over the tasks."""
    kind = conche.ConcheClassifier if classes else conche.ConcheRegressor
    model = kind(n_nodes=min(n_nodes, tasks[0][0].shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X, y in tasks:
            model.partial_fit(X, y)
    return model


def together(tasks: Sequence[Rows]) -> Rows:
    return np.vstack([X for X, _ in tasks]), np.concatenate([y for _, y in tasks])


def ridge_cv(X: Array, y: Array) -> Any:
    """RidgeCV, leaving one out, on standardised columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(StandardScaler(), RidgeCV(alphas=ALPHAS)).fit(X, y)


def ridge_path(X: Array, y: Array, X_test: Array, alphas: Array) -> Array:
    """Predictions of Ridge(alpha) on standardised columns, for all alphas by one factor.

    The first axis of the result is that of the alphas.
    """
    scaler, centre = StandardScaler().fit(X), y.mean(axis=0)
    U, s, Vt = np.linalg.svd(scaler.transform(X), full_matrices=False)
    varies = s > 1e-13 * s.max()  # without a ridge, the weights of least norm
    shares = np.divide(
        s, s * s + alphas[:, None], out=np.zeros((len(alphas), len(s))), where=varies
    )
    along = U.T @ (y - centre).reshape(len(y), -1)
    found = (scaler.transform(X_test) @ Vt.T) @ (shares[..., None] * along)
    return found.reshape(len(alphas), len(X_test), *y.shape[1:]) + centre


def indicators(y: Array, classes: Array) -> Array:
    """A column a class: 1 where a row is of it, -1 elsewhere."""
    return 2.0 * (y[:, None] == classes) - 1


def squared(found: Array, y: Array) -> float:
    return float(np.mean((found - y) ** 2))
