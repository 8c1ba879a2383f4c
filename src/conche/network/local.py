"""The local network: nodes in one process. The default, and the reference for every engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import cache
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from ..node import Node, Opening, Proposal, State
from ..partition import Partition
from ..preparation import Preparation
from ..solvers.base import Array, Context, Solver
from .base import Estimate, estimate

T = TypeVar("T")

# Below this many entries of X a call is over before a second thread has woken up.
WORTH_A_THREAD = 1 << 18


class LocalNetwork:
    """Nodes called in order; they factorise and remember in threads where blocks are large.

    ``n_threads=None`` uses every core. While nodes run in threads, BLAS is held to one thread, so
    that they do not fight; in the rounds, whose products are bound by memory and not by arithmetic,
    BLAS's own threads serve better. Sums are taken in the nodes' order, so the number of threads
    matters no more than BLAS's own rounding does.
    """

    def __init__(self, n_threads: int | None = None):
        if n_threads is not None and (not isinstance(n_threads, int) or n_threads < 1):
            raise ValueError(f"n_threads={n_threads!r} must be a whole number of at least 1")
        self.n_threads = n_threads
        self.nodes: list[Node] = []

    def start(
        self,
        solver: Solver,
        partition: Partition,
        states: Sequence[State],
        preparation: Preparation | None = None,
    ) -> None:
        self.partition, self.preparation = partition, preparation or Preparation()
        self.nodes = [
            Node(solver, state, self.preparation, partition.intercept and k == 0)
            for k, state in enumerate(states)
        ]
        self._ended: list[State] = []
        self._entries = 0

    def begin(self, X: Any) -> Opening:
        self._entries = int(getattr(X, "nnz", X.shape[0] * X.shape[1]))
        blocks = self.partition.split(X)
        openings = self._each(lambda k, node: node.begin(blocks[k]))
        return Opening(
            _total([o.predictions for o in openings]), _total([o.report for o in openings])
        )

    def prepare(self, context: Context) -> None:
        self._each(lambda k, node: node.prepare(context), heavy=True)

    def propose(self, g: Array) -> Proposal:
        proposals = self._each(lambda k, node: node.propose(g))
        scalars = [p.scalars for p in proposals if p.scalars is not None]
        return Proposal(_total([p.image for p in proposals]), _total(scalars) if scalars else None)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        for node in self.nodes:
            node.accept(step, momentum)

    def end(self, curvature: Array | None = None) -> Estimate:
        self._ended = self._each(lambda k, node: node.end(curvature), heavy=True)
        return estimate(self.partition, self.preparation, self._ended)

    def commit(self) -> None:
        for node, state in zip(self.nodes, self._ended, strict=True):
            node.install(state)
        self._ended = []

    def abandon(self) -> None:
        self._ended = []
        for node in self.nodes:
            node.forget_task()

    def states(self) -> list[State]:
        return [node.state for node in self.nodes]

    def close(self) -> None:
        self.abandon()

    def _each(self, call: Callable[[int, Node], T], heavy: bool = False) -> list[T]:
        """The answers of all nodes, in order."""
        threads = min(self.n_threads or os.cpu_count() or 1, len(self.nodes))
        if not heavy or threads == 1 or self._entries < WORTH_A_THREAD:
            return [call(k, node) for k, node in enumerate(self.nodes)]
        # Contiguous shares, so that a thousand small nodes cost one hand-over a thread.
        shares = np.array_split(np.arange(len(self.nodes)), threads)
        with _one_at_a_time, _one_blas_thread():
            run = _pool(threads).map(lambda s: [call(int(k), self.nodes[k]) for k in s], shares)
            return [answer for share in run for answer in share]


def _total(terms: Sequence[Array]) -> Array:
    total = np.array(terms[0])
    for term in terms[1:]:
        total += term
    return total


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="conche-node")


# BLAS's thread count is the whole process's: fits in different threads must not both set it.
_one_at_a_time = threading.Lock()


def _after_fork() -> None:
    """A forked child has the pool but none of its threads, and perhaps a lock that nobody holds."""
    global _one_at_a_time
    _pool.cache_clear()
    _one_at_a_time = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cache
def _blas() -> Any:
    return ThreadpoolController()


def _one_blas_thread() -> Any:
    controller = _blas()
    return (
        controller.limit(limits=1, user_api="blas") if controller.lib_controllers else nullcontext()
    )
