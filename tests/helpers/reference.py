"""Slow, obvious versions of what the package does fast; written from the paper and the docs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conche import Task
from conche.common.arrays import Array
from conche.nodes.solvers.sketch import PROBES, probes, sketch_matrix


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


def conche_method(
    tasks: Sequence[Task], blocks: Sequence[Array], m: int, ridge: float, discount: float = 1.0
) -> tuple[Array, list[float]]:
    """The Conche method with every minimisation solved to the end: weights, and theta per task."""
    p = tasks[0].X.shape[1]
    w, H, Abar = np.zeros(p), np.zeros((p, p)), np.zeros((m, p))
    own = np.zeros((p, p), dtype=bool)
    for b in blocks:
        own[np.ix_(b, b)] = True
    thetas = []
    for t, task in enumerate(tasks):
        theta = 1.0
        if t > 0 and len(blocks) > 1:
            x = probes(0, m)
            M = [Abar[:, b] @ Abar[:, b].T for b in blocks]
            observed = (
                sum(
                    np.trace(x.T @ M[k] @ M[j] @ x)
                    for k in range(len(M))
                    for j in range(len(M))
                    if j != k
                )
                / PROBES
            )
            trace = [np.trace(H[np.ix_(b, b)]) for b in blocks]
            dd = sum(trace) ** 2 - sum(x**2 for x in trace)
            signal = max(0.0, (max(0.0, observed) - dd / m) / (1 + 1 / m))
            noise = (dd + signal) / m
            theta = noise / (noise + signal)
        thetas.append(theta)
        blockwise = [Abar[:, b] for b in blocks]
        past = theta * np.where(own, H, 0.0)
        if max(len(b) for b in blocks) > m:  # wide: the block's own curvature is in the sketch too
            each = (_embed(B.T @ B, b, p) for B, b in zip(blockwise, blocks, strict=True))
            past = theta * sum(each, np.zeros((p, p)))
        past = past + (1 - theta) * Abar.T @ Abar
        G = task.X.T @ task.X
        d = np.linalg.solve(G + past + ridge * np.eye(p), task.X.T @ (task.y - task.X @ w))
        w = w + d
        H = discount * H + G
        S = sketch_matrix(0, t, task.n_samples, m, "float64")
        Abar = np.sqrt(discount) * Abar + S @ task.X
    return w, thetas


def _embed(block: Array, b: Array, p: int) -> Array:
    whole = np.zeros((p, p))
    whole[np.ix_(b, b)] = block
    return whole
