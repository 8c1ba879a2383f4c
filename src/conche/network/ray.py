"""Actors that hold one node or several each, on this machine or on a Ray cluster; one that dies is
replaced.

The driver keeps names, targets and n-vectors; columns go to their worker once a task, or, where
they are on disk, are read there. Weights and memory stay with the worker: the driver holds
references to them as they were at the task's start, to where every node stood some rounds ago, and
the rounds since then. A worker that is killed or hangs is made anew from those and replays the
rounds: the result is the same to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from ..common.arrays import Array
from ..errors import NetworkError
from ..nodes import PLAIN, NodeState, Opening, Proposal, Setup, Start
from ..nodes.solvers import Context
from ..tasks.columns import Columns
from ..tasks.errands import Errand
from . import ray_local
from .base import (
    CentralNetwork,
    Coefficients,
    Each,
    ForgottenError,
    Placed,
    coefficients,
)
from .placement import Placement, Workers, settled
from .ray_crew import Call
from .ray_secure import SecureCrew
from .ray_store import (
    Reference,
    named_resources,
    own,
    present,
    ray_module,
    sent,
    session,
    share_of_gpus,
)
from .ray_worker import Step
from .secure import Sums, check_count, check_secure

REPLAY = 16  # rounds that are kept before the nodes' positions are noted and they can go; with many
# workers as many as there are, so that it is no more than one message a round


class RayNetwork(SecureCrew, CentralNetwork):
    """Workers, one actor each, that share the nodes.

    Parameters
    ----------
    address : of a cluster; None: this machine, loopback only.
    resources : of every worker, as Ray's ``options`` takes them; with ``num_cpus`` above 1 it works
        in so many threads.
    timeout : a worker that does not answer within so many seconds has failed.
    retries : more failures of a worker in one task end the run.
    keep : where the nodes' states between tasks are kept: on the worker's own machine (None), so
        that a process may die, or with the "driver", so that a machine may. States below 100 kB go
        to the driver anyway: Ray sends small answers along.
    workers : how many there are, which share the nodes evenly; or a list that has the worker of
        every node, by name or number. On a cluster a name is a resource of Ray's, which the machine
        that is meant has (``ray start --resources '{"rack1": 1}'``). None: one a node.
    secure : whether the driver is to see sums over workers alone (docs/security.md).
    """

    apart = True

    def __init__(
        self,
        address: str | None = None,
        resources: dict[str, Any] | None = None,
        timeout: float = 300.0,
        retries: int = 3,
        keep: Literal["driver"] | None = None,
        workers: Workers = None,
        secure: bool = False,
    ):
        super().__init__(resources, timeout, retries, keep, workers)
        self.address, self.secure, self._sums = address, check_secure(secure), Sums()
        self._clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> RayNetwork:
        """A network of its own, with actors of its own once it is started."""
        return RayNetwork(
            self.address,
            self.resources,
            self.timeout,
            self.retries,
            self.keep,
            self.asked_workers,
            self.secure,
        )

    def start(self, setup: Setup) -> None:
        self.check_sums(setup)
        self._make(Placement.of(self.asked_workers, len(setup.partition)), setup)
        self.setup = setup

    def settle(self, n_nodes: int, workers: Sequence[str | None] = ()) -> None:
        """Workers without a stream; those that start it are the same."""
        self.asked_workers = settled(self.asked_workers, workers)
        self._make(Placement.of(self.asked_workers, n_nodes), None)

    def visit(self, errands: Sequence[Errand]) -> list[bytes]:
        if not self._alive():
            raise NetworkError("this network has not been started, or has been closed")
        calls = [([errands[k] for k in own],) for own in self.placement.nodes]
        return self.placement.in_order(self._all("visit", calls))

    def _make(self, placement: Placement, setup: Setup | None) -> None:
        """The workers, on the Ray that is meant."""
        if self.secure:
            check_count(len(placement))
            self._sums.forget()
        alone = self.address is None and "RAY_ADDRESS" not in os.environ
        if alone:
            ray_local.loopback_only()
        ray = ray_module()
        if ray.is_initialized():
            ray_local.check_address(self.address, ray.get_runtime_context().gcs_address)
        elif alone:
            ray_local.start()
        else:
            with ray_local.own_handler():
                ray.init(self.address, log_to_driver=False, logging_level="error")
        if session() != self._session:  # another Ray than last time
            self.workers, self._session = [], session()
        self.setup = None  # a start that is interrupted has not happened
        self._clear()
        needs = named_resources(placement.names)
        device = "cpu" if setup is None else setup.device
        self._hire(setup, placement, needs, share_of_gpus(self.resources, device, len(needs)))
        if self.secure:
            self._meet()
        self._clear()

    def _clear(self) -> None:
        """Nothing under way."""
        # every worker's blocks, its nodes' states, and what all are told
        self._begun: list[tuple[Any, Any, Start]] | None = None
        self._context: Context | None = None
        self._positions: list[Any] = [None] * len(self.workers)
        self._noted: list[Any] | None = None  # positions asked for, to count once all are there
        self._first: Step | Context | None = None  # what comes first in the next call
        self._then = 0  # how much had happened when those positions were asked for
        self._rounds = 0
        self._news: list[Call] = []  # what the nodes took note of before the rounds
        self._since: list[Call] = []  # what happened to them since those positions
        self._moves: Each | None = None  # where they were told to stand in the end
        self._failed = [0] * len(self.workers)

    def place(self, states: Sequence[NodeState]) -> Placed:
        put, session = ray_module().put, self._session
        return tuple(
            Reference(put([states[k] for k in numbers]), session, numbers)
            for numbers in self.placement.nodes
        )

    def fetch(self, placed: Placed) -> list[NodeState]:
        references = present(placed)
        try:
            states = ray_module().get(references, timeout=self.timeout)
        except ray_module().exceptions.RayError as error:
            raise NetworkError(f"the nodes' states are lost: {error}") from None
        placement = Placement((), tuple(reference.nodes for reference in placed))
        return [own(state) for state in placement.in_order(states)]

    def begin(self, X: Any, placed: Placed, start: Start = PLAIN) -> Opening:
        if tuple(reference.nodes for reference in placed) != self.placement.nodes:
            placed = self.place(self.fetch(placed))  # they were spread in another way
        references = present(placed)
        parts = self._started().partition.parts(X)
        self._clear()
        if isinstance(X, Columns):  # where nodes find their columns by themselves; None: here
            found = [part.sendable() for part in parts]
            parts = [part.read() for part in parts] if found[0] is None else found
        blocks: list[Any] = [[parts[k] for k in own] for own in self.placement.nodes]
        if not isinstance(parts[0], Columns):
            blocks = [ray_module().put(own) for own in blocks]
        pairs = zip(blocks, references, strict=True)
        self._begun = [(own, states, start) for own, states in pairs]
        opening: Opening = self._added("begin", self._begun)
        return opening

    def factorise(self, context: Context) -> None:
        """Sent with the next call, as steps are: every call costs a millisecond and more."""
        self._first = context

    def propose(self, g: Array) -> Proposal:
        known = sent(g)
        calls = [(self._first, known)] * len(self.workers)
        proposal: Proposal = self._added("propose", calls, g)
        self._remember(("propose", (self._told(), known)))
        return proposal

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        if self.secure:
            raise NetworkError(f"secure sums: {question!r} is no question to single nodes")
        return self.placement.in_order(self._asked("ask", self._all, question, *about))

    def total(self, question: str | Each, *about: Any) -> Array:
        total: Array = self._asked("total", self._added, question, *about)
        return total

    def largest(self, question: str | Each, *about: Any) -> Array:
        largest: Array = self._asked("largest", self._largest, question, *about)
        return largest

    def _asked(self, how: str, ask: Any, question: str | Each, *about: Any) -> Any:
        """What ``ask`` makes of the workers' answers."""
        asked = (question, *(sent(x) for x in about))
        calls = [told := (self._first, *asked)] * len(self.workers)
        if any(isinstance(x, Each) for x in asked):
            calls = [Each.some(told, own) for own in self.placement.nodes]
        answers = ask(how, calls)
        step = self._told()
        questions = set(question) if isinstance(question, Each) else {question}
        if questions & self._started().solver.news or step is not None:
            rounds = self._rounds or step is not None
            (self._since if rounds else self._news).append((how, (step, *asked)))
        return answers

    def hosts(self, asked: Sequence[bool] | None = None) -> int:
        return self.placement.hosts(asked)

    def move(self, each: Sequence[Array]) -> None:
        """Sent with the task's end, which is next."""
        self._moves = Each(each)

    def _told(self) -> Step | None:
        """The step that came first in a call which all have answered. What they agreed on is
        kept apart: it holds for the whole task."""
        first, self._first = self._first, None
        if isinstance(first, Context):
            self._context = first
            return None
        return first

    def _remember(self, call: Call) -> None:
        """Remember the round; once in a while note positions instead, so that memory is bounded.

        A worker answers in order: with a round's answers, positions asked for before are there.
        """
        ray = ray_module()
        if self._noted is not None and self.keep == "driver":
            try:
                self._noted = [ray.put(x) for x in ray.get(self._noted, timeout=self.timeout)]
            except ray.exceptions.RayError:  # a machine has gone; the rounds are still here
                self._noted = None
        if self._noted is not None:
            self._positions, self._noted = self._noted, None
            self._since = self._since[self._then :]
        self._since.append(call)
        self._rounds += 1
        if self.secure or self._started().homes:  # where a node stands is its own affair: all
            return  # rounds are kept
        if len(self._since) >= max(REPLAY, len(self.workers)):
            self._noted = [worker.position.remote() for worker in self.workers]
            self._then = len(self._since)
            if self._in_tree():  # the next round comes from another worker: not in turn
                ray.wait(self._noted, num_returns=len(self._noted), timeout=self.timeout)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self._first = (step, momentum)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        """Shares come here; the nodes' new states stay where they are, and references to them come.

        A worker that fails from now on is made anew at the next call, from its nodes' new states.
        """
        told = (self._first, curvature, self._moves)
        calls = [Each.some(told, own) for own in self.placement.nodes]
        known = self._added("account", calls) if self.secure else None
        if known is not None:
            self._told()
            self._since.append(("account", told))
        pairs = self._all("end", calls, returns=2)
        self.abandon()  # the task's data may go
        shares = self.placement.in_order([own for own, _ in pairs])
        each = zip(pairs, self.placement.nodes, strict=True)
        placed = tuple(Reference(states, self._session, own) for (_, states), own in each)
        whole = coefficients(self._started(), shares)
        if known is not None:
            whole = whole._replace(offset=known[0], reach=known[1])
        return whole, placed

    def abandon(self) -> None:
        self._clear()
        for worker in self.workers if self._alive() else ():
            worker.forget.remote()

    def close(self) -> None:
        self._kill()
        self._clear()
        self.setup = self._inside = None

    def _started(self) -> Setup:
        if self.setup is None or not self._alive():
            raise NetworkError("this network has not been started, or has been closed")
        return self.setup

    def _so_far(self, w: int) -> list[Call]:
        if self._begun is None:
            return []
        if self.secure and self._context is not None and self._started().solver.draws:
            raise ForgottenError(
                f"{self.placement.called(w)} failed, and what its nodes had drawn is lost"
            )
        self._noted = None  # one of them may have died with the worker
        calls: list[Call] = [("begin", self._begun[w])]
        if self._context is not None:
            calls += [("factorise", (self._context,)), *self._news]
        if self._positions[w] is not None:
            calls.append(("move_to", (self._positions[w],)))
        own = self.placement.nodes[w]
        return [(method, Each.some(call, own)) for method, call in [*calls, *self._since]]
