"""Theorem 1 as the paper prints it, and a plain Monte Carlo of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from conche.common.arrays import Array

Numbers = Sequence[float] | Array


def theorem_1(W: Array, sizes: list[int], n: list[int], noise: Numbers, t: int) -> float:
    """G_T(w_t) by the printed backward form: h, H, R, Q; task indices from 1, w_0 = 0."""
    T, K = len(W), len(sizes)
    edges = np.cumsum([0, *sizes])
    block = [slice(a, b) for a, b in pairwise(edges)]
    r, gamma = np.zeros((T + 1, K)), np.zeros((T + 1, K))
    for tau in range(1, T + 1):
        for k, p in enumerate(sizes):
            low, high = min(n[tau - 1], p), max(n[tau - 1], p)
            r[tau, k], gamma[tau, k] = low / p, low / (high - low - 1)
    r[0] = K
    h = np.ones((t + 2, K))
    for tau in range(t, 0, -1):
        for k in range(K):
            others = sum(h[tau + 1, i] * gamma[tau, i] for i in range(K) if i != k)
            h[tau, k] = (h[tau + 1, k] * (K**2 + r[tau, k] * (1 - 2 * K)) + others) / K**2
    w = np.vstack([np.zeros(W.shape[1]), W])

    def inner(a: Array, b: Array, weights: Array) -> float:
        return float(sum(weights[k] * (a[block[k]] @ b[block[k]]) for k in range(K)))

    total = 0.0
    for i in range(1, T + 1):
        total += inner(w[i], w[i], h[1]) + noise[i - 1]
        for tau in range(1, t + 1):
            R, left = np.zeros(K), np.zeros(K)
            for k in range(K):
                others = sum(h[tau + 1, m] * gamma[tau, m] for m in range(K) if m != k)
                R[k] = (h[tau + 1, k] * r[tau, k] + others) / K**2
                left[k] = (h[tau + 1, k] * r[tau, k] * (K - 1) - others) / K**2
            e = w[tau] - w[i]
            total += inner(e, e, R) + noise[tau - 1] * (gamma[tau] @ h[tau + 1]) / K**2
            for j in range(tau):
                Q = left * r[j] / K
                for step in range(j + 1, tau):
                    Q = Q * (1 - r[step] / K)
                total += 2 * inner(e, w[j] - w[i], Q)
    return total / T


def simulate(
    W: Array,
    sizes: list[int],
    n: list[int],
    noise: Numbers,
    n_rounds: int = 1,
    damping: float | None = None,
    trials: int = 2000,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Errors G_T after every task (trials x T), and each task's own training error after it."""
    rng = np.random.default_rng(seed)
    T, p = W.shape
    K = len(sizes)
    edges = np.cumsum([0, *sizes])
    w = np.zeros((trials, p))
    errors, training = [], []
    for t in range(T):
        A = rng.standard_normal((trials, n[t], p))
        y = A @ W[t] + np.sqrt(noise[t]) * rng.standard_normal((trials, n[t]))
        solvers = []
        for a, b in pairwise(edges):
            block = A[:, :, a:b]
            if damping is None:
                solvers.append(np.linalg.pinv(block))
            else:
                left = K * block.transpose(0, 2, 1) @ block + damping * n[t] * np.eye(b - a)
                solvers.append(K * np.linalg.solve(left, block.transpose(0, 2, 1)))
        for _ in range(n_rounds):
            g = y - np.einsum("tnp,tp->tn", A, w)
            step = [np.einsum("tpn,tn->tp", S, g) / K for S in solvers]
            w = w + np.concatenate(step, axis=1)
        each = [np.sum((w - v) ** 2, axis=1) + s for v, s in zip(W, noise, strict=True)]
        errors.append(np.mean(each, axis=0))
        residual = np.einsum("tnp,tp->tn", A, w) - y
        training.append(np.mean(residual**2, axis=1) / 2)
    return np.array(errors).T, np.array(training).T
