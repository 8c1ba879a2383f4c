"""Some nodes of a network in one process: a call goes to all of them, and they answer as one.

All nodes of the local network are one host; elsewhere a worker (a rank, an actor) is. What is a sum
over nodes is taken here first, so that messages count hosts, not nodes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np

from ..common.arrays import Array, Block
from ..common.threads import available, blas_threads
from ..errors import NodeError
from ..nodes import PLAIN, Node, NodeState, Opening, Position, Proposal, Start
from ..nodes.solvers import Context
from ..tasks.columns import Columns
from .base import (
    EXPECTED,
    Coefficients,
    Each,
    largest_array,
    share,
    total_array,
    total_opening,
    total_proposal,
)

T = TypeVar("T")

# Below this many entries of X a call is over before a second thread has woken up.
WORTH_A_THREAD = 1 << 18


class Host:
    """Nodes in this process, in the order of their numbers.

    Parameters
    ----------
    nodes : those that it holds.
    n_threads : that they may factorise and remember in; None: as many as there are cores.
    apart : whether others have the rest of the nodes: what one of these refuses is then told with
        its number.

    Of an `Each` it is given the parts of its own nodes.
    """

    def __init__(self, nodes: Sequence[Node], n_threads: int | None = None, apart: bool = False):
        self.nodes, self.n_threads, self.apart = list(nodes), n_threads, apart
        self._entries = 0  # of the task's columns: how much work there is to share

    def begin(
        self, blocks: Sequence[Block | Columns], states: Sequence[NodeState], start: Start = PLAIN
    ) -> Opening:
        """Give every node its columns, or let it read them; the sums of what they answer."""
        return total_opening(self.openings(blocks, states, start))

    def openings(
        self, blocks: Sequence[Block | Columns], states: Sequence[NodeState], start: Start = PLAIN
    ) -> list[Opening]:
        """Every node's own answer to a task's columns."""
        self._entries = sum(map(_entries, blocks))

        def begin(i: int, node: Node) -> Opening:
            block = blocks[i]
            files = isinstance(block, Columns)
            return node.begin(block.read() if files else block, states[i], start, files)

        return self.each(begin)

    def factorise(self, context: Context) -> None:
        """Let every node factorise its block with what all agreed on."""
        self.each(lambda i, node: node.factorise(context), heavy=True)

    def propose(self, g: Array) -> Proposal:
        """The nodes' answers to the direction g, summed."""
        return total_proposal(self.each(lambda i, node: node.propose(g)))

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        """Let every node move."""
        for node in self.nodes:
            node.accept(step, momentum)

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        """Every node's answer to a question that its solver knows."""
        asked = (question, *about)
        return self.each(lambda i, node: node.ask(*Each.of(asked, i)), heavy=True)

    def total(self, question: str | Each, *about: Any) -> Array | None:
        """The sum of the answers; None where no node here is asked."""
        answers = self._heard(question, *about)
        return total_array(answers) if answers else None

    def largest(self, question: str | Each, *about: Any) -> Array | None:
        """The largest answer, entry by entry; None where no node here is asked."""
        answers = self._heard(question, *about)
        return largest_array(answers) if answers else None

    def _heard(self, question: str | Each, *about: Any) -> list[Any]:
        """The answers of those that are asked."""
        answers = self.ask(question, *about)
        if not isinstance(question, Each):
            return answers
        return [answer for answer, asked in zip(answers, question, strict=True) if asked]

    def move(self, each: Sequence[Array]) -> None:
        """Let every node stand at an update of its own."""
        for node, d in zip(self.nodes, each, strict=True):
            node.move(d)

    def positions(self) -> list[Position]:
        """Where every node stands in the task's rounds."""
        return [node.position() for node in self.nodes]

    def move_to(self, positions: Sequence[Position]) -> None:
        """Let every node stand where another stood, whose place it takes."""
        for node, position in zip(self.nodes, positions, strict=True):
            node.move_to(position)

    def end(self, curvature: Array | None = None) -> tuple[list[Coefficients], list[NodeState]]:
        """What every node's state after the task amounts to outside, and the states."""
        states = self.each(lambda i, node: node.end(curvature), heavy=True)
        shares = self.each(lambda i, node: share(node.scaling, states[i], node.reach(states[i])))
        return shares, states

    def forget(self) -> None:
        """Let go of the task's data."""
        for node in self.nodes:
            node.forget()

    def each(self, call: Callable[[int, Node], T], heavy: bool = False) -> list[T]:
        """The answers of all nodes, in order; calls that are ``heavy`` may run in threads."""
        nodes = self.nodes
        heavy = heavy and len(nodes) > 1 and self._entries >= WORTH_A_THREAD
        threads = min(self.n_threads or available(), len(nodes)) if heavy else 1
        if threads == 1:
            return [self._call(call, i) for i in range(len(nodes))]
        # Contiguous shares, so that a thousand small nodes cost one hand-over a thread.
        shares = np.array_split(np.arange(len(nodes)), threads)
        with blas_threads(1):
            run = _pool(threads).map(lambda s: [self._call(call, int(i)) for i in s], shares)
            return [answer for share in run for answer in share]

    def _call(self, call: Callable[[int, Node], T], i: int) -> T:
        if not self.apart:
            return call(i, self.nodes[i])
        try:
            return call(i, self.nodes[i])
        except EXPECTED as error:
            said = str(error)  # of a node with files of its own, its name is there already
            said = said if said.startswith("node ") else f"node {self.nodes[i].number}: {said}"
            raise NodeError(said) from error


def _entries(block: Block | Columns) -> int:
    """How many numbers there are; of sparse columns nodes keep more than their entries."""
    stored = getattr(block, "nnz", None)
    rows, columns = block.shape
    return int(rows * columns if stored is None else stored + 8 * columns)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="conche-node")


if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
