"""The local network: nodes in one process. The default, and the reference for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..common.arrays import Array, here
from ..common.checks import whole
from ..errors import NetworkError
from ..nodes import PLAIN, NodeState, Opening, Proposal, Setup, Start
from ..nodes.aboard import node_of
from ..nodes.solvers import Context
from .base import CentralNetwork, Coefficients, Each, Network, Placed, coefficients
from .host import Host


class InProcess(Network):
    """Nodes in this process: what the local network and graphs have in common."""

    def __init__(self, n_threads: int | None = None):
        self.n_threads = None if n_threads is None else whole("n_threads", n_threads)
        self.host = Host([])

    def start(self, setup: Setup) -> None:
        self.setup = None  # a start that is interrupted has not happened
        nodes = [node_of(setup, k, k) for k in range(len(setup.partition))]
        self.host = Host(nodes, self.n_threads)
        self.setup = setup

    def place(self, states: Sequence[NodeState]) -> Placed:
        return tuple(states)

    def fetch(self, placed: Placed) -> list[NodeState]:
        return [state.moved(here) for state in placed]

    def openings(self, X: Any, placed: Placed, start: Start) -> list[Opening]:
        """Every node's own answer to a task's columns."""
        return self.host.openings(self._setup().partition.parts(X), placed, start)

    def factorise(self, context: Context) -> None:
        self.host.factorise(context)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self.host.accept(step, momentum)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        shares, states = self.host.end(curvature)
        self.host.forget()
        return coefficients(self._setup(), shares), tuple(states)

    def abandon(self) -> None:
        """New nodes: a thread that outlives an interrupt may still be writing to the old ones."""
        if self.setup is not None:
            self.start(self.setup)

    def _setup(self) -> Setup:
        if self.setup is None:
            raise NetworkError("the network has not been started")
        return self.setup


class LocalNetwork(InProcess, CentralNetwork):
    """Nodes called in order; they factorise and remember in threads where blocks are large.

    ``n_threads=None`` uses every core, or as many as OMP_NUM_THREADS says. While nodes run in
    threads, BLAS is held to one thread, so that they do not fight; in the rounds BLAS's own threads
    serve better where a task is large (`conche.common.threads`). Sums are taken in the nodes'
    order, so the number of threads matters no more than BLAS's own rounding does.
    """

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        return self.host.begin(self._setup().partition.parts(X), placed, start)

    def propose(self, g: Array) -> Proposal:
        return self.host.propose(g)

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        return self.host.ask(question, *about)

    def total(self, question: str | Each, *about: Any) -> Array:
        return cast(Array, self.host.total(question, *about))

    def largest(self, question: str | Each, *about: Any) -> Array:
        return cast(Array, self.host.largest(question, *about))

    def move(self, each: Sequence[Array]) -> None:
        self.host.move(each)
