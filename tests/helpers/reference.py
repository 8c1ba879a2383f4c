"""Slow, obvious versions of what the package does fast; written from the paper and the docs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conche import Task
from conche.common.arrays import Array


def algorithm_1(
    tasks: Sequence[Task], blocks: Sequence[Array], n_rounds: int, tau: float = 1.0
) -> Array:
    """Algorithm 1 as printed, with a pseudoinverse per node: lines 2 to 9."""
    K = len(blocks)
    w = np.zeros(tasks[0].X.shape[1])
    for task in tasks:
        A = [task.X[:, b] for b in blocks]
        pinv = [np.linalg.pinv(A_k, rcond=1e-13) for A_k in A]
        v = [K * A_k @ w[b] for A_k, b in zip(A, blocks, strict=True)]
        for _ in range(n_rounds):
            v_bar = sum(v) / K
            logistic = tau == 4
            g = task.y / (1 + np.exp(task.y * v_bar)) if logistic else task.y - v_bar
            for k, b in enumerate(blocks):
                delta = tau / K * pinv[k] @ g
                w[b] += delta
                v[k] = v_bar + K * A[k] @ delta
    return w


def principal_memory(
    tasks: Sequence[Task], blocks: Sequence[Array], rank: int, ridge: float, discount: float = 1.0
) -> Array:
    """The Conche method, dense, with every minimisation solved to the end.

    In units of the ridge, as the nodes work: with one ridge for all columns that is one factor.
    """
    p = tasks[0].X.shape[1]
    w, H, V = np.zeros(p), np.zeros((p, p)), np.zeros((0, p))
    own = np.zeros((p, p), dtype=bool)
    for b in blocks:
        own[np.ix_(b, b)] = True
    for task in tasks:
        A = task.X / np.sqrt(ridge)
        H, V = discount * H, np.sqrt(discount) * V
        past = V.T @ V + np.where(own, H - V.T @ V, 0.0) + np.eye(p)
        pull = (discount - 1) * w if H.any() else 0.0  # the ridge is not discounted
        w = w + np.linalg.solve(A.T @ A + past, A.T @ (task.y - A @ w) + pull)
        H = H + A.T @ A
        V = shortened(np.vstack([V, A]), rank)
    return w / np.sqrt(ridge)


def shortened(B: Array, rank: int) -> Array:
    """The best ``rank`` rows, each shortened by what is cut, shared out among all other
    directions."""
    p = B.shape[1]
    if len(B) <= rank:
        return B
    _, s, Vt = np.linalg.svd(B, full_matrices=False)
    level = 0.5 * np.sum(s[rank:] ** 2) / (p - rank)
    return np.asarray(np.sqrt(np.maximum(s[:rank] ** 2 - level, 0.0))[:, None] * Vt[:rank])


def ridge_solution(A: Array, Y: Array, ridge: float) -> Array:
    """(A^T A + ridge I)^-1 A^T Y, refined with residuals in extended precision."""
    wide = np.longdouble
    size = np.sqrt(np.sum(A**2, axis=0) + ridge)
    R = np.linalg.qr(np.vstack([A / size, np.diag(np.sqrt(ridge) / size)])).R
    G, b = A.astype(wide).T @ A.astype(wide), A.astype(wide).T @ Y.astype(wide)
    w = np.zeros(b.shape, wide)
    for _ in range(40):
        left: Array = (b - G @ w - wide(ridge) * w).astype(float)
        w = w + np.linalg.solve(R, np.linalg.solve(R.T, left / size[:, None])) / size[:, None]
    return w.astype(float)
