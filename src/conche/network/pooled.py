"""All columns at the coordinator: what lossless memory does with a network.

Three exchanges a task, whatever the number of rounds: the task begins, the nodes' rotated columns
come here once, and the new weights go back. In between one node, here, has them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from scipy import linalg, sparse

from ..common.arrays import Array, Block, bytes_of, joined, like, space
from ..common.threads import blas_threads
from ..nodes import PLAIN, Node, NodeState, Opening, Proposal, Scaling, Start
from ..nodes.layout import Layout
from ..nodes.solvers import Context
from ..nodes.solvers.information import Information
from ..nodes.solvers.pooled import PooledMemory
from .base import CentralNetwork, Coefficients, Lost, Placed
from .wrapper import Wrapped

REFRESHED = (1, 2, 3, 5, 8, 13, 21, 34)  # rounds that begin with a new factor, if need be
WORTH_ALL_CORES = 1e9  # products: below, threads of ours that wait for more keep nodes from working


class PooledNetwork(Wrapped):
    """A central network whose nodes send their columns. After theirs, ``placed`` has the state of
    the one node here: the past of all columns."""

    def __init__(self, inner: CentralNetwork):
        super().__init__(inner)
        self._state: NodeState | None = None
        self._root: Array | None = None  # of the samples' weights
        self._node: Node | None = None
        self._light = False  # whether the work here is little

    def place(self, states: Sequence[NodeState]) -> Placed:
        return (*self.inner.place(states[:-1]), states[-1])

    def fetch(self, placed: Placed) -> list[NodeState]:
        return [*self.inner.fetch(placed[:-1]), placed[-1]]

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        self._root = start.root
        self._state = self.grown(placed[-1].only(start.outputs), start)
        return self.inner.begin(X, placed[:-1], start)

    def grown(self, state: NodeState, start: Start) -> NodeState:
        """The past of all columns, with the new ones, which have none, in their nodes' places."""
        if not any(start.added):
            return state
        assert self.setup is not None
        partition = self.setup.partition
        added = list(start.added)
        sizes = [n - more for n, more in zip(partition.weight_counts(), added, strict=True)]
        holds = [partition.intercept and k == 0 for k in range(len(sizes))]
        solver = cast(PooledMemory, self.setup.solver).coordinator()
        return state.laid_out(solver, Layout.grown(sizes, added, holds), False)

    def factorise(self, context: Context) -> None:
        """Collect the columns, in the coordinates of this task, and factorise them here."""
        state = self._state
        assert state is not None and self.setup is not None
        self.inner.factorise(context)
        transforms = self.inner.ask("transform") if context.turning else []
        if any(T.size for T in transforms):
            state = _moved(state, transforms, self.setup.partition.weight_counts())
        elif state.kept:
            state = replace(state, kept={**state.kept, "before": state.weights})
        columns = self.inner.ask("columns")
        # bytes are those of nodes that are apart, whose transforms are whole matrices
        self.overhead = 8 * sum(len(T) ** 2 for T in transforms) + bytes_of(state.weights)
        self.overhead += sum(8 * c.shape[0] * c.shape[1] for c in columns)
        solver = cast(PooledMemory, self.setup.solver)
        self._node = Node(solver.coordinator(), Scaling())
        self._node.take(_side_by_side(columns), state)
        self._light = context.n_samples * state.weights.shape[0] ** 2 < WORTH_ALL_CORES
        with self._threads():
            self._node.factorise(replace(context, n_nodes=1))

    def refresh(self, curvature: Array, round_number: int) -> bool:
        """Newton's method now and then, ever more rarely: rounds in between are cheap."""
        if round_number in REFRESHED:
            self._one().ask("bend", curvature)
        return round_number in REFRESHED

    def propose(self, g: Array) -> Proposal:
        with self._threads():
            return self._one().propose(g)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self._one().accept(step, momentum)

    def cost(self, arrays: Sequence[Array | None]) -> int:
        """Rounds send nothing: they happen here."""
        return 0

    def conclude(self, curvature: Array | None, g: Array) -> Lost:
        """Nothing is lost."""
        return Lost()

    def voices(self, context: Context) -> int:
        """One has all columns."""
        return 1

    def leverage(self, rows: Array) -> Array | None:
        return self._one().ask("leverage", rows)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        assert self.setup is not None
        node = self._one()
        d, ends = node.position().d, np.cumsum([0, *self.setup.partition.weight_counts()])
        moves = [d[first:last, :] for first, last in pairwise(ends.tolist())]
        with self._threads():
            state = node.end(curvature)
        self.inner.move(moves)
        whole, placed = self.inner.end(curvature)
        self._state = self._node = None
        return whole, (*placed, state)

    def abandon(self) -> None:
        self._state = self._node = None
        self.inner.abandon()

    def _threads(self) -> AbstractContextManager[Any]:
        """BLAS's threads go on for a while after their work, on cores that nodes may need."""
        return blas_threads(1) if self.inner.apart and self._light else nullcontext()

    def _one(self) -> Node:
        assert self._node is not None
        return self._node


def _side_by_side(blocks: Sequence[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    if any(sparse.issparse(block) for block in blocks):
        return sparse.hstack(blocks, "csc")
    return joined(blocks, 1)


def _moved(state: NodeState, transforms: Sequence[Array], sizes: Sequence[int]) -> NodeState:
    """The same past and estimate in the coordinates of this task."""
    turning = any(T.ndim == 2 for T in transforms)
    same = np.eye if turning else np.ones
    blocks = [T if T.size else same(p) for T, p in zip(transforms, sizes, strict=True)]
    whole = linalg.block_diag(*blocks) if turning else np.concatenate(blocks)[:, None]
    w = state.weights
    T = like(w, whole)
    past = Information.known(state.kept)
    kept: dict[str, Array] = {}
    if past is not None:
        kept = (past.moved(T) if turning else past.stretched(T)).to_keep()
        # R w of the last task's ridge, seen from here
        kept["before"] = T.T @ w if turning else T * w
    return NodeState(space(T).linalg.solve(T, w) if turning else w / T, kept)
