"""scikit-learn's face of it: one ``partial_fit`` is one task."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data

from .cocoa import RoundRecord, learn
from .losses import Loss, get_loss
from .network import LocalNetwork, Network
from .node import State
from .partition import Partition
from .solvers import Context, Curvature, Damped, Exact, Solver, default_sketch_size
from .solvers.base import Array

SOLVERS = ("exact", "damped", "memory")


class NearSquareWarning(UserWarning):
    """A node's block is nearly square: the paper's theory gives an infinite expected error."""


class _Stream(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What regressor and classifier share: parameters, nodes, and the place in the stream."""

    partition_: Partition
    _n_outputs: int
    history_: list[RoundRecord]
    n_tasks_seen_: int
    damping_: float

    def __init__(
        self,
        n_nodes: int | None = None,
        partition: Any = None,
        n_rounds: int = 1,
        solver: str | Solver = "exact",
        damping: float | None = None,
        sketch_size: int | None = None,
        discount: float = 1.0,
        acceleration: Literal["cg"] | None = None,
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        seed: int = 0,
    ):
        self.n_nodes = n_nodes
        self.partition = partition
        self.n_rounds = n_rounds
        self.solver = solver
        self.damping = damping
        self.sketch_size = sketch_size
        self.discount = discount
        self.acceleration = acceleration
        self.tol = tol
        self.network = network
        self.fit_intercept = fit_intercept
        self.seed = seed

    def _validate(self, X: Any, y: Any, reset: bool, **checks: Any) -> tuple[Any, Any]:
        dtype = [np.float64, np.float32] if reset else self._weights_dtype
        return validate_data(
            self, X, y, reset=reset, dtype=dtype, accept_sparse=["csr", "csc"], **checks
        )

    def _learn_task(self, X: Any, Y: Array, loss: Loss, reset: bool) -> None:
        """Learn one task from targets Y (n_samples x n_outputs); nothing changes if it fails."""
        self._check_parameters()
        if reset:
            self._start(X, Y.shape[1])
        elif (solver := self._make_solver()) != self._solver:
            raise ValueError(
                f"the stream was begun with {self._solver} and cannot go on with {solver}; "
                f"call fit to start over"
            )
        K = len(self.partition_)
        self._warn_if_nearly_square(X.shape[0])
        context = Context(self.n_tasks_seen_, K, X.shape[0], loss.smoothness, damping=self.damping_)
        try:
            done = learn(
                self._nodes, X, np.asarray(Y, dtype=X.dtype), loss, self._solver, context,
                self.n_rounds, self.acceleration, self.tol,
            )  # fmt: skip
        except BaseException:
            self._nodes.abandon()
            raise
        self.history_.extend(done.history)
        self.damping_ = done.context.damping
        self.n_tasks_seen_ += 1
        self._set_weights(self._nodes.weights())

    def _start(self, X: Any, n_outputs: int) -> None:
        """Fresh nodes with zero weights."""
        self.partition_ = Partition.make(
            X.shape[1], self.n_nodes, self.partition, self.fit_intercept
        )
        self._solver = self._make_solver()
        self._weights_dtype = X.dtype
        self.history_, self.n_tasks_seen_, self.damping_ = [], 0, 0.0
        counts = self.partition_.weight_counts()
        self._open_network([State(np.zeros((c, n_outputs), X.dtype)) for c in counts])

    def _open_network(self, states: list[State]) -> None:
        if self.network == "local":
            self._nodes: Network = LocalNetwork()
        elif isinstance(self.network, str):
            raise ValueError(f"network={self.network!r} must be 'local' or a Network object")
        else:
            self._nodes = self.network
        self._nodes.start(self._solver, self.partition_, states)

    def _make_solver(self) -> Solver:
        if isinstance(self.solver, Solver):
            return self.solver
        if self.solver == "exact":
            return Exact()
        if self.solver == "damped":
            return Damped(self.damping)
        if self.solver == "memory":
            size = self.sketch_size
            if size is None:
                size = default_sketch_size(self.partition_.n_features, len(self.partition_))
            return Curvature(size, self.damping, self.discount, self.seed)
        raise ValueError(f"solver={self.solver!r} must be one of {SOLVERS} or a Solver object")

    def _check_parameters(self) -> None:
        _check("n_rounds", self.n_rounds, Integral, low=1)
        _check("discount", self.discount, Real, low=0, high=1)
        _check("seed", self.seed, Integral, low=0)
        if self.damping is not None:
            _check("damping", self.damping, Real, low=0)
        if self.sketch_size is not None:
            _check("sketch_size", self.sketch_size, Integral, low=0)
        if self.tol is not None:
            _check("tol", self.tol, Real, low=0)
        if self.acceleration not in (None, "cg"):
            raise ValueError(f"acceleration={self.acceleration!r} must be None or 'cg'")

    def _warn_if_nearly_square(self, n: int) -> None:
        """Said before training: where |n - p_k| <= 1, Theorem 1's error is infinite."""
        if not isinstance(self._solver, Exact):
            return
        counts = self.partition_.weight_counts()
        square = [k for k, p in enumerate(counts) if abs(n - p) <= 1]
        if square:
            k = square[0]
            warnings.warn(
                f"node {k} holds {counts[k]} columns for {n} samples ({len(square)} such node(s)): "
                f"nearly square blocks have an unbounded expected error under solver='exact'; use "
                f"another number of nodes, or solver='damped' or 'memory'",
                NearSquareWarning,
                stacklevel=4,
            )

    def _set_weights(self, weights: Array) -> None:
        """From n_features (+ 1) x n_outputs to coef_ and intercept_."""
        p = self.partition_.n_features
        self.coef_ = np.ascontiguousarray(weights[:p].T)
        self.intercept_: Any = weights[p] if self.fit_intercept else 0.0

    def _decide(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        X = validate_data(
            self, X, reset=False, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32]
        )
        return np.asarray(X @ self.coef_.T + self.intercept_)

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class CoCoARegressor(MultiOutputMixin, RegressorMixin, _Stream):  # type: ignore[misc]
    """Distributed continual linear regression with CoCoA.

    The columns of X live on ``n_nodes`` nodes that exchange vectors as long as the task has
    samples, never features. Each ``partial_fit`` learns one task in ``n_rounds`` communication
    rounds, starting from the last estimate. The defaults are the paper's Algorithm 1.

    Parameters
    ----------
    n_nodes : number of nodes K; columns are split evenly. Default 1.
    partition : instead of an even split, the block sizes ``[5, 12, 9]`` or lists of columns.
    n_rounds : communication rounds per task (the paper's T_c).
    solver : what a node does with its block: ``"exact"`` (Algorithm 1, minimum norm), ``"damped"``
        (the same with a brake, for real data), ``"memory"`` (keeps the past as curvature and does
        not forget), or a `conche.solvers.Solver`.
    damping : for ``"damped"``, mu in (K A_k^T A_k + mu n I) Delta = A_k^T (y - v); for
        ``"memory"``, the ridge lambda that the stream starts with. None: a scale-free default.
    sketch_size : for ``"memory"``, rows of the sketch that the nodes share; 0 keeps block curvature
        alone, None chooses 2 n_features within 256 and 600 (one node of up to 4096 columns: 0).
    discount : for ``"memory"``, the weight of the past per task; 1 never forgets.
    acceleration : None for plain rounds, ``"cg"`` for conjugate gradients on the same messages.
    tol : end a task's rounds once one moves the predictions by at most ``tol`` times the residual
        that the task began with.
    network : ``"local"``, or a `conche.network.Network`.
    fit_intercept : add a constant column to the first node. Off by default, as in the paper.
    seed : of the shared sketch.

    Attributes
    ----------
    coef_ : the estimate, (n_features,) or (n_outputs, n_features).
    intercept_ : 0 unless ``fit_intercept``.
    n_tasks_seen_ : tasks learnt so far.
    partition_ : which node holds which columns.
    history_ : one record per round: task, round, residual, loss, bytes, seconds.
    damping_ : the damping in force in the last task.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Start over and learn (X, y) as the first task."""
        return self._fit(X, y, reset=True)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn one more task."""
        return self._fit(X, y, reset=not hasattr(self, "coef_"))

    def _fit(self, X: Any, y: Any, reset: bool) -> Self:
        with self._unchanged_on_failure():
            X, y = self._validate(X, y, reset, multi_output=True, y_numeric=True)
            Y = y if y.ndim == 2 else y[:, None]
            if not reset and (Y.shape[1] != self._n_outputs or y.ndim != self.coef_.ndim):
                raise ValueError(
                    f"y has shape {y.shape}, but the stream began with {self._n_outputs} output(s)"
                )
            self._flat_y = y.ndim == 1
            self._n_outputs = Y.shape[1]
            self._learn_task(X, Y, get_loss("squared"), reset)
        return self

    def _set_weights(self, weights: Array) -> None:
        super()._set_weights(weights)
        if self._flat_y:
            self.coef_ = self.coef_[0]
            self.intercept_ = float(self.intercept_[0]) if self.fit_intercept else 0.0

    def predict(self, X: Any) -> Array:
        return self._decide(X)


class CoCoAClassifier(ClassifierMixin, _Stream):  # type: ignore[misc]
    """Distributed continual linear classification with CoCoA, one against the rest.

    As `CoCoARegressor`, with targets in {-1, 1}: one output for two classes, else one per class.

    Parameters
    ----------
    loss : ``"squared"`` or ``"logistic"``.
    n_nodes, partition, n_rounds, solver, damping, sketch_size, discount, acceleration, tol, \
network, fit_intercept, seed : as in `CoCoARegressor`.

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
        damping: float | None = None,
        sketch_size: int | None = None,
        discount: float = 1.0,
        acceleration: Literal["cg"] | None = None,
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        seed: int = 0,
    ):
        super().__init__(
            n_nodes, partition, n_rounds, solver, damping, sketch_size, discount, acceleration,
            tol, network, fit_intercept, seed,
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
                    f"label {unseen[0]} was never seen: the stream's classes are "
                    f"{', '.join(map(str, self.classes_))}"
                )
            self._learn_task(X, self._encode(y, X.dtype), loss, reset)
        return self

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
        p = expit(self._decide(X))
        if p.shape[1] == 1:
            return np.hstack([1 - p, p])
        return np.asarray(p / p.sum(axis=1, keepdims=True))


class ConcheRegressor(CoCoARegressor):
    """`CoCoARegressor` with the defaults we recommend: it learns a stream in one pass, keeps no
    sample, and reaches the error of training on everything at once for any number of nodes.

    Block curvature and a shared sketch (``solver="memory"``), ten conjugate-gradient rounds.
    """

    def __init__(
        self,
        n_nodes: int | None = None,
        partition: Any = None,
        n_rounds: int = 10,
        solver: str | Solver = "memory",
        damping: float | None = None,
        sketch_size: int | None = None,
        discount: float = 1.0,
        acceleration: Literal["cg"] | None = "cg",
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        seed: int = 0,
    ):
        super().__init__(
            n_nodes, partition, n_rounds, solver, damping, sketch_size, discount, acceleration,
            tol, network, fit_intercept, seed,
        )  # fmt: skip


class ConcheClassifier(CoCoAClassifier):
    """`CoCoAClassifier` with the defaults we recommend, as in `ConcheRegressor`."""

    def __init__(
        self,
        n_nodes: int | None = None,
        loss: str = "squared",
        partition: Any = None,
        n_rounds: int = 10,
        solver: str | Solver = "memory",
        damping: float | None = None,
        sketch_size: int | None = None,
        discount: float = 1.0,
        acceleration: Literal["cg"] | None = "cg",
        tol: float | None = None,
        network: str | Network = "local",
        fit_intercept: bool = False,
        seed: int = 0,
    ):
        super().__init__(
            n_nodes, loss, partition, n_rounds, solver, damping, sketch_size, discount,
            acceleration, tol, network, fit_intercept, seed,
        )  # fmt: skip


def _check(name: str, value: Any, kind: Any, low: float, high: float = np.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        what = "a whole number" if kind is Integral else "a number"
        upto = f" and at most {high}" if np.isfinite(high) else ""
        raise ValueError(f"{name}={value!r} must be {what} of at least {low}{upto}")
