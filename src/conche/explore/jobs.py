"""Simulations in the background: started, watched and stopped; few at a time."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ParameterError
from .settings import Wish

MOST_RUNNING = 2
UNWATCHED = 75.0  # seconds without a look after which nobody is taken to watch: browsers let a page
# in the background look once a minute
MOST_REMEMBERED = 16
LONGEST_LINE = 1 << 22  # bytes


class TooManyError(ParameterError):
    """As many simulations run as may."""


@dataclass
class Job:
    """One simulation: how far it is, and what it has found so far."""

    wish: Wish
    left_out: list[int]
    process: asyncio.subprocess.Process
    done: int = 0
    total: int = 1
    results: dict[int, dict[str, Any]] = field(default_factory=dict)
    state: str = "running"
    why: str = ""
    seen: float = field(default_factory=time.monotonic)  # when somebody has asked for it

    def as_dict(self) -> dict[str, Any]:
        """What the page is told of it."""
        return {
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "why": self.why,
            "left_out": self.left_out,
            "results": [self.results[K] for K in sorted(self.results)],
            "options": self.options(),
        }

    def options(self) -> str:
        """Of the command that simulates what there is so far."""
        if not self.results:
            return ""
        trials = min(result["trials"] for result in self.results.values())  # all are equal
        return replace(self.wish, nodes=sorted(self.results), trials=trials).csv_options()


class Jobs:
    """All simulations of one server."""

    def __init__(self) -> None:
        self.known: dict[str, Job] = {}
        self._watches: set[asyncio.Task[None]] = set()
        self._starting = 0

    async def start(self, wish: Wish, left_out: list[int]) -> str:
        """A process for it; answers the name by which it is asked for."""
        self._make_room()
        self._starting += 1
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "conche.explore.worker",
                json.dumps(wish.as_dict()),
                str(os.getpid()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=LONGEST_LINE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                start_new_session=True,  # so that Ctrl-C is the server's alone
            )
        finally:
            self._starting -= 1
        name = secrets.token_urlsafe(8)
        self.known[name] = job = Job(wish, left_out, process)
        for old in [n for n, each in self.known.items() if each.state != "running"]:
            if len(self.known) > MOST_REMEMBERED:
                del self.known[old]
        watch = asyncio.create_task(_watch(job))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return name

    def _make_room(self) -> None:
        """Where as many run as may, end the one that nobody has looked at for longest."""
        running = {name: job for name, job in self.known.items() if job.state == "running"}
        if len(running) + self._starting < MOST_RUNNING:
            return
        seen, oldest = min(((job.seen, name) for name, job in running.items()), default=(0.0, ""))
        if not oldest or time.monotonic() - seen < UNWATCHED:
            raise TooManyError(
                f"{MOST_RUNNING} simulations are running: stop one of them first; one whose page "
                "is closed makes room after a minute"
            )
        self.stop(oldest)

    def look(self, name: str) -> dict[str, Any]:
        """How far it is; somebody watches it."""
        job = self.known[name]
        job.seen = time.monotonic()
        return job.as_dict()

    def stop(self, name: str) -> None:
        """End it, and keep what it has found."""
        job = self.known[name]
        if job.state == "running":
            job.state = "stopped"
            _kill(job.process)

    async def close(self) -> None:
        """End all of them."""
        for name in self.known:
            self.stop(name)
        if self._watches:
            await asyncio.wait(self._watches, timeout=2)


async def _watch(job: Job) -> None:
    """Read what the process prints, until it ends."""
    assert job.process.stdout is not None
    try:
        async for line in job.process.stdout:
            told = json.loads(line)
            job.done, job.total = told["done"], told["total"]
            job.results |= {result["n_nodes"]: result for result in told["results"]}
    except ValueError:  # a line that is too long, or no JSON
        _kill(job.process)
    status = await job.process.wait()
    if job.state == "running":
        job.state = "failed" if status else "done"
        job.why = f"the simulation ended with status {status}" if status else ""


def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
