"""The nodes inside a Ray actor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from ..common.arrays import Array, here
from ..nodes import NodeState, Opening, Position, Proposal, Setup, Start
from ..nodes.aboard import node_of
from ..nodes.solvers import Context
from ..tasks.errands import Errand
from .base import Coefficients, Each, total_array, total_opening, total_proposal
from .host import Host
from .ray_store import ray_module
from .secure import Veiled

Step = tuple[Array | None, Array | None]
First = Step | Context | None  # what a call begins with: the task's context, or a round's step


def fetched(about: Sequence[Any]) -> list[Any]:
    """Large parts of an `Each` themselves, where there are references: Ray sees to those alone that
    are arguments."""
    ray = ray_module()

    def part(x: Any) -> Any:
        return ray.get(x) if isinstance(x, ray.ObjectRef) else x

    return [Each(map(part, x)) if isinstance(x, Each) else x for x in about]


def added(answers: Sequence[Any]) -> Any:
    """The sum of workers' answers; one of which no node is asked has none."""
    there = [answer for answer in answers if answer is not None]
    if not there or isinstance(there[0], Veiled):
        whole = len(there) == len(answers)  # one without keys: masks would not cancel
        return there[0]._replace(words=total_array([v.words for v in there])) if whole else None
    if isinstance(there[0], Proposal):
        return total_proposal(there)
    return total_opening(there) if isinstance(there[0], Opening) else total_array(there)


class Worker:
    """Some nodes, inside an actor. Between tasks it keeps nothing."""

    def __init__(self, setup: Setup | None, numbers: Sequence[int], n_threads: int = 1):
        self.n_threads = n_threads  # one, unless it is told: workers share a machine's cores
        threadpool_limits(n_threads, user_api="blas")
        self.others: list[Any] = []  # actors whom it asks in a sum
        self.noted: tuple[int, Any] | None = None  # the last sum that it had a part in
        self.reset(setup, numbers)

    def reset(self, setup: Setup | None, numbers: Sequence[int]) -> None:
        """Become the worker of another stream; without a setup its nodes are still to come."""
        # with num_gpus in its resources an actor sees the one that it has been given
        nodes = [] if setup is None else [node_of(setup, k, numbers[0]) for k in numbers]
        self.host = Host(nodes, self.n_threads, apart=True)

    def visit(self, errands: Sequence[Errand]) -> list[bytes]:
        """Run an errand for each of the nodes."""
        return [errand.run() for errand in errands]

    def begin(self, blocks: Sequence[Any], states: Sequence[NodeState], start: Start) -> Opening:
        """Take a task's columns, or read them here, and the nodes' states."""
        return self.host.begin(blocks, states, start)

    def factorise(self, context: Context) -> None:
        """Factorise the blocks with what all nodes agreed on."""
        self.host.factorise(context)

    def propose(self, first: First, g: Array) -> Proposal:
        """The last round's step comes with the next round's direction: one message a round."""
        self._do(first)
        return self.host.propose(g)

    def ask(self, first: First, question: str | Each, *about: Any) -> list[Any]:
        """What the solver's coordinator wants to know, after the last round's step."""
        self._do(first)
        return self.host.ask(question, *fetched(about))

    def total(self, first: First, question: str | Each, *about: Any) -> Array | None:
        """The same, summed."""
        self._do(first)
        return self.host.total(question, *fetched(about))

    def largest(self, first: First, question: str | Each, *about: Any) -> Array | None:
        """The same, and of every entry the largest."""
        self._do(first)
        return self.host.largest(question, *fetched(about))

    def move_to(self, positions: Sequence[Position]) -> None:
        """Stand where another worker's nodes stood."""
        self.host.move_to(positions)

    def position(self) -> list[Position]:
        """Where the nodes stand in the task's rounds."""
        return self.host.positions()

    def end(
        self, first: First, curvature: Array | None, moves: Sequence[Array] | None
    ) -> tuple[list[Coefficients], list[NodeState]]:
        """What the driver needs, and the states, which stay where they are until someone asks; the
        coordinator may have found the updates itself."""
        self._do(first)
        if moves is not None:
            self.host.move(moves)
        shares, states = self.host.end(curvature)
        return shares, [state.moved(here) for state in states]

    def quietly(self, method: str, *call: Any) -> None:
        """Do what another worker has done, whose place this one takes; it has answered already."""
        getattr(self, method)(*call)

    # ---- sums in a tree ----

    def lead(self, others: Sequence[Any]) -> None:
        """Those whom this one asks in a sum."""
        self.others = list(others)

    def relay(self, timeout: float, number: int, method: str, *call: Any) -> Any:
        """The sum of what this one and all below it answer."""
        asked = [other.relay.remote(timeout, number, method, *call) for other in self.others]
        own = self.once(number, method, *call)
        return added([own, *ray_module().get(asked, timeout=timeout)]) if asked else own

    def once(self, number: int, method: str, *call: Any) -> Any:
        """The answer to the call of that number, however often it is asked for."""
        if self.noted is None or self.noted[0] != number:
            self.noted = (number, getattr(self, method)(*call))
        return self.noted[1]

    def _do(self, first: First) -> None:
        if isinstance(first, Context):
            self.host.factorise(first)
        elif first is not None:
            self.host.accept(*first)

    def forget(self) -> None:
        """Let go of the task's data."""
        self.host.forget()
        self.noted = None

    def pid(self) -> int:
        """Of this process."""
        return os.getpid()
