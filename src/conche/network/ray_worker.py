"""The node inside a Ray actor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from ..node import Node, Opening, Position, Proposal, State
from ..preparation import Preparation
from ..solvers.base import Array, Context, Solver
from ..tasks.columns import Source

Step = tuple[Array | None, Array | None]


class Worker:
    """The node inside an actor."""

    def __init__(self, *inside: Any):
        threadpool_limits(1, user_api="blas")  # several nodes share a machine's cores
        self.reset(*inside)

    def reset(
        self, solver: Solver, state: State, preparation: Preparation, intercept: bool
    ) -> None:
        self.node = Node(solver, state, preparation, intercept)
        self.staged: State | None = None

    def begin(self, block: Any) -> Opening:
        return self.node.begin(block.read() if isinstance(block, Source) else block)

    def prepare(self, context: Context) -> None:
        self.node.prepare(context)

    def propose(self, g: Array, before: Step | None) -> Proposal:
        """The last round's step comes with the next round's direction: one message a round."""
        if before is not None:
            self.node.accept(*before)
        return self.node.propose(g)

    def replay(
        self,
        context: Context | None,
        steps: Sequence[Step | None],
        block: Any,
        position: Position | None,
        *directions: Array,
    ) -> None:
        """The task so far, as one call: it fails as a whole, or this node stands where it stood."""
        self.begin(block)
        if context is not None:
            self.prepare(context)
        if position is not None:
            self.node.move_to(position)
        for g, step in zip(directions, steps, strict=True):
            self.propose(g, step)

    def position(self) -> Position:
        return self.node.position()

    def end(self, before: Step | None, curvature: Array | None) -> tuple[Any, State]:
        """What the driver needs, and the state, which stays where it is until someone asks."""
        if before is not None:
            self.node.accept(*before)
        self.staged = state = self.node.end(curvature)
        own = self.node.preparation.outward(state.weights, state.numbers)
        return (*own, state.numbers.get("mean")), state

    def install(self) -> None:
        assert self.staged is not None
        self.node.install(self.staged)
        self.staged = None

    def forget(self) -> None:
        self.staged = None
        self.node.forget_task()

    def pid(self) -> int:
        return os.getpid()
