"""Regression, one ``partial_fit`` a task."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ..losses import get_loss
from ..network import Network
from ..network.base import Estimate
from ..solvers import Solver
from ..solvers.base import Array
from .base import Stream


class CoCoARegressor(MultiOutputMixin, RegressorMixin, Stream):  # type: ignore[misc]  # untyped
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
        not forget), ``"sparse"`` (an elastic net), or a `conche.solvers.Solver`.
    damping : for ``"damped"``, mu in (K A_k^T A_k + mu n I) Delta = A_k^T (y - v); for
        ``"memory"``, the ridge lambda that the stream starts with. None: a default that depends on
        neither the unit nor the origin of a column. ``"auto"``: five strengths around it learn side
        by side (five times the messages), and the one that has predicted every task best before it
        was learnt is the model; no data are kept for it. For ``"sparse"``, the strength alpha of
        scikit-learn's ``ElasticNet``; it must be given.
    sketch_size : for ``"memory"``, rows of the sketch that the nodes share; 0 keeps block curvature
        alone, None chooses 2 n_features within 256 and 600 (one node of up to 4096 columns: 0).
    discount : for ``"memory"``, the weight of the past per task; 1 never forgets.
    acceleration : None for plain rounds, ``"cg"`` for conjugate gradients on the same messages.
    tol : end a task's rounds once the certificate (``bound`` in ``history_``) is at most ``tol``
        times the objective that the task began with; where rounds can certify nothing (several
        nodes and no penalty), also once what the nodes propose would move the predictions by at
        most ``tol`` times the residual that the task began with.
    network : ``"local"``, ``"mpi"`` (a node a rank), ``"ray"`` (a node an actor), a `conche.Graph`
        (nodes that talk to neighbours alone), or a `conche.network.Network`.
    fit_intercept : add a constant column to the first node. Off by default, as in the paper.
    seed : of the shared sketch.
    scaling : None; ``"first"``: each node scales its columns by the first task (the first tasks,
        until ten samples have been seen of a column and it has varied); ``"running"``: by all tasks
        so far. With an intercept they are centred too, at their mean in the first task. ``coef_``
        and ``predict`` are for columns as they come.
    missing : ``"refuse"``, or ``"mean"``: NaN is filled with the column's mean so far.
    aggregation : of plain rounds: ``"safe"``, all nodes move by 1/K of their proposals (for
        ``"sparse"``: by proposals that allow for K nodes), or ``"adaptive"``, by the largest step
        that the data allow, found from what is exchanged anyway.
    local_steps : for ``"exact"`` and ``"damped"``: a node takes this many conjugate-gradient steps
        a round instead of factorising its block.
    l1_ratio : for ``"sparse"``: the share of the L1 penalty, as in ``ElasticNet``.

    Attributes
    ----------
    coef_ : the estimate, (n_features,) or (n_outputs, n_features).
    intercept_ : 0 unless ``fit_intercept``.
    n_tasks_seen_ : tasks learnt so far.
    partition_ : which node holds which columns.
    history_ : one record per round: task, round, residual, loss, bound (how far the task is from
        its optimum at most), bytes, seconds, accuracy (of inexact nodes), disagreement (of nodes
        without a centre).
    tasks_ : one record per task: its error before and after it was learnt, bytes, seconds.
    damping_ : the damping in force in the last task (for ``"memory"`` without ``damping``, the mean
        scale of the columns that their own ridges come from).
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

    def _shape_weights(self, estimate: Estimate, chosen: slice) -> dict[str, Any]:
        shaped = super()._shape_weights(estimate, chosen)
        if self._flat_y:
            shaped["coef_"] = shaped["coef_"][0]
            shaped["intercept_"] = float(np.ravel(shaped["intercept_"])[0])
        return shaped

    def predict(self, X: Any) -> Array:
        return self._decide(X)


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
            n_nodes, partition, n_rounds, solver, damping, sketch_size, discount, acceleration,
            tol, network, fit_intercept, seed, scaling, missing, aggregation, local_steps, l1_ratio,
        )  # fmt: skip
