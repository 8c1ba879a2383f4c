"""One actor a node, on this machine or on a Ray cluster; an actor that dies is replaced.

The driver keeps names, targets and n-vectors; columns go to their node once a task, or, where they
are on disk, are read there. Weights and memory stay with the node: the driver holds references to
them as they were at the task's start, to where every node stood some rounds ago, and the rounds
since then. A node that is killed or hangs is made anew from those and replays the rounds: the
result is the same to the last bit.
"""

from __future__ import annotations

import copy
import os
import socket
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..node import Opening, Proposal, State
from ..partition import Partition
from ..preparation import Preparation
from ..solvers.base import Array, Context, Solver
from ..tasks.columns import Columns
from . import ray_local
from .base import Estimate, NodeError
from .local import _total
from .ray_worker import Step, Worker

LARGE = 100_000  # bytes: a larger vector goes through the object store, once for all nodes
START = 120.0  # seconds: a process that starts and imports may take longer than one that runs
REPLAY = 16  # rounds that are kept before the nodes' positions are noted and they can go


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ValueError(f"network='ray' needs ray: pip install conche[ray] ({error})") from error
    return ray


class RayNetwork:
    """``address`` of a cluster (None: this machine, loopback only); ``resources`` of every node,
    as Ray's ``options`` takes them; a node that does not answer within ``timeout`` seconds has
    failed; more than ``retries`` failures of a node in one task end the run. ``keep`` says where
    the nodes' states of the task's start are kept: on the node's own machine (None), so that
    nothing leaves it but a process may die, or with the "driver", so that a machine may."""

    def __init__(
        self,
        address: str | None = None,
        resources: dict[str, Any] | None = None,
        timeout: float = 300.0,
        retries: int = 3,
        keep: Literal["driver"] | None = None,
    ):
        if keep not in (None, "driver"):
            raise ValueError(f"keep={keep!r} must be None or 'driver'")
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise ValueError(f"timeout={timeout!r} must be a number of seconds above 0")
        if not isinstance(retries, int) or retries < 0:
            raise ValueError(f"retries={retries!r} must be a whole number of at least 0")
        if resources is not None and not isinstance(resources, dict):
            raise ValueError(f"resources={resources!r} must be a dict, as Ray's options take")
        self.address, self.resources = address, dict(resources or {"num_cpus": 0})
        self.timeout, self.retries, self.keep = timeout, retries, keep
        self.workers: list[Any] = []
        self.failures = 0  # nodes replaced so far
        self._job: Any = None
        self._later: tuple[Any, ...] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> RayNetwork:
        """A network of its own, never the same actors: one that goes on from the states as they are
        now, once it is asked to."""
        new = RayNetwork(self.address, self.resources, self.timeout, self.retries, self.keep)
        if self.workers:
            inside = (self._solver, self.partition, self.states(), self.preparation)
            new._later = copy.deepcopy(inside, memo)
            new.partition = new._later[1]
        return new

    def start(
        self,
        solver: Solver,
        partition: Partition,
        states: Sequence[State],
        preparation: Preparation | None = None,
    ) -> None:
        alone = self.address is None and "RAY_ADDRESS" not in os.environ
        if alone:
            ray_local.loopback_only()
        ray = _ray()
        if ray.is_initialized():
            self._check_address(ray.get_runtime_context().gcs_address)
        elif alone:
            ray_local.start()
        else:
            ray.init(self.address, log_to_driver=False, logging_level="error")
        if ray.get_runtime_context().get_job_id() != self._job:  # another Ray than last time
            self.workers, self._job = [], ray.get_runtime_context().get_job_id()
        self._later = None
        self.partition, self.preparation = partition, preparation or Preparation()
        self._solver = solver
        self._states = [ray.put(state) for state in states]
        if len(self.workers) == len(states):  # a stream that starts over keeps its actors
            self._clear()
            self._all("reset", [self._inside(k) for k in range(len(states))])
        else:
            self.close()
            self.workers = [self._new(k) for k in range(len(states))]
            self._clear()
            self._all("pid", [()] * len(states), wait=START)
        self._clear()

    def _check_address(self, running: str) -> None:
        """One process has one Ray: another address than its must not be ignored."""
        if self.address in (None, "auto", "local") or "://" in str(self.address):
            return
        host, _, port = str(self.address).rpartition(":")
        try:
            asked = f"{socket.gethostbyname(host)}:{port}"
        except OSError:
            asked = self.address
        if running not in (self.address, asked):
            raise ValueError(
                f"Ray runs here already, at {running}: not at address={self.address!r}"
            )

    def _clear(self) -> None:
        """Nothing under way."""
        self._blocks: list[Any] | None = None
        self._context: Context | None = None
        self._positions: list[Any] = [None] * len(self.workers)
        self._noted: list[Any] | None = None  # positions asked for, to count once all are there
        self._rounds: list[tuple[Any, Step | None]] = []  # since those positions
        self._step: Step | None = None
        self._staged: list[Any] = []
        self._failed = [0] * len(self.workers)

    def _new(self, k: int) -> Any:
        ray = _ray()
        # never max_restarts: a restarted actor would have forgotten its weights
        actor = ray.remote(Worker).options(max_restarts=0, **self.resources)
        return actor.remote(*self._inside(k))

    def _inside(self, k: int) -> tuple[Any, ...]:
        first = self.partition.intercept and k == 0
        return self._solver, self._states[k], self.preparation, first

    def begin(self, X: Any) -> Opening:
        if self._later is not None:
            self.start(*self._later)
        if not self.workers or not _ray().is_initialized():
            raise RuntimeError("this network has been closed: load the model, or fit it again")
        self._clear()
        ray = _ray()
        if isinstance(X, Columns) and (source := X.source()) is not None:
            blocks: list[Any] = [source.columns(c) for c in self.partition.places()]
        else:
            blocks = [ray.put(block) for block in self.partition.split(X)]
        self._blocks = blocks
        openings = self._all("begin", [(block,) for block in blocks])
        return Opening(
            _total([o.predictions for o in openings]), _total([o.report for o in openings])
        )

    def prepare(self, context: Context) -> None:
        self._all("prepare", [(context,)] * len(self.workers))
        self._context = context

    def propose(self, g: Array) -> Proposal:
        sent = _ray().put(g) if g.nbytes > LARGE else g
        call = (sent, self._step)
        proposals = self._all("propose", [call] * len(self.workers))
        self._step = None
        self._remember(call)
        scalars = [p.scalars for p in proposals if p.scalars is not None]
        return Proposal(_total([p.image for p in proposals]), _total(scalars) if scalars else None)

    def _remember(self, call: tuple[Any, Step | None]) -> None:
        """Remember the round; once in a while note positions instead, so that memory is bounded.

        A node answers in order: with a round's answers, positions asked for before it are there.
        """
        ray = _ray()
        if self._noted is not None and self.keep == "driver":
            try:
                self._noted = [ray.put(x) for x in ray.get(self._noted, timeout=self.timeout)]
            except ray.exceptions.RayError:  # a machine has gone; the rounds are still here
                self._noted = None
        if self._noted is not None:
            self._positions, self._noted, self._rounds = self._noted, None, []
        self._rounds.append(call)
        if len(self._rounds) >= REPLAY:
            self._noted = [worker.position.remote() for worker in self.workers]

    def accept(self, step: Array | None, momentum: Array | None) -> None:
        self._step = (step, momentum)

    def end(self, curvature: Array | None = None) -> Estimate:
        pairs = self._all("end", [(self._step, curvature)] * len(self.workers), returns=2)
        self._staged = [state for _, state in pairs]
        parts, offsets, means = zip(*(answer for answer, _ in pairs), strict=True)
        fill = None
        if self.preparation.missing != "refuse":
            fill = self.partition.join(list(means), intercept=False)
        return Estimate(self.partition.join(list(parts)), np.sum(offsets, axis=0), fill)

    def commit(self) -> None:
        """From here on the new states count. Nothing is waited for: a node that fails now will at
        the next call, and is made from its new state then."""
        self._states = self._staged
        self._clear()
        for worker in self.workers:
            worker.install.remote()

    def abandon(self) -> None:
        self._clear()
        for worker in self.workers:
            worker.forget.remote()

    def states(self) -> list[State]:
        if self._later is not None:
            return list(self._later[2])
        if not _ray().is_initialized():
            raise RuntimeError("Ray has been shut down, and the nodes' states with it")
        return [_state(state) for state in _ray().get(list(self._states), timeout=self.timeout)]

    def close(self) -> None:
        for worker in self.workers if _ray().is_initialized() else ():
            _ray().kill(worker)
        self.workers = []

    def _all(
        self,
        method: str,
        calls: Sequence[tuple[Any, ...]],
        returns: int = 1,
        wait: float | None = None,
    ) -> list[Any]:
        """Every node's answer, in order; a node that fails is replaced and asked again."""
        sent = [self._send(k, method, call, returns) for k, call in enumerate(calls)]
        ray, wait = _ray(), self.timeout if wait is None else wait
        if returns == 1:
            try:  # all at once where all is well, which is quicker than one by one
                return list(ray.get(sent, timeout=wait))
            except ray.exceptions.GetTimeoutError:
                wait = 0.0  # every node has had its time
            except ray.exceptions.RayError:
                pass
        return [
            self._finish(k, method, calls[k], returns, refs, wait) for k, refs in enumerate(sent)
        ]

    def _send(self, k: int, method: str, call: tuple[Any, ...], returns: int) -> Any:
        return getattr(self.workers[k], method).options(num_returns=returns).remote(*call)

    def _finish(self, k: int, method: str, call: Any, returns: int, refs: Any, wait: float) -> Any:
        answer, failure = self._collect(k, returns, refs, wait)
        while failure is not None:
            self._failed[k] += 1
            if self._failed[k] > self.retries:
                times = f"{self._failed[k]} time(s) in one task"
                raise NodeError(f"node {k} failed {times}: {failure}")
            failure = self._replace(k)
            if failure is None:
                refs = self._send(k, method, call, returns)
                answer, failure = self._collect(k, returns, refs, self.timeout)
        return answer

    def _collect(
        self, k: int, returns: int, refs: Any, wait: float
    ) -> tuple[Any, Exception | None]:
        """The node's answer; of two, the second stays where it is, unless the driver keeps it."""
        if returns == 1:
            return self._answer(k, refs, wait)
        answer, failure = self._answer(k, refs[0], wait)
        if failure is not None or self.keep is None:
            return (answer, refs[1]), failure
        state, failure = self._answer(k, refs[1], wait)
        return (answer, _ray().put(state)), failure

    def _answer(self, k: int, ref: Any, wait: float) -> tuple[Any, Exception | None]:
        """The node's answer, or why there is none; what the node itself refuses is raised."""
        ray = _ray()
        try:
            return ray.get(ref, timeout=wait), None
        except ray.exceptions.RayTaskError as error:
            raise NodeError(f"node {k}: {error.cause}") from None
        except ray.exceptions.RayError as failure:  # died, hangs, no memory, or its answer is lost
            return None, failure

    def _replace(self, k: int) -> Exception | None:
        """A new actor from the state at the task's start; then the task so far, again. Or why
        that failed, too."""
        ray = _ray()
        ray.kill(self.workers[k])
        self.failures += 1
        self.workers[k] = worker = self._new(k)
        _, failure = self._answer(k, worker.pid.remote(), START)
        if failure is not None or self._blocks is None:
            return failure
        self._noted = None  # one of them may have died with the node
        directions, steps = [g for g, _ in self._rounds], [step for _, step in self._rounds]
        replayed = worker.replay.remote(
            self._context, steps, self._blocks[k], self._positions[k], *directions
        )
        return self._answer(k, replayed, self.timeout * (2 + len(steps)))[1]


def _state(state: State) -> State:
    return State(
        np.array(state.weights),
        {key: np.array(array) for key, array in state.memory.items()},
        {key: np.array(array) for key, array in state.numbers.items()},
    )
