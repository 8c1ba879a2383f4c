"""Elastic nets of one task for many strengths of the penalty; each begins at the weights of the
last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array
from ..common.checks import real, whole
from ..errors import DataError, ParameterError
from ..network import Network
from ..nodes import NodeState
from ..nodes.solvers import ElasticNet
from .gap import Account
from .regressor import CoCoARegressor
from .state import StreamState

MOST_ROUNDS = 50  # for an alpha
TOL = 1e-8  # of the objective that it begins with


class ElasticNetPath(NamedTuple):
    """What scikit-learn's ``enet_path`` answers, and how."""

    alphas: Array  #: decreasing
    coefs: Array  #: n_features x n_alphas
    dual_gaps: Array  #: at most, in the unit of scikit-learn's objective


def elastic_net_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 0.5,
    alphas: int | Sequence[float] = 100,
    eps: float = 1e-3,
    n_nodes: int | None = None,
    partition: Any = None,
    network: str | Network = "local",
) -> ElasticNetPath:
    """The elastic net's weights over ``alphas``, without an intercept, as scikit-learn's
    ``enet_path`` has them; columns live on nodes.

    Parameters
    ----------
    X, y : one task: columns, dense or sparse, and one target.
    l1_ratio : the share of the L1 penalty.
    alphas, eps : strengths of the penalty, or how many of them between the one that leaves no
        weight and ``eps`` times that.
    n_nodes, partition, network : as in `CoCoARegressor`.

    Examples
    --------
    >>> import conche
    >>> task = conche.gaussian_tasks(n_tasks=1, n_samples=50, n_features=20, n_shared=20, seed=0)[0]
    >>> path = conche.elastic_net_path(task.X, task.y, n_nodes=4, alphas=10)
    >>> (path.coefs != 0).sum(axis=0).tolist()[0], path.coefs.shape
    (0, (20, 10))
    """
    if np.ndim(y) != 1 or len(y) != np.shape(X)[0]:
        raise DataError(f"y has shape {np.shape(y)}: a path has one target for every row of X")
    strengths = _strengths(X, np.asarray(y, dtype=float), l1_ratio, alphas, eps)
    coefs, gaps, state = [], [], None
    for alpha in strengths:
        model = CoCoARegressor(
            n_nodes,
            partition=partition,
            solver=ElasticNet(float(alpha), l1_ratio),
            n_rounds=MOST_ROUNDS,
            tol=TOL,
            network=network,
        )
        if state is not None:
            _begin_at(model, *state)
        model.partial_fit(X, y)
        state = model.state_, model.node_states()
        coefs.append(model.coef_)
        gaps.append(model.history_[-1]["bound"])
    return ElasticNetPath(strengths, np.array(coefs).T, np.array(gaps))


def _strengths(X: Any, y: Array, l1_ratio: Any, alphas: Any, eps: float) -> Array:
    """Decreasing."""
    rho = real("l1_ratio", l1_ratio, least=1e-6, most=1.0)
    if isinstance(alphas, int | np.integer):
        count = whole("alphas", alphas)
        largest = float(np.abs(X.T @ y).max()) / (len(y) * rho)
        if not 0 < largest < np.inf:
            raise DataError("no column has to do with the target: there is no path")
        return np.geomspace(largest, real("eps", eps, most=1.0) * largest, count)
    given = np.sort(np.asarray(alphas, dtype=float).ravel())[::-1]
    if not len(given) or not np.all(given > 0):
        raise ParameterError("alphas must be a whole number, or numbers above 0")
    return given


def _begin_at(model: CoCoARegressor, state: StreamState, nodes: list[NodeState]) -> None:
    """A stream that is about to begin, at the weights that another has ended with."""
    setup, settings = model.make_setup(state.schema)
    bare = [NodeState(node.weights, {}, node.numbers) for node in nodes]
    account = Account.of(state.judge.strengths, state.judge.n_outputs)
    model.go_on(
        replace(
            state,
            setup=setup,
            settings=settings,
            nodes=bare,
            account=account,
            history=(),
            tasks=(),
        )
    )
