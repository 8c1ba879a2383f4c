"""Trials of blocks much wider than the task, at a cost that does not depend on their width.

Drawn are the few directions that matter (the unknowns' span, and the estimate's part outside it)
and the Wishart factor of all the others together: exact in distribution, not an approximation.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...common.arrays import Array
from ...common.device import Device, Draws
from ...common.linear import solve_positive, transposed
from ..gaussian import gaussian_batch
from .model import Model


def by_span(model: Model, draws: Draws, device: Device) -> Array:
    """|w_t - w*_s|^2 (trials x T x T). Blocks with p_k >= n + span + 1, uncorrelated features.

    O(K n^3) a task, whatever p is. A block's estimate is its coordinates in the span of the
    unknowns and the length s of the rest. One round is all there is (Lemma 2).
    """
    xp, K = device.xp, model.n_nodes
    U = _coordinates(model, draws, device)
    inside = [xp.zeros_like(u[:, 0, :]) for u in U]
    outside = [device.put(np.zeros(len(draws))) for _ in U]
    out: list[Array] = []
    for t, n in enumerate(model.n_samples):
        C, c, L = [], [], []
        g = model.noise_var[t] ** 0.5 * draws.normal((n,))
        for k, u in enumerate(U):
            C.append(draws.normal((n, u.shape[-1])))
            c.append(draws.normal((n,)))
            others = model.partition[k] - u.shape[-1] - 1
            # L L^T is the Wishart matrix of all the others
            L.append(transposed(gaussian_batch(draws, xp, others, n)))
            g = g + _apply(C[k], u[:, t, :] - inside[k]) - outside[k][:, None] * c[k]
        apart: Array = 0.0
        for k, u in enumerate(U):
            M = C[k] @ transposed(C[k]) + c[k][:, :, None] * c[k][:, None, :]
            M = M + L[k] @ transposed(L[k])
            alpha = solve_positive(M, g[..., None])[..., 0] / K  # Delta_k = A_k^T alpha
            inside[k] = inside[k] + _apply(transposed(C[k]), alpha)
            along = outside[k] + xp.sum(c[k] * alpha, axis=1)
            rest = _apply(transposed(L[k]), alpha)
            outside[k] = xp.sqrt(along * along + xp.sum(rest * rest, axis=1))
            off = inside[k][:, None, :] - u[:, : model.n_tasks, :]
            apart = apart + xp.sum(off * off, axis=-1) + (outside[k] ** 2)[:, None]
        out.append(apart)
    return device.fetch(xp.stack(out, axis=1))


def fits(model: Model) -> bool:
    """Whether every block is wide enough for `by_span`."""
    if model.correlation > 0:
        return False
    return all(p - min(model.n_tasks + 1, p) - 1 >= max(model.n_samples) for p in model.partition)


def _apply(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def _coordinates(model: Model, draws: Draws, device: Device) -> list[Array]:
    """The unknowns in an orthonormal basis of their span, per block: trials x T x span.

    Gaussian vectors of any length are known by their Gram matrix, whose triangular factor is drawn
    directly; the first coordinate is the part that all tasks share.
    """
    xp, edges = device.xp, np.cumsum([0, *model.partition])
    if model.weights is not None:
        spans = [model.weights[:, a:b] for a, b in pairwise(edges)]
        factors = [device.put(np.asarray(np.linalg.qr(block.T, mode="r")).T) for block in spans]
        return [xp.broadcast_to(u, (len(draws), *u.shape)) for u in factors]
    shared = np.clip(model.n_shared - edges[:-1], 0, model.partition).tolist()
    T, p = model.n_tasks, model.n_features
    nothing = device.put(np.zeros(len(draws)))
    common, own = [], []
    for size, in_common in zip(model.partition, shared, strict=True):
        drawn = draws.chisquare(np.array([in_common]))[:, 0] if in_common else nothing
        common.append(xp.sqrt(drawn))
        rest = size - in_common
        empty = device.put(np.zeros((len(draws), T, 0)))
        own.append(transposed(gaussian_batch(draws, xp, rest, T)) if rest else empty)
    level = xp.sqrt(sum((x**2 for x in common), nothing))
    lengths = xp.sqrt(sum((xp.sum(u * u, axis=2) for u in own), nothing[:, None]))
    a = (model.n_shared / p) ** 0.5 / xp.where(level > 0, level, xp.ones_like(level))
    b = ((p - model.n_shared) / p) ** 0.5 / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return [
        xp.concat(
            [xp.broadcast_to((a * x)[:, None, None], (len(draws), T, 1)), b[..., None] * u], axis=2
        )
        for x, u in zip(common, own, strict=True)
    ]
