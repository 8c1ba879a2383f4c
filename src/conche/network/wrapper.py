"""A central network around another one: what its coordinator does beyond adding up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..common.arrays import Array
from ..nodes import PLAIN, NodeState, Opening, Proposal, Setup, Start
from ..nodes.solvers import Context
from .base import CentralNetwork, Coefficients, Each, Placed


class Wrapped(CentralNetwork):
    """``inner`` carries the messages."""

    def __init__(self, inner: CentralNetwork):
        self.inner = inner
        self.setup, self.apart, self.secure = inner.setup, inner.apart, inner.secure
        self.in_one_place = inner.in_one_place
        self.n_threads = inner.n_threads

    def start(self, setup: Setup) -> None:
        self.inner.start(setup)
        self.setup = setup

    def place(self, states: Sequence[NodeState]) -> Placed:
        return self.inner.place(states)

    def fetch(self, placed: Placed) -> list[NodeState]:
        return self.inner.fetch(placed)

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        return self.inner.begin(X, placed, start)

    def factorise(self, context: Context) -> None:
        self.inner.factorise(context)

    def propose(self, g: Array) -> Proposal:
        return self.inner.propose(g)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self.inner.accept(step, momentum)

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        return self.inner.ask(question, *about)

    def total(self, question: str | Each, *about: Any) -> Array:
        return self.inner.total(question, *about)

    def largest(self, question: str | Each, *about: Any) -> Array:
        return self.inner.largest(question, *about)

    def hosts(self, asked: Sequence[bool] | None = None) -> int:
        return self.inner.hosts(asked)

    def move(self, each: Sequence[Array]) -> None:
        self.inner.move(each)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        return self.inner.end(curvature)

    def abandon(self) -> None:
        self.inner.abandon()
