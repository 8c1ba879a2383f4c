"""Ridge solutions by Householder reflections in extended precision: slow, plain, and right where
double precision has lost its digits."""

from __future__ import annotations

import numpy as np
import pytest

from conche.common.arrays import Array

Wide = np.longdouble
needs_long_double = pytest.mark.skipif(
    float(np.finfo(Wide).eps) > 1e-18, reason="long double is no longer than double on this machine"
)


def reflected(A: Array, y: Array) -> tuple[Array, Array]:
    """Householder: A = Q R; returns the square R and the head of Q^T y."""
    A, y = A.astype(Wide), y.astype(Wide)
    for j in range(A.shape[1]):
        v = A[j:, j].copy()
        v[0] += np.copysign(np.sqrt(v @ v), v[0])
        size = v @ v
        if size > 0:
            A[j:, j:] -= np.outer(v, (v @ A[j:, j:]) * (2 / size))
            y[j:] -= v * ((v @ y[j:]) * (2 / size))
    return A[: A.shape[1]], y[: A.shape[1]]


def least_squares(A: Array, y: Array) -> Array:
    """The w that minimises |A w - y|, for columns of any units."""
    size = np.sqrt(np.sum(A.astype(Wide) ** 2, axis=0))
    R, c = reflected(A / size, y)
    w = np.zeros(len(c), Wide)
    for j in reversed(range(len(c))):
        w[j] = (c[j] - R[j, j + 1 :] @ w[j + 1 :]) / R[j, j]
    return np.asarray(w / size)


def one_output(
    X: Array, y: Array, ridge: Array, weights: Array, intercept: bool
) -> tuple[Array, Array]:
    """Weights w and intercept b that minimise
    sum_i v_i (y_i - x_i w - b)^2 + sum_j ridge_j w_j^2, with b = 0 where there is no intercept.

    A column without a ridge and without an own direction keeps weight 0: zeros, and constants
    beside an intercept. An infinite ridge: all weights are 0.
    """
    here = weights > 0
    X, y, root = X[here].astype(Wide), y[here].astype(Wide), np.sqrt(weights[here].astype(Wide))
    silent = np.ptp(X, axis=0) == 0 if intercept else ~np.any(X, axis=0)
    used = np.flatnonzero(~(silent & (ridge == 0)) & np.isfinite(ridge))
    ones = np.ones((len(X), int(intercept)), Wide)  # first, so that the rest is as if centred
    A = root[:, None] * np.hstack([ones, X[:, used]])
    below = np.hstack(
        [np.zeros((len(used), int(intercept)), Wide), np.diag(np.sqrt(ridge[used].astype(Wide)))]
    )
    solved = least_squares(np.vstack([A, below]), np.append(root * y, np.zeros(len(used), Wide)))
    w = np.zeros(X.shape[1], Wide)
    w[used] = solved[int(intercept) :]
    return w, solved[0] if intercept else Wide(0)


def ridge_solution(
    X: Array, Y: Array, ridge: Array, weights: Array | None = None, intercept: bool = True
) -> tuple[Array, Array]:
    """The same for every column of Y, each with a row of ``ridge``: weights, one row an output, and
    intercepts."""
    v = np.ones(len(X)) if weights is None else weights
    every = zip(Y.T, np.atleast_2d(ridge), strict=True)
    W, b = zip(*(one_output(X, y, r, v, intercept) for y, r in every), strict=True)
    return np.array(W), np.array(b)


def discounted(weights: list[Array], discount: float) -> Array:
    """The weights of all rows: each task's, faded once by every later task."""
    last = len(weights) - 1
    return np.concatenate(
        [v.astype(Wide) * Wide(discount) ** (last - t) for t, v in enumerate(weights)]
    )
