"""Several nodes in one: what a device does with all of them in a few calls.

Their columns lie side by side, so that what is summed over the nodes is one product; what every
node does alone (factors of its own block) is done on a stack of equal blocks. So a thousand nodes
cost no more calls than one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.arrays import Array, columns_of, joined, rows_of, space, zeros
from .node import NodeState
from .partition import Partition

BY_ROWS = ("weights", "probes", "curved", "owed")  # have a row for every column; others: a column
BLOCKS = "remainder"  # kept with a matrix for every node


class Stack:
    """Where each node's columns are among all nodes'.

    Columns are in the nodes' order; the constant, if the first node has one, is the last of all.
    In a stack, blocks that are narrower than the widest end with zeros.
    """

    def __init__(self, sizes: Sequence[int], intercept: bool):
        counts = [size + (intercept and k == 0) for k, size in enumerate(sizes)]
        ends = np.cumsum(sizes)
        self.plain = np.split(np.arange(ends[-1]), ends[:-1])  # every node's places, constant aside
        self.own = list(self.plain)
        if intercept:
            self.own[0] = np.append(self.own[0], ends[-1])
        self.order = np.argsort(np.concatenate(self.own))  # from nodes one after the other to here
        self.count, self.width, self.total = len(counts), max(counts), sum(counts)
        self.even = min(counts) == self.width and not (intercept and self.count > 1)
        places = np.full((self.count, self.width), self.total)
        for row, own in zip(places, self.own, strict=True):
            row[: len(own)] = own
        self.places = places.ravel()
        self.back = np.argsort(self.places, kind="stable")[: self.total]
        self.missing = (places == self.total).astype(float)  # nodes x width: 1 where it is filled

    @classmethod
    def of(cls, partition: Partition) -> Stack:
        """Of all nodes of a partition."""
        return cls(partition.sizes, partition.intercept)

    @classmethod
    def of_states(cls, states: Sequence[NodeState], intercept: bool) -> Stack:
        """Of nodes with these states, who may be about to get more columns."""
        sizes = [state.weights.shape[0] - (intercept and k == 0) for k, state in enumerate(states)]
        return cls(sizes, intercept)

    def split(self, x: Array) -> Array:
        """Rows of all columns, nodes x width x ..."""
        if not self.even:
            x = rows_of(joined([x, zeros(x, 1, x.shape[1])]), self.places)
        return space(x).reshape(x, (self.count, self.width, x.shape[1]))

    def join(self, x: Array) -> Array:
        """Back from `split`."""
        x = space(x).reshape(x, (self.count * self.width, x.shape[2]))
        return x if self.even else rows_of(x, self.back)

    def columns(self, A: Array) -> Array:
        """All columns as blocks: nodes x rows x width."""
        if not self.even:
            A = columns_of(joined([A, zeros(A, A.shape[0], 1)], axis=1), self.places)
        xp = space(A)
        return xp.permute_dims(xp.reshape(A, (-1, self.count, self.width)), (1, 0, 2))

    def squares(self, A: Array) -> Array:
        """A_k^T A_k of every node."""
        blocks = self.columns(A)
        return space(A).matrix_transpose(blocks) @ blocks

    def times(self, E: Array, x: Array) -> Array:
        """E_k x_k of every node, as rows of all columns."""
        return self.join(E @ self.split(x))

    # ---- states, as NumPy has them ----

    def states(self, whole: NodeState) -> list[NodeState]:
        """Every node's own, from that of all."""
        return [
            NodeState(
                whole.weights[own],
                {name: self._part(name, array, k) for name, array in whole.kept.items()},
                {name: array[..., plain] for name, array in whole.numbers.items()},
            )
            for k, (own, plain) in enumerate(zip(self.own, self.plain, strict=True))
        ]

    def _part(self, name: str, array: Array, k: int) -> Array:
        own = self.own[k]
        if name == BLOCKS and array.ndim == 3:
            return array[k, : len(own), : len(own)]
        return array[own] if name in BY_ROWS else array[..., own]

    def whole(self, states: Sequence[NodeState]) -> NodeState:
        """That of all nodes, from every one's own."""
        first = states[0]
        kept = {name: self._joined(name, [s.kept[name] for s in states]) for name in first.kept}
        numbers = {
            name: np.concatenate([state.numbers[name] for state in states], axis=-1)
            for name in first.numbers
        }
        return NodeState(self._joined("weights", [s.weights for s in states]), kept, numbers)

    def _joined(self, name: str, parts: Sequence[Array]) -> Array:
        if name == BLOCKS and parts[0].ndim == 2:
            blocks = np.zeros((self.count, self.width, self.width))
            for block, part in zip(blocks, parts, strict=True):
                block[: len(part), : len(part)] = part
            return blocks
        axis = 0 if name in BY_ROWS else -1
        return np.take(np.concatenate(parts, axis), self.order, axis)


@dataclass(frozen=True)
class StackState(NodeState):
    """The state of several nodes in one, and whose is what."""

    stack: Stack | None = None

    @staticmethod
    def among(states: Sequence[Any]) -> Stack | None:
        """The stack of which the first of these is the state, if it is one's."""
        return states[0].stack if isinstance(states[0], StackState) else None
