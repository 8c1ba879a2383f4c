"""The benchmark: all tasks at once on one machine (the paper's Section II-E)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, lsmr

from .common.arrays import Array, as_dense, gram
from .common.checks import real
from .errors import DataError, ParameterError
from .nodes.solvers.cholesky import Cholesky
from .tasks import Task

LARGEST_GRAM = 20_000


def offline_solution(tasks: Sequence[Task], damping: float = 0.0) -> Array:
    """Minimum-norm least squares on all tasks, or the ridge solution where ``damping`` > 0.

    argmin_w sum_t |A_t w - y_t|^2 + damping |w|^2, shaped like ``coef_``. The tasks are visited
    one at a time and never stacked: a Gram matrix on the smaller side where it is well
    conditioned; otherwise the triangular factor is updated task by task (tall), or LSMR runs over
    the tasks (wide or sparse).

    Parameters
    ----------
    tasks : all of them; a list, or whatever can be gone through more than once.
    damping : lambda; 0: least squares.

    Returns
    -------
    The coefficients.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(n_tasks=4, n_samples=50, n_features=8, n_shared=8, seed=0)
    >>> found = conche.offline_solution(tasks)
    >>> bool(abs(found - tasks[0].weights).max() < 0.05)  # one truth for all tasks
    True
    """
    if len(tasks) == 0:
        raise ParameterError("there are no tasks")
    widths = {task.n_features for task in tasks}
    if len(widths) > 1:
        raise DataError(f"tasks have different numbers of columns: {sorted(widths)}")
    damping = real("damping", damping)
    kinds = {t.y.shape[1:] for t in tasks}
    if len(kinds) > 1:
        raise DataError("tasks have different numbers of outputs")
    for number, task in enumerate(tasks, start=1):
        _check_finite(task, number)
    Xs = [t.X if sparse.issparse(t.X) else np.asarray(t.X) for t in tasks]
    ys = [np.asarray(t.y, dtype=np.float64).reshape(t.n_samples, -1) for t in tasks]
    n, p = sum(t.n_samples for t in tasks), tasks[0].n_features
    weights = None
    if min(n, p) <= LARGEST_GRAM:
        weights = _by_gram(Xs, ys, damping, wide=p > n)
    if weights is None and n >= p and not any(sparse.issparse(X) for X in Xs):
        weights = _by_triangle(Xs, ys, damping)
    if weights is None:
        weights = _by_iteration(Xs, ys, damping)
    return weights[:, 0] if kinds == {()} else weights.T


def _check_finite(task: Task, number: int) -> None:
    X = task.X.data if sparse.issparse(task.X) else np.asarray(task.X)
    for values in (X, task.y):
        if not (np.isfinite(np.sum(values)) or np.all(np.isfinite(values))):
            raise DataError(f"task {task.name or number} has missing or infinite values")


def _double(X: Any) -> Any:
    """In double precision, one task at a time; no copy where it already is."""
    return X.astype(np.float64, copy=False)


def _by_gram(Xs: Sequence[Any], ys: Sequence[Array], damping: float, wide: bool) -> Array | None:
    if wide:
        return _by_sample_gram(Xs, ys, damping)
    G = np.asarray(sum(gram(_double(X), wide=False) for X in Xs))
    factor = Cholesky.of(G, damping)
    return None if factor is None else factor.solve(_sum_back(Xs, ys))


def _by_sample_gram(Xs: Sequence[Any], ys: Sequence[Array], damping: float) -> Array | None:
    """w = sum_t A_t^T u_t with (A A^T + damping I) u = y."""
    edges = np.cumsum([0, *(X.shape[0] for X in Xs)])
    G = np.empty((edges[-1], edges[-1]))
    for i, A in enumerate(Xs):
        for j, B in enumerate(Xs[: i + 1]):
            product = as_dense(_double(A) @ _double(B).T)
            G[edges[i] : edges[i + 1], edges[j] : edges[j + 1]] = product
            G[edges[j] : edges[j + 1], edges[i] : edges[i + 1]] = product.T
    factor = Cholesky.of(G, damping)
    if factor is None:
        return None
    u = factor.solve(np.concatenate(ys))
    return _sum_back(Xs, np.split(u, edges[1:-1]))


def _sum_back(Xs: Sequence[Any], us: Sequence[Array]) -> Array:
    """sum_t A_t^T u_t."""
    total = np.zeros((Xs[0].shape[1], us[0].shape[1]))
    for X, u in zip(Xs, us, strict=True):
        total += _double(X).T @ u
    return total


def _by_triangle(Xs: Sequence[Any], ys: Sequence[Array], damping: float) -> Array:
    """QR of [R; A_t] task by task: accurate, and never larger than one task and one triangle."""
    p = Xs[0].shape[1]
    R = np.sqrt(damping) * np.eye(p)
    c = np.zeros((p, ys[0].shape[1]))
    for X, y in zip(Xs, ys, strict=True):
        stacked = np.hstack([np.vstack([R, X]), np.vstack([c, y])])
        triangle = linalg.qr(stacked, mode="r", check_finite=False, overwrite_a=True)[0]
        R, c = triangle[:p, :p], triangle[:p, p:]
    weights, *_ = linalg.lstsq(R, c, cond=p * np.finfo(float).eps, check_finite=False)
    return np.asarray(weights)


def _by_iteration(Xs: Sequence[Any], ys: Sequence[Array], damping: float) -> Array:
    """LSMR over the tasks: it tends to the minimum-norm solution and copies nothing."""
    edges = np.cumsum([0, *(X.shape[0] for X in Xs)])
    shape = (int(edges[-1]), Xs[0].shape[1])
    A = LinearOperator(
        shape,
        matvec=lambda w: np.concatenate([X @ np.ravel(w) for X in Xs]),
        rmatvec=lambda u: sum(
            X.T @ part for X, part in zip(Xs, np.split(np.ravel(u), edges[1:-1]), strict=True)
        ),
        dtype=np.dtype(float),
    )
    y = np.concatenate(ys)
    options = {"damp": np.sqrt(damping), "atol": 1e-14, "btol": 1e-14, "conlim": 0}
    columns = [
        lsmr(A, y[:, j], maxiter=10 * min(shape) + 100, **options)[0] for j in range(y.shape[1])
    ]
    return np.column_stack(columns)
