"""The actors of a Ray network: how they are started, asked, waited for and replaced.

Up to `FAN` workers the driver talks to each. With more, sums go through a tree: the driver asks
`FAN` of them, each asks `FAN` others and adds what they answer to its own, and so on, so that no
process has more than `FAN` messages to send and to wait for. Where anything fails in a tree, every
worker is asked directly: one that has done its part answers what it noted, and one that is gone
shows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

from ..common.arrays import Array
from ..common.checks import whole
from ..errors import NodeError, ParameterError
from ..nodes import Setup
from .base import EXPECTED, largest_array
from .placement import Placement, Workers, checked
from .ray_store import ray_module, session
from .ray_worker import Worker, added

Call = tuple[str, tuple[Any, ...]]  # a worker's method, and its arguments
START = 120.0  # seconds: a process that starts and imports may take longer than one that runs
FAN = 8  # messages that one process sends in a sum


def below(w: int, count: int) -> range:
    """Whom worker w asks in a tree of so many; -1: whom the driver does.

    >>> below(-1, 20), below(0, 20), below(1, 20)
    (range(0, 8), range(8, 16), range(16, 20))
    """
    first = FAN * (w + 1)
    return range(min(first, count), min(first + FAN, count))


class Crew(ABC):
    """Workers, one actor each."""

    def __init__(
        self,
        resources: dict[str, Any] | None,
        timeout: float,
        retries: int,
        keep: Literal["driver"] | None,
        workers: Workers,
    ):
        if keep not in (None, "driver"):
            raise ParameterError(f"keep={keep!r} must be None or 'driver'")
        if not isinstance(timeout, int | float) or not timeout > 0:
            raise ParameterError(f"timeout={timeout!r} must be a number of seconds above 0")
        if resources is not None and not isinstance(resources, dict):
            raise ParameterError(f"resources={resources!r} must be a dict, as Ray's options take")
        self.resources = dict(resources or {"num_cpus": 0})
        self.timeout, self.retries, self.keep = timeout, whole("retries", retries, least=0), keep
        self.asked_workers = checked(workers)
        self.placement = Placement((), ())
        self.workers: list[Any] = []
        self.failures = 0  # workers replaced so far
        self._inside: Setup | None = None  # what the actors are made of
        self._session: str | None = None  # the Ray that they live in
        self._gpus: dict[str, float] = {}  # what every actor has of them
        self._needs: list[dict[str, float]] = []  # resources of Ray's that each of them must have
        self._failed: list[int] = []  # how often each has in this task
        self._number = 0  # of sums asked for so far

    @abstractmethod
    def _so_far(self, w: int) -> list[Call]:
        """All that a worker has been told in this task, for another one to take its place."""

    def _worker(self) -> type[Worker]:
        """What the actors are."""
        return Worker

    def _hire(self, setup: Setup | None, placement: Placement, needs: Any, gpus: Any) -> None:
        """Actors for these nodes: the ones there are, where they will do."""
        W, same = len(placement), placement.names == self.placement.names
        self._inside, self.placement = setup, placement
        if len(self.workers) == W and same and gpus == self._gpus:
            self._failed = [0] * W
            self._all("reset", [(setup, numbers) for numbers in placement.nodes])
            return
        self._kill()
        self._gpus, self._needs = gpus, needs
        self.workers, self._failed = [self._new(w) for w in range(W)], [0] * W
        self._all("pid", [()] * W, wait=START)
        if (
            self._in_tree()
        ):  # waited for: a worker that knows of nobody below it would leave them out
            self._all("lead", [(self._led_by(w),) for w in range(W)])

    def _new(self, w: int) -> Any:
        options = self.resources | self._gpus
        options["resources"] = self._needs[w] | self.resources.get("resources", {})
        # never max_restarts: a restarted actor would have forgotten its task
        actor = ray_module().remote(self._worker()).options(max_restarts=0, **options)
        threads = max(1, int(self.resources.get("num_cpus", 1)))
        return actor.remote(self._inside, self.placement.nodes[w], threads)

    def _led_by(self, w: int) -> list[Any]:
        """Those whom a worker asks in a tree."""
        return [self.workers[v] for v in below(w, len(self.workers))]

    def _kill(self) -> None:
        for worker in self.workers if self._alive() else ():
            ray_module().kill(worker)
        self.workers = []

    def _alive(self) -> bool:
        """Whether the Ray that the actors live in still runs."""
        return self._session is not None and self._session == session()

    def _in_tree(self) -> bool:
        """Whether there are so many that sums go through a tree."""
        return len(self.workers) > FAN

    def _added(
        self, method: str, calls: Sequence[tuple[Any, ...]], about: Array | None = None
    ) -> Any:
        """The sum of what all workers answer; through the tree where all are told the same. Secure
        sums look at what it is ``about``, to guess how large it is."""
        if not self._in_tree() or any(call is not calls[0] for call in calls):
            return added(self._all(method, calls))
        ray = ray_module()
        self._number += 1
        numbered, heads = (self._number, method, *calls[0]), below(-1, len(self.workers))
        asked = [self.workers[w].relay.remote(self.timeout, *numbered) for w in heads]
        try:  # a worker waits as long for those below; the driver a little longer
            return added(ray.get(asked, timeout=1.0 + 1.1 * self.timeout))
        except ray.exceptions.RayError:
            answers = self._all("once", [numbered] * len(self.workers))
            return self._by_tree(answers, -1)

    def _largest(self, method: str, calls: Sequence[tuple[Any, ...]]) -> Array:
        """The largest of what all workers answer, entry by entry."""
        answers = self._all(method, calls)
        return largest_array([answer for answer in answers if answer is not None])

    def _by_tree(self, answers: Sequence[Any], w: int) -> Any:
        """Answers summed as the tree would, so that an accident changes no bit."""
        parts = [self._by_tree(answers, v) for v in below(w, len(answers))]
        return added(parts if w < 0 else [answers[w], *parts])

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
        if failure is not None:
            return failure
        worker.lead.remote(self._led_by(w))
        if w >= FAN:  # until it hears of it, its own sums fail, and all are asked directly
            above = w // FAN - 1
            self.workers[above].lead.remote(self._led_by(above))
        told = [self._send(w, "quietly", (method, *call), 1) for method, call in self._so_far(w)]
        wait = self.timeout * (2 + len(told))
        failures = (self._answer(ref, wait)[1] for ref in told)
        return next((failure for failure in failures if failure is not None), None)
