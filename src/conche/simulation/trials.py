"""One trial, three ways. All have the same distribution; the reductions are exact, not approximate.

``plain`` draws every matrix and runs the real nodes. ``by_rows`` draws, where a task is tall, only
the triangular factor of A: nothing depends on A but through A^T A and A^T z. ``by_span`` is for
blocks much wider than the task: it draws the few directions that matter (the unknowns' span, and
the estimate's part outside it) and the Wishart factor of all the others together, so that its cost
does not depend on the number of columns.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..node import Node, State
from ..solvers import Context, Exact
from ..solvers.factor import factorise
from ..tasks import correlated
from ..theory.moments import gaussian_rows
from .model import Array, Model


def plain(model: Model, rng: np.random.Generator) -> Array:
    """G_T after 1..T tasks, with the nodes and the solver that users have."""
    W = model.draw_weights(rng)
    K, p = model.n_nodes, model.n_features
    edges = np.cumsum([0, *model.partition])
    nodes = [Node(Exact(), State(np.zeros((size, 1)))) for size in model.partition]
    errors = []
    for t, n in enumerate(model.n_samples):
        A = correlated(rng.standard_normal((n, p)), model.correlation)
        y = A @ W[t] + np.sqrt(model.noise_var[t]) * rng.standard_normal(n)
        blocks = [A[:, a:b] for a, b in pairwise(edges)]
        v = np.zeros((n, 1))
        for node, block in zip(nodes, blocks, strict=True):
            v = v + node.begin(block).predictions
        for node in nodes:
            node.prepare(Context(t, K, n, 1.0))
        for _ in range(model.n_rounds):
            g = y[:, None] - v
            v = v + sum(node.propose(g).image for node in nodes) / K
            for node in nodes:
                node.accept(np.array([1 / K]), np.zeros(1))
        for node in nodes:
            node.install(node.end())
        w = np.concatenate([node.state.weights[:, 0] for node in nodes])
        errors.append(model.error(w, W))
    return np.array(errors)


def by_rows(model: Model, rng: np.random.Generator) -> Array:
    """The same with min(n, p) rows: A up to a rotation of its samples."""
    W = model.draw_weights(rng)
    K, p = model.n_nodes, model.n_features
    edges = np.cumsum([0, *model.partition])
    w = np.zeros((p, 1))
    errors = []
    for t, n in enumerate(model.n_samples):
        R = correlated(gaussian_rows(rng, n, p), model.correlation)
        noise = np.sqrt(model.noise_var[t]) * rng.standard_normal((len(R), 1))
        g = R @ (W[t][:, None] - w) + noise
        subs = [factorise(R[:, a:b]) for a, b in pairwise(edges)]
        d = [np.zeros((sub.size, 1)) for sub in subs]
        for _ in range(model.n_rounds):
            z = [sub.solve(g, at) / K for sub, at in zip(subs, d, strict=True)]
            g = g - sum(sub.image(step) for sub, step in zip(subs, z, strict=True))
            d = [at + step for at, step in zip(d, z, strict=True)]
        w = w + np.concatenate([sub.lift(at) for sub, at in zip(subs, d, strict=True)])
        errors.append(model.error(w[:, 0], W))
    return np.array(errors)


def by_span(model: Model, rng: np.random.Generator) -> Array:
    """Blocks with p_k >= n + span + 1: O(K n^3) a task, whatever p is. Uncorrelated features only.

    A block's estimate is its coordinates in the span of the unknowns and the length s of the rest.
    One round is all there is (Lemma 2).
    """
    U = _coordinates(model, rng)
    K = model.n_nodes
    inside = [np.zeros(u.shape[1]) for u in U]
    outside = np.zeros(K)
    errors = []
    for t, n in enumerate(model.n_samples):
        C, c, L = [], [], []
        g = np.sqrt(model.noise_var[t]) * rng.standard_normal(n)
        for k, u in enumerate(U):
            C.append(rng.standard_normal((n, u.shape[1])))
            c.append(rng.standard_normal(n))
            others = model.partition[k] - u.shape[1] - 1
            L.append(
                gaussian_rows(rng, others, n).T
            )  # L L^T is the Wishart matrix of all the others
            g += C[k] @ (u[t] - inside[k]) - outside[k] * c[k]
        for k in range(K):
            M = C[k] @ C[k].T + np.outer(c[k], c[k]) + L[k] @ L[k].T
            alpha = np.linalg.solve(M, g) / K  # Delta_k = A_k^T alpha
            inside[k] = inside[k] + C[k].T @ alpha
            outside[k] = np.hypot(outside[k] + c[k] @ alpha, np.linalg.norm(L[k].T @ alpha))
        apart = [
            sum(np.sum((inside[k] - u[i]) ** 2) for k, u in enumerate(U))
            for i in range(model.n_tasks)
        ]
        errors.append(np.mean(apart) + np.sum(outside**2) + np.mean(model.noise_var))
    return np.array(errors)


def span_size(model: Model, k: int) -> int:
    """How many coordinates the unknowns of block k need at most."""
    return min(model.n_tasks + 1, model.partition[k])


def _coordinates(model: Model, rng: np.random.Generator) -> list[Array]:
    """The unknowns in an orthonormal basis of their span, per block: T x span.

    Gaussian vectors of any length are known by their Gram matrix, whose triangular factor is drawn
    directly; the first coordinate is the part that all tasks share.
    """
    T, p = model.n_tasks, model.n_features
    edges = np.cumsum([0, *model.partition])
    if model.weights is not None:
        spans = [model.weights[:, a:b] for a, b in pairwise(edges)]
        return [np.asarray(np.linalg.qr(block.T, mode="r")).T for block in spans]
    shared = np.clip(model.n_shared - edges[:-1], 0, model.partition)
    common, own = [], []
    for size, in_common in zip(model.partition, shared, strict=True):
        common.append(np.sqrt(rng.chisquare(in_common)) if in_common else 0.0)
        rest = size - int(in_common)
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
