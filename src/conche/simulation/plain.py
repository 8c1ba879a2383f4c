"""Trials without any shortcut: every matrix is drawn, and the real nodes learn it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..node import Node, State
from ..solvers import Context, Exact
from ..tasks import correlated
from .draws import Unknowns, distances
from .model import Array, Generators, Model


def plain(model: Model, rngs: Generators) -> Array:
    """|w_t - w*_s|^2 (trials x T x T)."""
    return np.stack([_one(model, rng) for rng in rngs])


def _one(model: Model, rng: np.random.Generator) -> Array:
    W = Unknowns(model, [rng]).of(model.n_shared)[0]
    K, p = model.n_nodes, model.n_features
    edges = np.cumsum([0, *model.partition])
    nodes = [Node(Exact(), State(np.zeros((size, 1)))) for size in model.partition]
    out = []
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
        out.append(distances(w, W, model.correlation))
    return np.array(out)
