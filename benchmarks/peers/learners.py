"""Methods that learn a stream and keep no sample, each with its sensible settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import numpy as np

import conche
from conche.common.arrays import Array

from .data import Stream

RATES = (1e-4, 1e-3, 1e-2)


class Learner(Protocol):
    """One pass, one task after the other."""

    def learn(self, X: Array, y: Array) -> None:
        """One more task."""

    def predict(self, X: Array) -> Array:
        """For new samples."""

    def kept(self) -> int:
        """Bytes between tasks."""


class Ours:
    def __init__(self, classes: int, n_nodes: int, **options: Any):
        kind: Any = conche.ConcheClassifier if classes else conche.ConcheRegressor
        self.model = kind(n_nodes, **options)

    def learn(self, X: Array, y: Array) -> None:
        self.model.partial_fit(X, y)

    def predict(self, X: Array) -> Array:
        return np.asarray(self.model.predict(X))

    def kept(self) -> int:
        states = self.model.node_states()
        return sum(a.nbytes for state in states for a in state.to_arrays().values())


class Products:
    """One pass of ridge regression by adding up X^T X and X^T y: the honest strong baseline."""

    def __init__(self, classes: int, ridge: float):
        self.classes, self.ridge, self.G, self.c = classes, ridge, np.zeros((0, 0)), np.zeros(0)
        self.w: Array = np.zeros(0)

    def learn(self, X: Array, y: Array) -> None:
        A = np.hstack([X, np.ones((len(X), 1))])
        Y = 2.0 * (y[:, None] == np.arange(self.classes)) - 1 if self.classes else y[:, None]
        G, c = A.T @ A, A.T @ Y
        self.G, self.c = (self.G + G, self.c + c) if self.G.size else (G, c)
        M = self.G.copy()
        M.flat[: -1 : len(M) + 1] += self.ridge
        self.w = np.linalg.solve(M, self.c)  # scipy's BLAS has threads of its own, which fight

    def predict(self, X: Array) -> Array:
        v = X @ self.w[:-1] + self.w[-1]
        return np.argmax(v, axis=1) if self.classes else v[:, 0]

    def kept(self) -> int:
        return self.G.nbytes + self.c.nbytes


class Theirs:
    """A ``partial_fit`` of scikit-learn's."""

    def __init__(self, classes: int, regressor: str, classifier: str, **options: Any):
        sk = import_module("sklearn.linear_model")
        self.more = {"classes": np.arange(classes)} if classes else {}
        self.model = getattr(sk, classifier if classes else regressor)(**options)

    def learn(self, X: Array, y: Array) -> None:
        self.model.partial_fit(X, y, **self.more)

    def predict(self, X: Array) -> Array:
        return np.asarray(self.model.predict(X))

    def kept(self) -> int:
        return int(self.model.coef_.nbytes)


class LDA(Theirs):
    """Streaming linear discriminant analysis."""

    def __init__(self) -> None:
        self.model = import_module("examples.class_incremental").StreamingLDA()
        self.more = {}

    def kept(self) -> int:
        return int(self.model.scatter.nbytes + self.model.means.nbytes)


class River:
    """river's linear models, sample by sample."""

    def __init__(self, classes: int, rate: float):
        linear, optim = import_module("river.linear_model"), import_module("river.optim")
        if classes:
            multi = import_module("river.multiclass")
            inner = linear.LogisticRegression(optim.SGD(rate))
            self.model = multi.OneVsRestClassifier(inner)
        else:
            self.model = linear.LinearRegression(optim.SGD(rate))
        self.size = 0

    def learn(self, X: Array, y: Array) -> None:
        self.size = X.shape[1]
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), target)

    def predict(self, X: Array) -> Array:
        if not hasattr(self.model, "weights"):  # several, one for each class
            found = [self.model.predict_one(dict(enumerate(row))) for row in X.tolist()]
            return np.array([-1 if label is None else label for label in found])
        w = self.model.weights
        w = np.array([w.get(j, 0.0) for j in range(self.size)])
        return X @ w + self.model.intercept

    def kept(self) -> int:
        return 8 * self.size


class Vowpal:
    """Vowpal Wabbit through its text format."""

    def __init__(self, classes: int, rate: float):
        vw = import_module("vowpalwabbit")
        kind = f"--oaa {classes}" if classes else ""
        self.model = vw.Workspace(f"--quiet -b 18 -l {rate} {kind}")
        self.classes, self.size = classes, 0

    def learn(self, X: Array, y: Array) -> None:
        self.size = X.shape[1]
        for row, target in zip(X, y, strict=True):
            self.model.learn(f"{target + 1 if self.classes else target} | {self._text(row)}")

    def predict(self, X: Array) -> Array:
        found = np.array([self.model.predict(f"| {self._text(row)}") for row in X])
        return found - 1 if self.classes else found

    @staticmethod
    def _text(row: Array) -> str:
        return " ".join(f"{j}:{x:.6g}" for j, x in enumerate(row.tolist()) if x)

    def kept(self) -> int:
        return 8 * self.size * max(self.classes, 1)


class Recursive:
    """padasip's recursive least squares, sample by sample."""

    def __init__(self, forgetting: float):
        self.filters, self.forgetting = import_module("padasip.filters"), forgetting
        self.filter: Any = None

    def learn(self, X: Array, y: Array) -> None:
        A = np.hstack([X, np.ones((len(X), 1))])
        if self.filter is None:
            self.filter = self.filters.FilterRLS(A.shape[1], self.forgetting, eps=0.1, w="zeros")
        for row, target in zip(A, y, strict=True):
            self.filter.adapt(target, row)

    def predict(self, X: Array) -> Array:
        return np.asarray(X @ self.filter.w[:-1] + self.filter.w[-1])

    def kept(self) -> int:
        return int(self.filter.R.nbytes + self.filter.w.nbytes)


def methods(stream: Stream) -> Iterator[tuple[str, Callable[[], Learner]]]:
    """By name; those that share a name before the comma are settings of one method."""
    classes, p = stream.classes, stream.parts[0].X.shape[1]
    for K in (1, 8):
        yield f"Conche K = {K}", partial(Ours, classes, K)
    if stream.name == "drifting":
        memory = conche.Memory(discount="auto")
        yield "Conche K = 8 (discount auto)", partial(Ours, classes, 8, solver=memory)
    if not classes:
        net = conche.ElasticNet("auto", 0.9)
        yield "Conche K = 8 (elastic net)", partial(Ours, classes, 8, solver=net)
    for ridge in (1e-3, 1.0, 100.0):
        yield f"X^T X, ridge {ridge:g}", partial(Products, classes, ridge)
    if classes:
        yield "streaming LDA", LDA
    for rate in RATES:
        own: Any = dict(eta0=rate, learning_rate="constant")
        yield f"SGD, {rate}", partial(Theirs, classes, "SGDRegressor", "SGDClassifier", **own)
        yield f"river, {rate}", partial(River, classes, rate)
    passive = ("PassiveAggressiveRegressor", "PassiveAggressiveClassifier")
    for C in (1e-3, 1e-1):
        yield f"passive-aggressive, {C}", partial(Theirs, classes, *passive, C=C)
    for rate in (0.05, 0.5):
        yield f"Vowpal Wabbit, {rate}", partial(Vowpal, classes, rate)
    if not classes and p <= 300:
        for forgetting in (1.0, 0.9995):
            yield f"padasip RLS, {forgetting}", partial(Recursive, forgetting)
