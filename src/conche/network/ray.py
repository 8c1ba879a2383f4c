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
from ..common.checks import whole
from ..errors import NetworkError, NodeError, ParameterError
from ..nodes import PLAIN, NodeState, Opening, Proposal, Setup, Start
from ..nodes.solvers import Context
from ..tasks.columns import Columns
from . import ray_local
from .base import (
    EXPECTED,
    CentralNetwork,
    Coefficients,
    Each,
    Placed,
    coefficients,
    largest_array,
    total_array,
    total_opening,
    total_proposal,
)
from .placement import Placement, Workers, checked
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
from .ray_worker import Step, Worker

Call = tuple[str, tuple[Any, ...]]  # a worker's method, and its arguments
START = 120.0  # seconds: a process that starts and imports may take longer than one that runs
REPLAY = 16  # rounds that are kept before the nodes' positions are noted and they can go


class RayNetwork(CentralNetwork):
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
    ):
        if keep not in (None, "driver"):
            raise ParameterError(f"keep={keep!r} must be None or 'driver'")
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise ParameterError(f"timeout={timeout!r} must be a number of seconds above 0")
        if resources is not None and not isinstance(resources, dict):
            raise ParameterError(f"resources={resources!r} must be a dict, as Ray's options take")
        self.address, self.resources = address, dict(resources or {"num_cpus": 0})
        self.timeout, self.retries, self.keep = timeout, whole("retries", retries, least=0), keep
        self.asked_workers = checked(workers)
        self.placement = Placement((), ())
        self.workers: list[Any] = []
        self.failures = 0  # workers replaced so far
        self._inside: Setup | None = None  # what the actors are made of; `setup` once all are
        self._session: str | None = None  # the Ray that they live in
        self._gpus: dict[str, float] = {}  # what every actor has of them
        self._needs: list[dict[str, float]] = []  # resources of Ray's that each of them must have
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
        )

    def start(self, setup: Setup) -> None:
        placement = Placement.of(self.asked_workers, len(setup.partition))
        alone = self.address is None and "RAY_ADDRESS" not in os.environ
        if alone:
            ray_local.loopback_only()
        ray = ray_module()
        if ray.is_initialized():
            ray_local.check_address(self.address, ray.get_runtime_context().gcs_address)
        elif alone:
            ray_local.start()
        else:
            ray.init(self.address, log_to_driver=False, logging_level="error")
        if session() != self._session:  # another Ray than last time
            self.workers, self._session = [], session()
        self.setup, self._inside = None, setup  # a start that is interrupted has not happened
        self._clear()
        W, same = len(placement), placement.names == self.placement.names
        gpus = share_of_gpus(self.resources, setup.device, W)
        needs = named_resources(placement.names)
        self.placement = placement
        if len(self.workers) == W and same and gpus == self._gpus:  # they keep the actors
            self._all("reset", [(setup, numbers) for numbers in placement.nodes])
        else:
            self._kill()
            self._gpus, self._needs = gpus, needs
            self.workers = [self._new(w) for w in range(W)]
            self._clear()
            self._all("pid", [()] * W, wait=START)
        self._clear()
        self.setup = setup

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

    def _new(self, w: int) -> Any:
        options = self.resources | self._gpus
        options["resources"] = self._needs[w] | self.resources.get("resources", {})
        # never max_restarts: a restarted actor would have forgotten its task
        actor = ray_module().remote(Worker).options(max_restarts=0, **options)
        threads = max(1, int(self.resources.get("num_cpus", 1)))
        return actor.remote(self._inside, self.placement.nodes[w], threads)

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
        return total_opening(self._all("begin", self._begun))

    def factorise(self, context: Context) -> None:
        """Sent with the next call, as steps are: every call costs a millisecond and more."""
        self._first = context

    def propose(self, g: Array) -> Proposal:
        g = sent(g)
        proposals = self._all("propose", [(self._first, g)] * len(self.workers))
        self._remember(("propose", (self._told(), g)))
        return total_proposal(proposals)

    def ask(self, question: str | Each, *about: Any) -> list[Any]:
        return self.placement.in_order(self._asked("ask", question, *about))

    def total(self, question: str | Each, *about: Any) -> Array:
        return total_array(self._asked("total", question, *about))

    def largest(self, question: str | Each, *about: Any) -> Array:
        return largest_array(self._asked("largest", question, *about))

    def _asked(self, how: str, question: str | Each, *about: Any) -> list[Any]:
        """Every worker's answer; of one that has none, nothing."""
        asked = (question, *(sent(x) for x in about))
        calls = [Each.some((self._first, *asked), own) for own in self.placement.nodes]
        answers = self._all(how, calls)
        step = self._told()
        questions = set(question) if isinstance(question, Each) else {question}
        if questions & self._started().solver.news or step is not None:
            rounds = self._rounds or step is not None
            (self._since if rounds else self._news).append((how, (step, *asked)))
        return [answer for answer in answers if answer is not None]

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
        if len(self._since) >= REPLAY:
            self._noted = [worker.position.remote() for worker in self.workers]
            self._then = len(self._since)

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self._first = (step, momentum)

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        """Shares come here; the nodes' new states stay where they are, and references to them come.

        A worker that fails from now on is made anew at the next call, from its nodes' new states.
        """
        told = (self._first, curvature, self._moves)
        pairs = self._all("end", [Each.some(told, own) for own in self.placement.nodes], returns=2)
        self.abandon()  # the task's data may go
        shares = self.placement.in_order([own for own, _ in pairs])
        each = zip(pairs, self.placement.nodes, strict=True)
        placed = tuple(Reference(states, self._session, own) for (_, states), own in each)
        return coefficients(self._started(), shares), placed

    def abandon(self) -> None:
        self._clear()
        for worker in self.workers if self._alive() else ():
            worker.forget.remote()

    def close(self) -> None:
        self._kill()
        self._clear()
        self.setup = self._inside = None

    def _kill(self) -> None:
        for worker in self.workers if self._alive() else ():
            ray_module().kill(worker)
        self.workers = []

    def _alive(self) -> bool:
        """Whether the Ray that the actors live in still runs."""
        return self._session is not None and self._session == session()

    def _started(self) -> Setup:
        if self.setup is None or not self._alive():
            raise NetworkError("this network has not been started, or has been closed")
        return self.setup

    def _all(
        self,
        method: str,
        calls: Sequence[tuple[Any, ...]],
        returns: int = 1,
        wait: float | None = None,
    ) -> list[Any]:
        """Every worker's answer, in order; one that fails is replaced and asked again."""
        sent = [self._send(w, method, call, returns) for w, call in enumerate(calls)]
        ray, wait = ray_module(), self.timeout if wait is None else wait
        if returns == 1:
            try:  # all at once where all is well, which is quicker than one by one
                return list(ray.get(sent, timeout=wait))
            except ray.exceptions.GetTimeoutError:
                wait = 0.0  # every worker has had its time
            except ray.exceptions.RayError:
                pass
        return [
            self._finish(w, method, calls[w], returns, refs, wait) for w, refs in enumerate(sent)
        ]

    def _send(self, w: int, method: str, call: tuple[Any, ...], returns: int) -> Any:
        return getattr(self.workers[w], method).options(num_returns=returns).remote(*call)

    def _finish(self, w: int, method: str, call: Any, returns: int, refs: Any, wait: float) -> Any:
        answer, failure = self._collect(returns, refs, wait)
        while failure is not None:
            self._failed[w] += 1
            if self._failed[w] > self.retries:
                times = f"{self._failed[w]} time(s) in one task"
                raise NodeError(f"{self.placement.called(w)} failed {times}: {failure}")
            failure = self._replace(w)
            if failure is None:
                refs = self._send(w, method, call, returns)
                answer, failure = self._collect(returns, refs, self.timeout)
        return answer

    def _collect(self, returns: int, refs: Any, wait: float) -> tuple[Any, Exception | None]:
        """A worker's answer. Of two, fetch only the first; the second, its nodes' states, stays on
        the worker unless keep='driver'."""
        if returns == 1:
            return self._answer(refs, wait)
        answer, failure = self._answer(refs[0], wait)
        if failure is not None or self.keep is None:
            return (answer, refs[1]), failure
        states, failure = self._answer(refs[1], wait)
        return (answer, ray_module().put(states)), failure

    @staticmethod
    def _answer(ref: Any, wait: float) -> tuple[Any, Exception | None]:
        """A worker's answer, or why there is none; what a node itself refuses is raised."""
        ray = ray_module()
        try:
            return ray.get(ref, timeout=wait), None
        except ray.exceptions.RayTaskError as error:
            if not isinstance(error.cause, EXPECTED):
                raise  # a bug: with its own traceback
            raise NodeError(str(error.cause)) from None
        except ray.exceptions.RayError as failure:  # died, hangs, no memory, or its answer is lost
            return None, failure

    def _replace(self, w: int) -> Exception | None:
        """A new actor from the states at the task's start; then the task so far, again. Or why
        that failed, too."""
        ray = ray_module()
        ray.kill(self.workers[w])
        self.failures += 1
        self.workers[w] = worker = self._new(w)
        _, failure = self._answer(worker.pid.remote(), START)
        if failure is not None or self._begun is None:
            return failure
        self._noted = None  # one of them may have died with the worker
        told = [self._send(w, method, call, 1) for method, call in self._so_far(w)]
        wait = self.timeout * (2 + len(told))
        failures = (self._answer(ref, wait)[1] for ref in told)
        return next((failure for failure in failures if failure is not None), None)

    def _so_far(self, w: int) -> list[Call]:
        """All that a worker has been told in this task, for another one to take its place."""
        assert self._begun is not None
        calls: list[Call] = [("begin", self._begun[w])]
        if self._context is not None:
            calls += [("factorise", (self._context,)), *self._news]
        if self._positions[w] is not None:
            calls.append(("move_to", (self._positions[w],)))
        own = self.placement.nodes[w]
        return [(method, Each.some(call, own)) for method, call in [*calls, *self._since]]
