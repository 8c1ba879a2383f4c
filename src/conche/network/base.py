"""How nodes talk: the same few calls, whatever carries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..node import Opening, Proposal, State
from ..partition import Partition
from ..solvers.base import Array, Context, Solver


class Network(Protocol):
    """K nodes behind one small protocol. Answers are sums over the nodes, in the nodes' order.

    A network carries one stream; ``partition`` is the very object that it was started with.

    Every engine returns the local network's result to 1e-10.
    """

    partition: Partition

    def start(self, solver: Solver, partition: Partition, states: Sequence[State]) -> None:
        """Make the nodes, each with its state."""

    def begin(self, X: Any) -> Opening: ...

    def prepare(self, context: Context) -> None: ...

    def propose(self, g: Array) -> Proposal: ...

    def accept(self, step: Array, momentum: Array) -> None: ...

    def end(self, curvature: Array | None = None) -> Array:
        """Finish the task on every node without yet letting go of the old state.

        Returns all weights as they will be, in the order of the columns (n_features x n_outputs,
        the intercept last).
        """

    def commit(self) -> None:
        """Make what ``end`` prepared the nodes' state."""

    def abandon(self) -> None:
        """Give up the task under way; every node stays as it was before it."""

    def states(self) -> list[State]:
        """Every node's weights and memory, for saving."""

    def close(self) -> None: ...
