"""All nodes on one device of this process: a few calls for all of them, however many there are.

DeviceNetwork   the nodes, whose arrays are the device's: one node that holds everybody's columns
                where it can be (`conche.nodes.stack`), else one after the other
Boundary        around it and the solver's coordinator: NumPy's arrays on this side
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..common.arrays import Array, columns_of, here, joined
from ..common.device import Cpu, Device, find_device
from ..nodes import PLAIN, NodeState, Opening, Proposal, Setup, Start
from ..nodes.partition import Which
from ..nodes.solvers import Context
from ..nodes.solvers.base import Meeting
from ..nodes.solvers.principal_block import WIDEST_BLOCK
from ..tasks.columns import Columns
from ..tasks.mark import block_mark
from .base import (
    CentralNetwork,
    Coefficients,
    Lost,
    Placed,
    total_opening,
)
from .host import Host
from .local import LocalNetwork
from .pooled import PooledNetwork
from .wrapper import Wrapped

MOST_FILLED = 2  # times as many columns as there are, that a stack may take with what fills it up


class DeviceNetwork(LocalNetwork):
    """Nodes on one device, in this process."""

    device: Device = Cpu()

    def start(self, setup: Setup) -> None:
        self.setup = None
        self.device = find_device(setup.device)
        nodes = [setup.node(k) for k in range(len(setup.partition))]
        self._separate, self._joined = Host(nodes, self.n_threads), None
        self.setup = setup
        self._arrange(self.stacks(setup))

    def stacks(self, setup: Setup, states: Sequence[NodeState] = ()) -> bool:
        """Where that gives what each would give alone; where all columns meet anyway, it gains
        little."""
        counts = setup.partition.weight_counts()
        # whether some nodes would keep more of their past than others
        mixed = setup.solver.remembers and min(counts) <= WIDEST_BLOCK < max(counts)
        filled = max(counts) * len(counts) > MOST_FILLED * sum(counts)
        pooled = setup.solver.meeting in (Meeting.POOL, Meeting.SUMS)
        return not (len(counts) == 1 or pooled or mixed or filled)

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        return total_opening(self.openings(X, placed, start))

    def openings(self, X: Any, placed: Placed, start: Start) -> list[Opening]:
        """Every node's columns go to the device, once."""
        if not isinstance(X, Columns):
            X = self.device.put(X)
        read = [self._block(X, which, nodes) for which, nodes in self._places()]
        each = zip(self.host.nodes, read, placed, strict=True)
        begun = ((node.begin(block, state, start), mark) for node, (block, mark), state in each)
        return [opening._replace(mark=mark) for opening, mark in begun]

    def _block(self, X: Any, which: Which, nodes: range) -> tuple[Array, int]:
        """Columns, there; and their mark, where they were read from a file."""
        if not isinstance(X, Columns):
            return columns_of(X, which), 0
        if X.computed:
            return X.select(which).read_on(self.device.put), 0
        places = self._setup().partition.places()
        blocks, mark = [], 0
        for k in nodes:
            block = X.select(places[k]).read()
            blocks.append(self.device.put(block))
            mark += block_mark(k, block)
        return joined(blocks, 1) if len(blocks) > 1 else blocks[0], mark


class Boundary(Wrapped):
    """What comes from this side is put on the device, and what goes back is fetched."""

    def __init__(self, inner: CentralNetwork, device: Device):
        super().__init__(inner)
        self.device = device

    def place(self, states: Sequence[NodeState]) -> Placed:
        with self.device.guarded():
            return tuple(state.moved(self.device.put) for state in self.inner.place(states))

    def fetch(self, placed: Placed) -> list[NodeState]:
        return self.inner.fetch([state.moved(here) for state in placed])

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        if any(start.added):
            placed = self._grown(placed, start)
        with self.device.guarded():
            there = Start(start.outputs, self.device.put_all(start.root))
            return self.device.fetch_all(self.inner.begin(X, placed, there))

    def _grown(self, placed: Placed, start: Start) -> Placed:
        """With columns that are new: by way of this side, because it happens rarely."""
        assert self.setup is not None
        setup, states = self.setup, self.fetch(placed)
        holds = [setup.partition.intercept and k == 0 for k in range(len(start.added))]
        each = zip(states, start.added, holds, strict=False)
        grown = [state.grown(setup.solver, more, own) for state, more, own in each]
        if isinstance(self.inner, PooledNetwork) and setup.solver.meeting.central_state:
            grown.append(self.inner.grown(states[-1], start))
        return self.place(grown)

    def factorise(self, context: Context) -> None:
        with self.device.guarded():
            self.inner.factorise(context)
        self.overhead = self.inner.overhead

    def refresh(self, curvature: Array, round_number: int) -> bool:
        with self.device.guarded():
            return self.inner.refresh(self.device.put(curvature), round_number)

    def propose(self, g: Array) -> Proposal:
        with self.device.guarded():
            return self.device.fetch_all(self.inner.propose(self.device.put(g)))

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self.inner.accept(*self.device.put_all((step, momentum)))

    def cost(self, arrays: Sequence[Array | None]) -> int:
        return self.inner.cost(arrays)

    def conclude(self, curvature: Array | None, g: Array) -> Lost | None:
        with self.device.guarded():
            lost = self.inner.conclude(*self.device.put_all((curvature, g)))
        self.overhead = self.inner.overhead
        return cast(Lost | None, self.device.fetch_all(lost))

    def voices(self, context: Context) -> int:
        return self.inner.voices(context)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        with self.device.guarded():
            ended = self.inner.end(self.device.put_all(curvature))
        self.overhead = self.inner.overhead
        return ended
