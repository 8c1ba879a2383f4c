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
from scipy import linalg

from ..common.arrays import Array, bytes_of, like, side_by_side, space
from ..common.threads import blas_threads
from ..nodes import PLAIN, Node, NodeState, Opening, Proposal, Scaling, Start
from ..nodes.layout import Layout
from ..nodes.solvers import Context
from ..nodes.solvers.information import Information
from ..nodes.solvers.pooled import PooledMemory
from ..nodes.solvers.stretched import Stretched
from ..nodes.stack import Stack, StackState
from .base import CentralNetwork, Coefficients, Lost, Placed
from .wrapper import Wrapped

FACTOR = 40  # columns for which a factor takes as long as a round more
MOST_ROUNDS = 12  # with one factor
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
        placed = self.inner.place(states[:-1])
        return (*placed, self._in_order(states[-1], StackState.among(placed)))

    def fetch(self, placed: Placed) -> list[NodeState]:
        stack = StackState.among(placed)
        return [*self.inner.fetch(placed[:-1]), self._in_order(placed[-1], stack, back=True)]

    def _in_order(self, state: NodeState, stack: Stack | None, back: bool = False) -> NodeState:
        """The past of all columns, in the order in which one node has everybody's, if it has; or
        ``back`` from there to nodes one after the other."""
        if stack is None:
            return state
        rows = np.concatenate(stack.own) if back else stack.order
        return state.laid_out(self._memory().coordinator(), Layout.of(rows), False)

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        self._root = start.root
        self._state = placed[-1].only(start.outputs)
        if any(start.added):
            stack = StackState.among(placed)
            grown = self.grown(self._in_order(self._state, stack, back=True), start)
            assert self.setup is not None
            now = None if stack is None else Stack.of(self.setup.partition)
            self._state = self._in_order(grown, now)
        return self.inner.begin(X, placed[:-1], start)

    def grown(self, state: NodeState, start: Start) -> NodeState:
        """The past of all columns, with the new ones, which have none, in their nodes' places."""
        assert self.setup is not None
        partition, added = self.setup.partition, [len(own) for own in start.added]
        sizes = [n - more for n, more in zip(partition.weight_counts(), added, strict=True)]
        holds = [partition.intercept and k == 0 for k in range(len(sizes))]
        layout = Layout.grown(sizes, added, holds)
        return state.laid_out(self._memory().coordinator(), layout, False)

    def _memory(self) -> PooledMemory:
        assert self.setup is not None
        return cast(PooledMemory, self.setup.solver)

    def _counts(self) -> list[int]:
        """The weights of every node that sends its columns."""
        assert self.setup is not None
        counts = self.setup.partition.weight_counts()
        return [sum(counts)] if self.inner.in_one_place else counts

    def factorise(self, context: Context) -> None:
        """Collect the columns, in the coordinates of this task, and factorise them here."""
        state = self._state
        assert state is not None and self.setup is not None
        self.inner.factorise(context)
        transforms = self.inner.ask("transform") if context.turning else []
        if any(T.size for T in transforms):
            state = _moved(state, transforms, self._counts())
        elif state.kept:
            state = replace(state, kept={**state.kept, "before": state.weights})
        columns = self.inner.ask("columns")
        self.overhead = self._turned_bytes(transforms) + bytes_of(state.weights)
        self.overhead += sum(8 * c.shape[0] * c.shape[1] for c in columns)
        self._node = Node(self._memory().coordinator(), Scaling())
        self._node.take(_side_by_side(columns), state)
        self._light = context.n_samples * state.weights.shape[0] ** 2 < WORTH_ALL_CORES
        with self._threads():
            self._node.factorise(replace(context, n_nodes=1))

    def _turned_bytes(self, transforms: Sequence[Array]) -> int:
        """Of nodes that are apart, whose transforms are whole matrices."""
        assert self.setup is not None
        if self.inner.in_one_place and any(T.size for T in transforms):
            own = Stack.of(self.setup.partition).own
            transforms = [transforms[0][places] for places in own]
            transforms = [T for T in transforms if np.any(T != 1.0)]
        return 8 * sum(len(T) ** 2 for T in transforms)

    def refresh(self, curvature: Array, round_number: int) -> bool:
        """Newton's method now and then: after the first round, which leaves the start behind, and
        as often as a factor is paid for by rounds."""
        every = min(max(self._one().position().d.shape[0] // FACTOR, 1), MOST_ROUNDS)
        again = round_number == 1 or (round_number > 0 and round_number % every == 0)
        if again:
            self._one().ask("bend", curvature)
        return again

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

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        assert self.setup is not None
        node = self._one()
        d, ends = node.position().d, np.cumsum([0, *self._counts()])
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


def _side_by_side(columns: Sequence[Any]) -> Any:
    """All nodes' columns; as they are, where one has them."""
    return (
        columns[0]
        if len(columns) == 1
        else side_by_side([Stretched.of(c).whole() for c in columns])
    )


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
