"""Lossless memory by sums: the coordinator gets all columns at once, mixed, and no node's own.

A task takes four sums: what nodes have drawn, twice, to make one rotation of it; their rows, which
are then in coordinates that nobody can turn back; and, at the end, what they are to keep
(`conche.nodes.solvers.mixed`). In between one node, here, has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ..common.arrays import Array, joined, zeros
from ..nodes import PLAIN, Node, NodeState, Opening, Scaling, Start
from ..nodes.solvers import Context
from ..nodes.solvers.cholesky import robust_cholesky
from ..nodes.solvers.mixed import MixedMemory, mixed_columns
from .base import CentralNetwork, Coefficients, Each, Placed
from .pooled import WORTH_ALL_CORES, PooledNetwork

NEARLY = 1e-3  # off the identity: what is a rotation to the last bit if it is turned once more


class MixedNetwork(PooledNetwork):
    """A central network whose nodes send their columns mixed. The past is with the nodes."""

    def __init__(self, inner: CentralNetwork):
        super().__init__(inner)
        self._outputs, self._mixes = 1, False

    def place(self, states: Sequence[NodeState]) -> Placed:
        return self.inner.place(states)

    def fetch(self, placed: Placed) -> list[NodeState]:
        return self.inner.fetch(placed)

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        opening = self.inner.begin(X, placed, start)
        self._outputs = opening.predictions.shape[1]
        return opening

    def factorise(self, context: Context) -> None:
        """Collect the rows, in coordinates of this task alone, and factorise them here."""
        self.overhead, self._mixes = 0, context.apart
        self.inner.factorise(context)
        rows = self._whole("rows", 1, self._rotation())
        if self._mixes and context.intercept:
            rows = joined([rows, self.inner.total("constant")], 1)
        past, p = len(rows) - context.n_samples, rows.shape[1]
        kept = {"root": rows[:past, :]} if past else {}
        if context.turning or context.discount != 1.0:
            kept["pull"] = self._whole("pull", 0)
        # bytes are those of nodes that are apart: products, triangles, rows, pull and update
        vectors = (1 + ("pull" in kept)) * p * self._outputs
        self._count(4 * mixed_columns(context) ** 2 + len(rows) * p + vectors)
        assert self.setup is not None
        self._node = Node(cast(MixedMemory, self.setup.solver).coordinator(), Scaling())
        self._node.take(rows[past:, :], NodeState(zeros(rows, p, self._outputs), kept))
        self._light = len(rows) * p**2 < WORTH_ALL_CORES
        with self._threads():
            self._node.factorise(replace(context, n_nodes=1))

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        node = self._one()
        d = node.position().d
        with self._threads():
            root = node.end(curvature).kept.get("root")
        if root is not None:
            self._count(root.shape[0] * root.shape[1])
            self.inner.total("keep", Each(self._parts(root, 1)) if not self._mixes else root)
        self.inner.move(self._parts(d, 0))
        self._node = None
        return self.inner.end(curvature)

    def _rotation(self) -> Array:
        """By what nodes are to turn the numbers that they have drawn for the last time. To be
        orthogonal to the last bit, they are turned once more after they nearly are."""
        if not self._mixes:
            return np.zeros((0, 0))
        products = self.inner.total("draw")
        while np.max(np.abs(products - np.eye(len(products)))) > NEARLY:
            products = self.inner.total("turn", _triangle(products))
        return _triangle(products)

    def _whole(self, question: str, axis: int, *about: Array) -> Array:
        """What all nodes answer: a sum; where nothing is mixed, one beside the other."""
        if self._mixes:
            return self.inner.total(question, *about)
        return joined(self.inner.ask(question, *about), axis)

    def _parts(self, x: Array, axis: int) -> list[Array]:
        """What every node is told of coordinates: all of them where they are mixed."""
        assert self.setup is not None
        counts = self.setup.partition.weight_counts()
        if self._mixes:
            return [x] * len(counts)
        ends = pairwise(np.cumsum([0, *counts]).tolist())
        return [x[a:b, :] if axis == 0 else x[:, a:b] for a, b in ends]

    def _count(self, numbers: int) -> None:
        self.overhead += 8 * self.hosts() * numbers


def _triangle(products: Array) -> Array:
    """R with R^T R = products."""
    L = robust_cholesky(products).L
    assert L is not None
    return np.tril(L).T
