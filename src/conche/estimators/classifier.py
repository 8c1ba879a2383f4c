"""Classification, one against the rest, one ``partial_fit`` a task."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit, log_expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from ..losses import get_loss
from ..network import Network
from ..solvers import Solver
from ..solvers.base import Array
from .base import Stream


class CoCoAClassifier(ClassifierMixin, Stream):  # type: ignore[misc]  # an untyped mixin
    """Distributed continual linear classification with CoCoA, one against the rest.

    As `CoCoARegressor`, with targets in {-1, 1}: one output for two classes, else one per class.

    Parameters
    ----------
    loss : ``"squared"`` or ``"logistic"``.
    n_nodes, partition, n_rounds, solver, damping, sketch_size, discount, acceleration, tol, \
network, fit_intercept, seed, scaling, missing, aggregation, local_steps, l1_ratio :
        as in `CoCoARegressor`.

    Attributes
    ----------
    classes_ : the labels, fixed by the first task or by ``classes``.
    coef_ : (1, n_features) for two classes, else (n_classes, n_features).
    """

    def __init__(
        self,
        n_nodes: int | None = None,
        loss: str = "squared",
        partition: Any = None,
        n_rounds: int = 1,
        solver: str | Solver = "exact",
        damping: float | Literal["auto"] | None = None,
        sketch_size: int | None = None,
        discount: float = 1.0,
        acceleration: Literal["cg"] | None = None,
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        seed: int = 0,
        scaling: str | None = None,
        missing: str = "refuse",
        aggregation: Literal["safe", "adaptive"] = "safe",
        local_steps: int | None = None,
        l1_ratio: float = 0.5,
    ):
        super().__init__(
            n_nodes, partition, n_rounds, solver, damping, sketch_size, discount, acceleration,
            tol, network, fit_intercept, seed, scaling, missing, aggregation, local_steps, l1_ratio,
        )  # fmt: skip
        self.loss = loss

    def fit(self, X: Any, y: Any) -> Self:
        """Start over and learn (X, y) as the first task."""
        return self._fit(X, y, None, reset=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn one more task. The first one fixes the classes: those of y unless given."""
        return self._fit(X, y, classes, reset=not hasattr(self, "coef_"))

    def _fit(self, X: Any, y: Any, classes: Any, reset: bool) -> Self:
        with self._unchanged_on_failure():
            loss = get_loss(self.loss)
            X, y = self._validate(X, y, reset)
            check_classification_targets(y)
            if reset:
                self.classes_ = unique_labels(y if classes is None else np.asarray(classes))
            elif classes is not None and not np.array_equal(unique_labels(classes), self.classes_):
                raise ValueError(f"classes={classes!r} are not those of the first task")
            if len(self.classes_) < 2:
                raise ValueError(
                    f"the first task has one class, {self.classes_[0]}: pass classes= to "
                    f"partial_fit, the Classifier needs at least two"
                )
            unseen = np.setdiff1d(y, self.classes_)
            if len(unseen):
                raise ValueError(
                    f"label {unseen.tolist()[0]!r} was never seen: the stream's classes are "
                    f"{self.classes_.tolist()}"
                )
            self._learn_task(X, self._encode(y, X.dtype), loss, reset)
        return self

    def _error(self, predictions: Array, Y: Array) -> float:
        if Y.shape[1] == 1:
            return float(np.mean((predictions > 0) != (Y > 0)))
        return float(np.mean(predictions.argmax(axis=1) != Y.argmax(axis=1)))

    def _encode(self, y: Array, dtype: Any) -> Array:
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return np.where(y[:, None] == labels[None, :], 1, -1).astype(dtype)

    def decision_function(self, X: Any) -> Array:
        scores = self._decide(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities; for the logistic loss only."""
        scores = self._decide(X)
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        return np.asarray(softmax(log_expit(scores), axis=1))  # expit, normalised over the classes


class ConcheClassifier(CoCoAClassifier):
    """`CoCoAClassifier` with the defaults we recommend, as in `ConcheRegressor`."""

    def __init__(
        self,
        n_nodes: int | None = None,
        loss: str = "squared",
        partition: Any = None,
        n_rounds: int = 10,
        solver: str | Solver = "memory",
        damping: float | Literal["auto"] | None = None,
        sketch_size: int | None = None,
        discount: float = 1.0,
        acceleration: Literal["cg"] | None = "cg",
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        seed: int = 0,
        scaling: str | None = None,
        missing: str = "refuse",
        aggregation: Literal["safe", "adaptive"] = "safe",
        local_steps: int | None = None,
        l1_ratio: float = 0.5,
    ):
        super().__init__(
            n_nodes, loss, partition, n_rounds, solver, damping, sketch_size, discount,
            acceleration, tol, network, fit_intercept, seed, scaling, missing, aggregation,
            local_steps, l1_ratio,
        )  # fmt: skip
