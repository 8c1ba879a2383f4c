"""What regressor and classifier share."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypedDict, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ..cocoa import RoundRecord, learn
from ..gossip import gossip
from ..losses import Loss
from ..network import LocalNetwork, Network
from ..network.base import Estimate
from ..network.graph import Graph
from ..network.mpi import guard
from ..node import State
from ..partition import Partition
from ..preparation import Preparation
from ..solvers import Context, Exact, Solver
from ..solvers.base import Array
from ..tasks.columns import Columns
from .helpers import first_bad, frozen, group, group_losses
from .settings import check_parameters, make_rule, make_solver


class NearSquareWarning(UserWarning):
    """A node's block is nearly square: the paper's theory gives an infinite expected error."""


class TaskRecord(TypedDict):
    """One task, as ``tasks_`` shows it."""

    task: int  # counted from 1
    before: float  # its error before it was learnt: mean square, or error rate
    after: float
    samples: int
    bytes: int  # sent between coordinator and nodes
    seconds: float


class Stream(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What regressor and classifier share: parameters, nodes, and the place in the stream."""

    partition_: Partition
    _n_outputs: int
    history_: list[RoundRecord]
    tasks_: list[TaskRecord]
    _scores: Array
    _agreed: float
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
        self.scaling = scaling
        self.missing = missing
        self.aggregation = aggregation
        self.local_steps = local_steps
        self.l1_ratio = l1_ratio

    def _validate(self, X: Any, y: Any, reset: bool, **checks: Any) -> tuple[Any, Any]:
        if isinstance(X, Columns):
            return X, self._validate_columns(X, y, reset)
        dtype = [np.float64, np.float32] if reset else self._weights_dtype
        try:
            return validate_data(
                self, X, y, reset=reset, dtype=dtype, accept_sparse=["csr", "csc"],
                ensure_all_finite="allow-nan" if self.missing == "mean" else True, **checks,
            )  # fmt: skip
        except ValueError as error:
            if not str(error).startswith("Input X contains"):
                raise
            raise ValueError(f"{str(error).splitlines()[0]} {first_bad(X)}".strip()) from None

    def _validate_columns(self, X: Columns, y: Any, reset: bool) -> Array:
        """Columns that nobody has read yet: their number and names; the target as it is."""
        names = None if X.names is None else np.array(X.names, dtype=object)
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = names
        known = getattr(self, "feature_names_in_", None)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} columns, the stream {self.n_features_in_}")
        if names is not None and known is not None and not np.array_equal(names, known):
            raise ValueError("the columns' names are not those of the first task")
        y = np.asarray(y)
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)}")
        if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
            raise ValueError("the target has missing or infinite values")
        return y

    def _learn_task(self, X: Any, Y: Array, loss: Loss, reset: bool) -> None:
        """Learn one task from targets Y (n_samples x n_outputs); nothing changes if it fails."""
        check_parameters(self)
        clock = time.perf_counter()
        before = self._place_to_return_to() if reset else None
        try:
            if reset:
                self._start(X, Y.shape[1])
            else:
                self._check_stream()
            learnt = self._learnt(X, Y, loss, clock)
        except BaseException:
            nodes = getattr(self, "_nodes", None)
            if nodes is not None:
                nodes.abandon()
            if before is not None:
                before[0].start(*before[1:])
            raise
        self._nodes.commit()
        self.__dict__.update(learnt)

    def _place_to_return_to(self) -> Any:
        """What to start a network object with again, should a fit that starts over with it fail."""
        if not hasattr(self, "coef_") or self.network is not self._nodes:
            return None
        try:
            states = self._nodes.states()
        except Exception:  # lost: there is nothing to return to
            return None
        return self._nodes, self._solver, self.partition_, states, self._preparation

    def _learnt(self, X: Any, Y: Array, loss: Loss, clock: float) -> dict[str, Any]:
        """The model's attributes after the task; the nodes have yet to commit to it."""
        self._warn_if_nearly_square(X.shape[0])
        context = Context(
            task=self.n_tasks_seen_,
            n_nodes=len(self.partition_),
            n_samples=X.shape[0],
            smoothness=loss.smoothness,
            damping=self._agreed,
            sigma=len(self.partition_) if self.aggregation == "safe" else 1.0,
            intercept=bool(self.fit_intercept),
        )
        targets = np.asarray(Y, dtype=self._weights_dtype)
        if len(self._scores) > 1:  # one group of outputs for every strength of the damping
            targets = np.tile(targets, (1, len(self._scores)))
        scores = self._scores

        def shown(predictions: Array) -> slice:
            """Which outputs are the model's: those that have predicted best so far."""
            nonlocal scores
            scores = scores + group_losses(loss, predictions, targets, len(scores))
            return group(int(np.argmin(scores)), Y.shape[1])

        task = (X, targets, loss, self._solver, context, make_rule(self), shown)
        if isinstance(self._nodes, Graph):
            done = gossip(self._nodes, *task)
        else:
            done = learn(self._nodes, *task)
        chosen = group(int(np.argmin(scores)), Y.shape[1])
        errors = TaskRecord(
            task=self.n_tasks_seen_ + 1,
            before=self._error(done.before[:, chosen], Y),
            after=self._error(done.after[:, chosen], Y),
            samples=X.shape[0],
            bytes=sum(record["bytes"] for record in done.history),
            seconds=time.perf_counter() - clock,
        )
        strength = getattr(self._solver, "strengths", (1.0,))[int(np.argmin(scores))]
        return {
            "history_": [*self.history_, *done.history],
            "tasks_": [*self.tasks_, errors],
            "damping_": done.context.damping * strength,
            "_agreed": done.context.damping,
            "_scores": scores,
            "n_tasks_seen_": self.n_tasks_seen_ + 1,
            **self._shape_weights(done.estimate, chosen),
        }

    def _start(self, X: Any, n_outputs: int) -> None:
        """Fresh nodes with zero weights."""
        self.partition_ = Partition.make(
            X.shape[1], self.n_nodes, self.partition, self.fit_intercept
        )
        self._solver = make_solver(self, self.partition_)
        self._preparation = Preparation(self.scaling, self.missing, bool(self.fit_intercept))
        self._fixed = self._settings()
        self._weights_dtype = X.dtype
        self.history_, self.tasks_, self.n_tasks_seen_, self._agreed = [], [], 0, 0.0
        groups = len(getattr(self._solver, "strengths", (1.0,)))
        self._scores = np.zeros(groups)
        shape = (groups * n_outputs,)
        counts = self.partition_.weight_counts()
        self._open_network([State(np.zeros((c, *shape), X.dtype)) for c in counts])

    def _settings(self) -> dict[str, Any]:
        """What a stream is begun with and cannot go on without."""
        return {
            "n_nodes": self.n_nodes,
            "partition": None if self.partition is None else frozen(self.partition),
            "fit_intercept": self.fit_intercept,
            "solver": make_solver(self, self.partition_),
            "loss": getattr(self, "loss", None),
            "network": self.network,
            "scaling": self.scaling,
            "missing": self.missing,
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
        elif self.network == "mpi":
            from ..network.mpi import MPINetwork

            self._nodes = MPINetwork()
        elif self.network == "ray":
            from ..network.ray import RayNetwork

            self._nodes = RayNetwork()
        elif not hasattr(self.network, "propose") or isinstance(self.network, type):
            names = "'local', 'mpi', 'ray', a Graph"
            raise ValueError(f"network={self.network!r} must be {names} or a Network object")
        else:
            self._nodes = cast(Network, self.network)
        self._nodes.start(self._solver, self.partition_, states, self._preparation)

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
                stacklevel=6,
            )

    def _shape_weights(self, estimate: Estimate, chosen: slice) -> dict[str, Any]:
        """From n_features (+ 1) x n_outputs to coef_ and intercept_."""
        p = self.partition_.n_features
        weights = estimate.weights[:, chosen]
        intercept: Any = weights[p] if self.fit_intercept else 0.0
        if self.scaling is not None:
            intercept = intercept + estimate.offset[chosen].astype(weights.dtype)
        return {
            "coef_": np.ascontiguousarray(weights[:p].T),
            "intercept_": intercept,
            "_means": estimate.means,
        }

    def _error(self, predictions: Array, Y: Array) -> float:
        """How far predictions are from targets; mean square here, error rate for classes."""
        return float(np.mean((np.asarray(predictions, dtype=float) - Y) ** 2))

    def _decide(self, X: Any) -> Array:
        check_is_fitted(self, "coef_")
        filled = self.missing == "mean"
        if isinstance(X, Columns):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns, the model {self.n_features_in_}")
            X = np.asarray(X)
        else:
            X = validate_data(
                self, X, reset=False, accept_sparse=["csr", "csc"],
                dtype=[np.float64, np.float32],
                ensure_all_finite="allow-nan" if filled else True,
            )  # fmt: skip
        if filled and not sparse.issparse(X) and np.isnan(X).any():
            X = np.where(np.isnan(X), self._means, X)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    @contextmanager
    def _unchanged_on_failure(self) -> Iterator[None]:
        before = dict(self.__dict__)
        if self.network == "mpi":
            guard()
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
