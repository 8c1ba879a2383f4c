"""Trials of blocks much wider than the task, at a cost that does not depend on their width.

Drawn are the few directions that matter (the unknowns' span, and the estimate's part outside it)
and the Wishart factor of all the others together: exact in distribution, not an approximation.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...common.arrays import Array
from ..gaussian import gaussian_rows
from .model import Generators, Model


def by_span(model: Model, rngs: Generators) -> Array:
    """|w_t - w*_s|^2 (trials x T x T). Blocks with p_k >= n + span + 1, uncorrelated features.

    O(K n^3) a task, whatever p is. A block's estimate is its coordinates in the span of the
    unknowns and the length s of the rest. One round is all there is (Lemma 2).
    """
    U = _coordinates(model, rngs)
    B, K = len(rngs), model.n_nodes
    inside = [np.zeros((B, u.shape[-1])) for u in U]
    outside = np.zeros((K, B))
    out = np.empty((B, model.n_tasks, model.n_tasks))
    for t, n in enumerate(model.n_samples):
        C, c, L = [], [], []
        g = np.sqrt(model.noise_var[t]) * _normal(rngs, (n,))
        for k, u in enumerate(U):
            C.append(_normal(rngs, (n, u.shape[-1])))
            c.append(_normal(rngs, (n,)))
            others = model.partition[k] - u.shape[-1] - 1
            # L L^T is the Wishart matrix of all the others
            L.append(np.swapaxes(np.stack([gaussian_rows(r, others, n) for r in rngs]), 1, 2))
            g += _apply(C[k], u[:, t] - inside[k]) - outside[k][:, None] * c[k]
        for k in range(K):
            M = C[k] @ np.swapaxes(C[k], 1, 2) + c[k][:, :, None] * c[k][:, None]
            M += L[k] @ np.swapaxes(L[k], 1, 2)
            alpha = np.linalg.solve(M, g[..., None])[..., 0] / K  # Delta_k = A_k^T alpha
            inside[k] = inside[k] + _apply(np.swapaxes(C[k], 1, 2), alpha)
            along = outside[k] + np.sum(c[k] * alpha, axis=1)
            rest = np.linalg.norm(_apply(np.swapaxes(L[k], 1, 2), alpha), axis=1)
            outside[k] = np.hypot(along, rest)
        apart = sum(
            np.sum((inside[k][:, None] - u[:, : model.n_tasks]) ** 2, axis=-1)
            for k, u in enumerate(U)
        )
        out[:, t] = apart + np.sum(outside**2, axis=0)[:, None]
    return out


def fits(model: Model) -> bool:
    """Whether every block is wide enough for `by_span`."""
    if model.correlation > 0:
        return False
    return all(p - min(model.n_tasks + 1, p) - 1 >= max(model.n_samples) for p in model.partition)


def _normal(rngs: Generators, shape: tuple[int, ...]) -> Array:
    return np.stack([rng.standard_normal(shape) for rng in rngs])


def _apply(A: Array, x: Array) -> Array:
    return np.asarray((A @ x[..., None])[..., 0])


def _coordinates(model: Model, rngs: Generators) -> list[Array]:
    """The unknowns in an orthonormal basis of their span, per block: trials x T x span.

    Gaussian vectors of any length are known by their Gram matrix, whose triangular factor is drawn
    directly; the first coordinate is the part that all tasks share.
    """
    edges = np.cumsum([0, *model.partition])
    if model.weights is not None:
        spans = [model.weights[:, a:b] for a, b in pairwise(edges)]
        factors = [np.asarray(np.linalg.qr(block.T, mode="r")).T for block in spans]
        return [np.broadcast_to(u, (len(rngs), *u.shape)) for u in factors]
    shared = np.clip(model.n_shared - edges[:-1], 0, model.partition)
    drawn = [_one_draw(model, shared.tolist(), rng) for rng in rngs]
    return [np.stack(blocks) for blocks in zip(*drawn, strict=True)]


def _one_draw(model: Model, shared: list[int], rng: np.random.Generator) -> list[Array]:
    """The coordinates of one trial's unknowns; ``shared`` counts each block's common ones."""
    T, p = model.n_tasks, model.n_features
    common, own = [], []
    for size, in_common in zip(model.partition, shared, strict=True):
        common.append(np.sqrt(rng.chisquare(in_common)) if in_common else 0.0)
        rest = size - in_common
        own.append(gaussian_rows(rng, rest, T).T if rest else np.zeros((T, 0)))
    level = np.sqrt(sum(x**2 for x in common)) or 1.0
    lengths = np.sqrt(sum(np.sum(u**2, axis=1) for u in own))
    lengths[lengths == 0] = 1.0
    a = np.sqrt(model.n_shared / p) / level
    b = np.sqrt((p - model.n_shared) / p) / lengths
    return [
        np.hstack([np.full((T, 1), a * x), b[:, None] * u])
        for x, u in zip(common, own, strict=True)
    ]
