"""How nodes talk: the same few calls, whatever carries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..node import Opening, Proposal, State
from ..partition import Partition
from ..preparation import Preparation
from ..solvers.base import Array, Context, Solver


class NodeError(ValueError):
    """What went wrong on one node, told to all of them."""


class Estimate(NamedTuple):
    """All nodes' weights, for columns as they come, in their order; the intercept's row is last."""

    weights: Array  # n_features (+ 1) x n_outputs
    offset: Array  # n_outputs: what centring adds to the intercept
    means: Array | None  # of the columns, where missing values are filled with them


def estimate(partition: Partition, preparation: Preparation, states: Sequence[State]) -> Estimate:
    """What the nodes' states amount to, outside."""
    outward = [preparation.outward(state.weights, state.numbers) for state in states]
    weights = partition.join([own for own, _ in outward])
    offset = np.sum([off for _, off in outward], axis=0)
    if preparation.missing == "refuse" or not states[0].numbers:
        return Estimate(weights, offset, None)
    whole = [state.numbers["mean"] for state in states]
    return Estimate(weights, offset, partition.join(whole, intercept=False))


class Network(Protocol):
    """K nodes behind one small protocol. Answers are sums over the nodes, in the nodes' order.

    A network carries one stream; ``partition`` is the very object that it was started with.

    Every engine returns the local network's result to 1e-10.
    """

    partition: Partition

    def start(
        self,
        solver: Solver,
        partition: Partition,
        states: Sequence[State],
        preparation: Preparation | None = None,
    ) -> None:
        """Make the nodes, each with its state."""

    def begin(self, X: Any) -> Opening: ...

    def prepare(self, context: Context) -> None: ...

    def propose(self, g: Array) -> Proposal: ...

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        """None where every node knows it: a step of 1/K, no momentum. Nothing is sent then."""

    def end(self, curvature: Array | None = None) -> Estimate:
        """Finish the task on every node without yet letting go of the old state.

        Returns the estimate as it will be.
        """

    def commit(self) -> None:
        """Make what ``end`` prepared the nodes' state."""

    def abandon(self) -> None:
        """Give up the task under way; every node stays as it was before it."""

    def states(self) -> list[State]:
        """Every node's weights and memory, for saving."""

    def close(self) -> None: ...
