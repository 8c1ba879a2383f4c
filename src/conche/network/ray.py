"""One actor a node, on this machine or on a Ray cluster; an actor that dies is replaced.

The driver keeps names, targets and n-vectors; columns go to their node once a task, or, where they
are on disk, are read there. Weights and memory stay with the node: the driver holds references to
them as they were at the task's start, to where every node stood some rounds ago, and the rounds
since then. A node that is killed or hangs is made anew from those and replays the rounds: the
result is the same to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from ..node import Node, Opening, Position, Proposal, State
from ..partition import Partition
from ..preparation import Preparation
from ..solvers.base import Array, Context, Solver
from ..tasks.columns import Columns, Source
from . import ray_local
from .base import Estimate, NodeError
from .local import _total

LARGE = 100_000  # bytes: a larger vector goes through the object store, once for all nodes
START = 120.0  # seconds: a process that starts and imports may take longer than one that runs
REPLAY = 16  # rounds that are kept before the nodes' positions are noted and they can go
Step = tuple[Array | None, Array | None]


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ValueError(f"network='ray' needs ray: pip install conche[ray] ({error})") from error
    return ray


class Worker:
    """The node inside an actor."""

    def __init__(self, *inside: Any):
        threadpool_limits(1, user_api="blas")  # several nodes share a machine's cores
        self.reset(*inside)

    def reset(
        self, solver: Solver, state: State, preparation: Preparation, intercept: bool
    ) -> None:
        self.node = Node(solver, state, preparation, intercept)
        self.staged: State | None = None

    def begin(self, block: Any) -> Opening:
        return self.node.begin(block.read() if isinstance(block, Source) else block)

    def prepare(self, context: Context) -> None:
        self.node.prepare(context)

    def propose(self, g: Array, before: Step | None) -> Proposal:
        """The last round's step comes with the next round's direction: one message a round."""
        if before is not None:
            self.node.accept(*before)
        return self.node.propose(g)

    def replay(
        self,
        context: Context | None,
        steps: Sequence[Step | None],
        block: Any,
        position: Position | None,
        *directions: Array,
    ) -> None:
        """The task so far, as one call: it fails as a whole, or this node stands where it stood."""
        self.begin(block)
        if context is not None:
            self.prepare(context)
        if position is not None:
            self.node.move_to(position)
        for g, step in zip(directions, steps, strict=True):
            self.propose(g, step)

    def position(self) -> Position:
        return self.node.position()

    def end(self, before: Step | None, curvature: Array | None) -> tuple[Any, State]:
        """What the driver needs, and the state, which stays where it is until someone asks."""
        if before is not None:
            self.node.accept(*before)
        self.staged = state = self.node.end(curvature)
        own = self.node.preparation.outward(state.weights, state.numbers)
        return (*own, state.numbers.get("mean")), state

    def install(self) -> None:
        assert self.staged is not None
        self.node.install(self.staged)
        self.staged = None

    def forget(self) -> None:
        self.staged = None
        self.node.forget_task()

    def pid(self) -> int:
        return os.getpid()


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
        self.address, self.resources = address, dict(resources or {"num_cpus": 0})
        self.timeout, self.retries, self.keep = timeout, retries, keep
        self.workers: list[Any] = []
        self.failures = 0  # nodes replaced so far

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
        if alone:
            ray_local.start()
        elif not ray.is_initialized():
            ray.init(self.address, log_to_driver=False, logging_level="error")
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
        if self._noted is not None:
            self._positions, self._noted, self._rounds = self._noted, None, []
        self._rounds.append(call)
        if len(self._rounds) >= REPLAY and self.keep is None:
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
        """From here on the new states count; a node that fails now is made from its new one."""
        self._states = self._staged
        if self.keep == "driver":
            self._states = [_ray().put(state) for state in self.states()]
        self._clear()
        for k, worker in enumerate(self.workers):
            if self._answer(k, worker.install.remote())[1] is not None:
                self._replace(k)

    def abandon(self) -> None:
        self._clear()
        for k, worker in enumerate(self.workers):
            if self._answer(k, worker.forget.remote())[1] is not None:
                self._replace(k)

    def states(self) -> list[State]:
        return [_state(state) for state in _ray().get(list(self._states), timeout=self.timeout)]

    def close(self) -> None:
        for worker in self.workers:
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
        while True:
            answer, failure = self._answer(k, refs[0] if returns > 1 else refs, wait)
            wait = self.timeout
            if failure is None:
                return (answer, refs[1]) if returns > 1 else answer
            self._failed[k] += 1
            if self._failed[k] > self.retries:
                raise NodeError(f"node {k} failed {self._failed[k]} time(s) in one task: {failure}")
            self._replace(k)
            refs = self._send(k, method, call, returns)

    def _answer(self, k: int, ref: Any, wait: float | None = None) -> tuple[Any, Exception | None]:
        """The node's answer, or why there is none; what the node itself refuses is raised."""
        ray = _ray()
        try:
            return ray.get(ref, timeout=self.timeout if wait is None else wait), None
        except (ray.exceptions.RayActorError, ray.exceptions.GetTimeoutError) as failure:
            return None, failure
        except ray.exceptions.RayTaskError as error:
            raise NodeError(f"node {k}: {error.cause}") from None

    def _replace(self, k: int) -> None:
        """A new actor from the state at the task's start; then the task so far, again."""
        ray = _ray()
        ray.kill(self.workers[k])
        self.failures += 1
        self.workers[k] = worker = self._new(k)
        if self._answer(k, worker.pid.remote(), START)[1] is not None:
            return
        if self._blocks is None:
            return
        self._noted = None  # one of them may have died with the node
        directions, steps = [g for g, _ in self._rounds], [step for _, step in self._rounds]
        replayed = worker.replay.remote(
            self._context, steps, self._blocks[k], self._positions[k], *directions
        )
        self._answer(k, replayed, self.timeout)  # if it dies in there, what is asked next fails


def _state(state: State) -> State:
    return State(
        np.array(state.weights),
        {key: np.array(array) for key, array in state.memory.items()},
        {key: np.array(array) for key, array in state.numbers.items()},
    )
