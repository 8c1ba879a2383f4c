"""The node inside a Ray actor."""

from __future__ import annotations

import os
from typing import Any

from threadpoolctl import threadpool_limits

from ..common.arrays import Array, here
from ..nodes import NodeState, Opening, Position, Proposal, Setup, Start
from ..nodes.aboard import node_of
from ..nodes.solvers import Context
from ..tasks.columns import Columns
from .base import Coefficients, share

Step = tuple[Array | None, Array | None]
First = Step | Context | None  # what a call begins with: the task's context, or a round's step


class Worker:
    """The k-th node, inside an actor. Between tasks it keeps nothing."""

    def __init__(self, setup: Setup, k: int):
        threadpool_limits(1, user_api="blas")  # several nodes share a machine's cores
        self.reset(setup, k)

    def reset(self, setup: Setup, k: int) -> None:
        """Become the node of another stream."""
        # with num_gpus in its resources an actor sees the one that it has been given
        self.scaling, self.node = setup.scaling, node_of(setup, k, k)

    def begin(self, block: Any, state: NodeState, start: Start) -> Opening:
        """Take a task's columns, or read them here, and the node's state."""
        files = isinstance(block, Columns)
        block = block.read() if files else block
        return self.node.begin(block, state, start, files)

    def factorise(self, context: Context) -> None:
        """Factorise the block with what all nodes agreed on."""
        self.node.factorise(context)

    def propose(self, first: First, g: Array) -> Proposal:
        """The last round's step comes with the next round's direction: one message a round."""
        self._do(first)
        return self.node.propose(g)

    def ask(self, first: First, question: str | None, *about: Any) -> Any:
        """What the solver's coordinator wants to know, after the last round's step."""
        self._do(first)
        return self.node.ask(question, *about)

    def move_to(self, position: Position) -> None:
        """Stand where another node stood."""
        self.node.move_to(position)

    def position(self) -> Position:
        """Where the node stands in the task's rounds."""
        return self.node.position()

    def end(
        self, first: First, curvature: Array | None, d: Array | None
    ) -> tuple[Coefficients, NodeState]:
        """What the driver needs, and the state, which stays where it is until someone asks; the
        coordinator may have found the update d itself."""
        self._do(first)
        if d is not None:
            self.node.move(d)
        state = self.node.end(curvature)
        own = share(self.node.scaling, state, self.node.reach(state))
        return own, state.moved(here)

    def _do(self, first: First) -> None:
        if isinstance(first, Context):
            self.node.factorise(first)
        elif first is not None:
            self.node.accept(*first)

    def forget(self) -> None:
        """Let go of the task's data."""
        self.node.forget()

    def pid(self) -> int:
        """Of this process."""
        return os.getpid()
