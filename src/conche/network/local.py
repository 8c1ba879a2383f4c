"""The local network: nodes in one process. The default, and the reference for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..common.arrays import Array, Block, here, side_by_side
from ..common.checks import whole
from ..errors import NetworkError
from ..nodes import PLAIN, Node, NodeState, Opening, Partition, Proposal, Setup, Start
from ..nodes.aboard import node_of
from ..nodes.partition import Which
from ..nodes.solvers import Context
from ..nodes.solvers.base import Meeting
from ..nodes.stack import Stack, StackState
from ..tasks.columns import Columns
from ..tasks.mark import block_mark
from .base import CentralNetwork, Coefficients, Each, Network, Placed, coefficients, share
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

    stack: Stack | None = None  # whose columns are whose, where one node has everybody's
    _joined: Host | None = None  # of that node

    def start(self, setup: Setup) -> None:
        super().start(setup)
        self._separate, self._joined = self.host, None
        self._arrange(stacked=False)

    def _arrange(self, stacked: bool) -> None:
        """Where all columns meet anyway, one node may have them: then the number of nodes costs
        nothing."""
        if not stacked:
            self.host, self.stack = self._separate, None
        elif self._joined is None:
            setup = self._setup()
            self.stack = Stack.of(setup.partition)
            node = Node(setup.solver, setup.scaling, setup.partition.intercept, stack=self.stack)
            self.host = self._joined = Host([node], self.n_threads)
        else:
            self.host, self.stack = self._joined, self._joined.nodes[0].stack
        self.in_one_place = stacked

    def stacks(self, setup: Setup, states: Sequence[NodeState]) -> bool:
        """Whether one node is to have everybody's columns: not where they have been turned."""
        pools = setup.solver.meeting in (Meeting.POOL, Meeting.SUMS)
        together = pools and not (self.apart or self.secure or setup.homes)
        here = together and setup.device == "cpu" and len(setup.partition) > 1
        return here and not any("rotation" in state.kept for state in states)

    def place(self, states: Sequence[NodeState]) -> Placed:
        setup = self._setup()
        if not self.stacks(setup, states):
            return tuple(states)
        kept = setup.solver.alike([state.kept for state in states])
        pairs = zip(states, kept, strict=True)
        stack = Stack.of_states(states, setup.partition.intercept)
        whole = stack.whole([replace(state, kept=own) for state, own in pairs])
        return (StackState(whole.weights, whole.kept, whole.numbers, stack),)

    def fetch(self, placed: Placed) -> list[NodeState]:
        stack = StackState.among(placed)
        if stack is not None:
            return stack.states(placed[0].moved(here))
        return [state.moved(here) for state in placed]

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        setup = self._setup()
        self._arrange(StackState.among(placed) is not None)
        if self.stack is None:
            return self.host.begin(setup.partition.parts(X), placed, start)
        if any(start.added):
            holds = [setup.partition.intercept and k == 0 for k in range(len(start.added))]
            each = zip(self.fetch(placed), start.added, holds, strict=True)
            placed = self.place([state.grown(setup.solver, more, own) for state, more, own in each])
        block, mark = self._whole_block(X)
        opening = self.host.begin([block], placed, start._replace(added=()))
        return opening._replace(mark=mark)

    def _whole_block(self, X: Any) -> tuple[Block, int]:
        """All columns in the nodes' order; and their mark, where they were read from files."""
        partition = self._setup().partition
        if not isinstance(X, Columns):
            return Partition([self._every()], partition.n_features).split(X)[0], 0
        blocks = partition.split(X)
        return side_by_side(blocks), sum(block_mark(k, block) for k, block in enumerate(blocks))

    def _every(self) -> Any:
        """The numbers of all columns, in the nodes' order."""
        return np.concatenate(list(self._setup().partition))

    def _places(self) -> list[tuple[Which, range]]:
        """The columns of every node here, and whose they are."""
        places = self._setup().partition.places()
        if self.stack is None:
            return [(which, range(k, k + 1)) for k, which in enumerate(places)]
        every = self._every()
        in_order = np.array_equal(every, np.arange(len(every)))
        return [(slice(0, len(every)) if in_order else every, range(len(places)))]

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        if self.stack is None:
            return super().end(curvature)
        setup, node = self._setup(), self.host.nodes[0]
        state = node.end(curvature)
        whole = share(node.scaling, state, node.reach(state))
        weights = [whole.weights[own] for own in self.stack.own]
        nothing = np.zeros_like(whole.offset)
        shares = [Coefficients(own, nothing, None, nothing) for own in weights]
        ended = coefficients(setup, shares)._replace(offset=whole.offset, reach=whole.reach)
        if whole.means is not None:
            means = [whole.means[own] for own in self.stack.plain]
            ended = ended._replace(means=setup.partition.join(means, intercept=False))
        node.forget()
        return ended, (StackState(state.weights, state.kept, state.numbers, self.stack),)

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
