"""The local network: nodes in one process. The default, and the reference for every engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import numpy as np

from ..common.arrays import Array, here
from ..common.checks import whole
from ..common.threads import available, blas_threads
from ..errors import NetworkError
from ..nodes import PLAIN, Node, NodeState, Opening, Proposal, Setup, Start
from ..nodes.aboard import node_of
from ..nodes.solvers import Context
from ..tasks.columns import Columns
from .base import (
    CentralNetwork,
    Coefficients,
    Each,
    Network,
    Placed,
    coefficients,
    share,
    total_array,
    total_opening,
    total_proposal,
)

T = TypeVar("T")

# Below this many entries of X a call is over before a second thread has woken up.
WORTH_A_THREAD = 1 << 18


class InProcess(Network):
    """Nodes in this process: what the local network and graphs have in common."""

    def __init__(self, n_threads: int | None = None):
        self.n_threads = None if n_threads is None else whole("n_threads", n_threads)
        self.nodes: list[Node] = []
        self._entries = 0  # of the task's X: how much work there is to share

    def start(self, setup: Setup) -> None:
        self.setup = None  # a start that is interrupted has not happened
        self.nodes = [node_of(setup, k, k) for k in range(len(setup.partition))]
        self.setup = setup

    def place(self, states: Sequence[NodeState]) -> Placed:
        return tuple(states)

    def fetch(self, placed: Placed) -> list[NodeState]:
        return [state.moved(here) for state in placed]

    def openings(self, X: Any, placed: Placed, start: Start) -> list[Opening]:
        """Every node's own answer to a task's columns."""
        self._entries = X.shape[0] * X.shape[1]
        stored = getattr(X, "nnz", None)
        if stored is not None:  # sparse: what nodes keep of a column is more than its entries
            self._entries = stored + 8 * X.shape[1]
        blocks = self._setup().partition.split(X)
        files = isinstance(X, Columns)
        return self._each(lambda k, node: node.begin(blocks[k], placed[k], start, files))

    def factorise(self, context: Context) -> None:
        self._each(lambda k, node: node.factorise(context), heavy=True)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        for node in self.nodes:
            node.accept(step, momentum)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        states = self._each(lambda k, node: node.end(curvature), heavy=True)
        shares = self._each(lambda k, node: share(node.scaling, states[k], node.reach(states[k])))
        for node in self.nodes:
            node.forget()
        return coefficients(self._setup(), shares), tuple(states)

    def abandon(self) -> None:
        """New nodes: a thread that outlives an interrupt may still be writing to the old ones."""
        if self.setup is not None:
            self.start(self.setup)

    def _setup(self) -> Setup:
        if self.setup is None:
            raise NetworkError("the network has not been started")
        return self.setup

    def _each(self, call: Callable[[int, Node], T], heavy: bool = False) -> list[T]:
        """The answers of all nodes, in order."""
        nodes = self.nodes
        threads = min(self.n_threads or available(), len(nodes))
        if not heavy or threads == 1 or self._entries < WORTH_A_THREAD:
            return [call(k, node) for k, node in enumerate(nodes)]
        # Contiguous shares, so that a thousand small nodes cost one hand-over a thread.
        shares = np.array_split(np.arange(len(nodes)), threads)
        with blas_threads(1):
            run = _pool(threads).map(lambda s: [call(int(k), nodes[k]) for k in s], shares)
            return [answer for share in run for answer in share]


class LocalNetwork(InProcess, CentralNetwork):
    """Nodes called in order; they factorise and remember in threads where blocks are large.

    ``n_threads=None`` uses every core, or as many as OMP_NUM_THREADS says. While nodes run in
    threads, BLAS is held to one thread, so that they do not fight; in the rounds BLAS's own threads
    serve better where a task is large (`conche.common.threads`). Sums are taken in the nodes'
    order, so the number of threads matters no more than BLAS's own rounding does.
    """

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        return total_opening(self.openings(X, placed, start))

    def propose(self, g: Array) -> Proposal:
        return total_proposal([node.propose(g) for node in self.nodes])

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        return self._each(lambda k, node: node.ask(*Each.of((question, *about), k)), heavy=True)

    def total(self, question: str, *about: Any) -> Array:
        return total_array(self.ask(question, *about))

    def move(self, each: Sequence[Array]) -> None:
        for node, d in zip(self.nodes, each, strict=True):
            node.move(d)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="conche-node")


if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
