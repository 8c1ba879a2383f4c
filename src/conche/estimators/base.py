"""What regressor and classifier share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Literal, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ..cocoa import RoundRecord, learn
from ..losses import Loss
from ..network import LocalNetwork, Network
from ..node import State
from ..partition import Partition
from ..solvers import Context, Curvature, Damped, Exact, Solver, default_sketch_size
from ..solvers.base import Array

SOLVERS = ("exact", "damped", "memory")


class NearSquareWarning(UserWarning):
    """A node's block is nearly square: the paper's theory gives an infinite expected error."""


class Stream(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What regressor and classifier share: parameters, nodes, and the place in the stream."""

    partition_: Partition
    _n_outputs: int
    history_: list[RoundRecord]
    n_tasks_seen_: int
    damping_: float
    coef_: Array
    intercept_: Any

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
        try:
            return validate_data(
                self, X, y, reset=reset, dtype=dtype, accept_sparse=["csr", "csc"], **checks
            )
        except ValueError as error:
            if not str(error).startswith("Input X contains"):
                raise
            raise ValueError(f"{str(error).splitlines()[0]} {_first_bad(X)}".strip()) from None

    def _learn_task(self, X: Any, Y: Array, loss: Loss, reset: bool) -> None:
        """Learn one task from targets Y (n_samples x n_outputs); nothing changes if it fails."""
        self._check_parameters()
        before = None
        if reset:
            if hasattr(self, "coef_"):  # a network object may be the one that fit starts over with
                before = (self._nodes, self._solver, self.partition_, self._nodes.states())
            self._start(X, Y.shape[1])
        else:
            self._check_stream()
        self._warn_if_nearly_square(X.shape[0])
        context = Context(
            task=self.n_tasks_seen_,
            n_nodes=len(self.partition_),
            n_samples=X.shape[0],
            smoothness=loss.smoothness,
            damping=self.damping_,
        )
        try:
            done = learn(
                self._nodes, X, np.asarray(Y, dtype=X.dtype), loss, self._solver, context,
                self.n_rounds, self.acceleration, self.tol,
            )  # fmt: skip
            learnt = {
                "history_": [*self.history_, *done.history],
                "damping_": done.context.damping,
                "n_tasks_seen_": self.n_tasks_seen_ + 1,
                **self._shape_weights(done.weights),
            }
        except BaseException:
            self._nodes.abandon()
            if before is not None and before[0] is self._nodes:
                self._nodes.start(*before[1:])
            raise
        self._nodes.commit()
        self.__dict__.update(learnt)

    def _start(self, X: Any, n_outputs: int) -> None:
        """Fresh nodes with zero weights."""
        self.partition_ = Partition.make(
            X.shape[1], self.n_nodes, self.partition, self.fit_intercept
        )
        self._solver = self._make_solver()
        self._fixed = self._settings()
        self._weights_dtype = X.dtype
        self.history_, self.n_tasks_seen_, self.damping_ = [], 0, 0.0
        counts = self.partition_.weight_counts()
        self._open_network([State(np.zeros((c, n_outputs), X.dtype)) for c in counts])

    def _settings(self) -> dict[str, Any]:
        """What a stream is begun with and cannot go on without."""
        return {
            "n_nodes": self.n_nodes,
            "partition": None if self.partition is None else _frozen(self.partition),
            "fit_intercept": self.fit_intercept,
            "solver": self._make_solver(),
            "loss": getattr(self, "loss", None),
            "network": self.network,
        }

    def _check_stream(self) -> None:
        if getattr(self._nodes, "partition", self.partition_) is not self.partition_:
            raise ValueError("another model has started this network object: give each its own")
        for name, new in self._settings().items():
            old = self._fixed[name]
            if old is not new and old != new:
                raise ValueError(
                    f"the {name} of a stream cannot change from {old} to {new}; fit starts over"
                )

    def _open_network(self, states: list[State]) -> None:
        if self.network == "local":
            self._nodes: Network = LocalNetwork()
        elif not hasattr(self.network, "propose"):
            raise ValueError(f"network={self.network!r} must be 'local' or a Network object")
        else:
            self._nodes = cast(Network, self.network)
        self._nodes.start(self._solver, self.partition_, states)

    def _make_solver(self) -> Solver:
        if isinstance(self.solver, Solver):
            return self.solver
        if self.solver == "exact":
            return Exact()
        if self.solver == "damped":
            return Damped(None if self.damping is None else float(self.damping))
        if self.solver == "memory":
            size = self.sketch_size
            if size is None:
                size = default_sketch_size(self.partition_.n_features, len(self.partition_))
            damping = None if self.damping is None else float(self.damping)
            return Curvature(int(size), damping, float(self.discount), int(self.seed))
        raise ValueError(f"solver={self.solver!r} must be one of {SOLVERS} or a Solver object")

    def _check_parameters(self) -> None:
        _check("n_rounds", self.n_rounds, Integral, low=1)
        _check("discount", self.discount, Real, low=0, high=1)
        _check("seed", self.seed, Integral, low=0)
        if self.damping is not None:
            _check("damping", self.damping, Real, low=0, high=np.finfo(float).max)
        if self.sketch_size is not None:
            _check("sketch_size", self.sketch_size, Integral, low=0)
        if self.tol is not None:
            _check("tol", self.tol, Real, low=0)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept={self.fit_intercept!r} must be True or False")
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
                stacklevel=5,
            )

    def _shape_weights(self, weights: Array) -> dict[str, Any]:
        """From n_features (+ 1) x n_outputs to coef_ and intercept_."""
        p = self.partition_.n_features
        intercept = weights[p] if self.fit_intercept else 0.0
        return {"coef_": np.ascontiguousarray(weights[:p].T), "intercept_": intercept}

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


def _check(name: str, value: Any, kind: Any, low: float, high: float = np.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:
        what = "a whole number" if kind is Integral else "a number"
        upto = f" and at most {high}" if np.isfinite(high) else ""
        raise ValueError(f"{name}={value!r} must be {what} of at least {low}{upto}")


def _frozen(partition: Any) -> tuple[Any, ...]:
    """Sizes or lists of columns, as values that can be compared."""
    return tuple(tuple(np.asarray(b).tolist()) if np.ndim(b) else int(b) for b in partition)


def _first_bad(X: Any) -> str:
    """Where the first missing or infinite entry of a dense X is, counted from 0."""
    try:
        bad = np.argwhere(~np.isfinite(np.asarray(X, dtype=np.float64)))
    except (TypeError, ValueError):
        return ""
    return f"(first at row {bad[0][0]}, column {bad[0][1]})" if len(bad) else ""
