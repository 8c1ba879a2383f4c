"""A node that works on a device while its network talks of NumPy's arrays."""

from __future__ import annotations

from typing import Any

from ..common.arrays import Array, Block, here
from ..common.device import Device, find_device
from ..tasks.mark import block_mark
from .home import HomeNode
from .node import PLAIN, Node, NodeState, Opening, Position, Proposal, Setup, Start
from .solvers.base import Context


class Aboard(Node):
    """Whatever comes is put there, and whatever goes is fetched; the state stays there until
    somebody fetches it."""

    def __init__(self, node: Node, device: Device):
        super().__init__(node.solver, node.scaling, node.intercept, node.number)
        self.device = device

    def begin(
        self, block: Block, state: NodeState, start: Start = PLAIN, marked: bool = False
    ) -> Opening:
        with self.device.guarded():
            mark = block_mark(self.number, block) if marked else 0
            more = start.added[self.number] if start.added else ()
            if more:  # a rare thing, and nothing to be quick at
                state = state.moved(here).grown(self.solver, more, self.intercept)
            there = Start(start.outputs, self.device.put_all(start.root))
            opening = super().begin(
                self.device.put(block), state.moved(self.device.put), there, marked=False
            )
            return self.device.fetch_all(opening._replace(mark=mark))

    def factorise(self, context: Context) -> None:
        with self.device.guarded():
            super().factorise(context)

    def propose(self, g: Array) -> Proposal:
        with self.device.guarded():
            return self.device.fetch_all(super().propose(self.device.put(g)))

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        super().accept(*self.device.put_all((step, momentum)))

    def ask(self, question: str | None, *about: Any) -> Any:
        with self.device.guarded():
            return self.device.fetch_all(super().ask(question, *self.device.put_all(about)))

    def move(self, d: Array) -> None:
        super().move(self.device.put(d))

    def position(self) -> Position:
        return self.device.fetch_all(super().position())

    def move_to(self, position: Position) -> None:
        super().move_to(self.device.put_all(position))

    def end(self, curvature: Array | None = None) -> NodeState:
        with self.device.guarded():
            return super().end(self.device.put_all(curvature))

    def reach(self, state: NodeState) -> Array:
        return here(super().reach(state))


def node_of(setup: Setup, k: int, place: int = 0) -> Node:
    """The k-th node of a network that talks of NumPy's arrays, wherever it works."""
    node = setup.node(k)
    if setup.homes:
        return HomeNode(node, setup.homes[k])
    return node if setup.device == "cpu" else Aboard(node, find_device(setup.device, place))
