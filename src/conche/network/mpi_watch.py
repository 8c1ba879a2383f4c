"""Nobody waits for ever: a rank that does not come to a sum is named, and the job ends.

Sums between ranks block. So every rank has a thread that looks at the clock: once a sum has taken
longer than the timeout it asks all other ranks how far they are. One that is stopped, or whose
machine is gone, does not answer; one that hangs says that it is behind.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from types import TracebackType
from typing import Any

import numpy as np

ASK, ANSWER = 1, 2  # tags of the two kinds of messages
LOOK = 0.25  # seconds between two looks at the clock
PATIENCE = 4.0  # seconds for answers


class Watch:
    """``with watch:`` around everything that waits for other ranks.

    Parameters
    ----------
    comm : the job's communicator; all ranks make their watch together.
    timeout : seconds that a sum may take.
    end_all : ends the job.
    """

    def __init__(self, comm: Any, timeout: float, end_all: Any):
        self.comm, self.timeout, self.end_all = comm.Dup(), timeout, end_all
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.count = 0  # sums that this rank has come to
        self.since: float | None = None  # when it came to the one that it waits in
        self._sent: list[tuple[Any, Any]] = []  # requests and their numbers, which must stay
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    def __enter__(self) -> None:
        self.count += 1
        self.since = time.monotonic()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.since = None

    def stop(self) -> None:
        """No more messages: MPI is about to end."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(LOOK):
            self._answer()
            since = self.since
            if since is not None and time.monotonic() - since > self.timeout:
                self._find()

    def _answer(self) -> None:
        """Say how far this rank is, to whoever asks."""
        status = _mpi().Status()
        while self.comm.Iprobe(tag=ASK, status=status):
            self.comm.Recv(np.empty(1), source=status.Get_source(), tag=ASK)
            self._send(float(self.count), status.Get_source(), ANSWER)

    def _send(self, number: float, rank: int, tag: int) -> None:
        """Without waiting: who is stopped takes nothing."""
        self._sent = [(request, held) for request, held in self._sent if not request.Test()]
        held = np.array([number])
        self._sent.append((self.comm.Isend(held, rank, tag), held))

    def _find(self) -> None:
        """Ask who is missing; the first of those who wait says it, and ends the job."""
        mine, others = self.count, [r for r in range(self.size) if r != self.rank]
        for rank in others:
            self._send(0.0, rank, ASK)
        known = {self.rank: float(mine)}
        until = time.monotonic() + PATIENCE
        while len(known) < self.size and time.monotonic() < until and not self._over.is_set():
            self._answer()
            status = _mpi().Status()
            while self.comm.Iprobe(tag=ANSWER, status=status):
                told = np.empty(1)
                self.comm.Recv(told, source=status.Get_source(), tag=ANSWER)
                known[status.Get_source()] = float(told[0])
            time.sleep(0.01)
        if self.since is None or self.count != mine:
            return  # it went on while we asked
        missing = [rank for rank in range(self.size) if known.get(rank, -1.0) < mine]
        if missing and self.rank == min(set(range(self.size)) - set(missing)):
            self._tell(missing, silent=missing[0] not in known)

    def _tell(self, missing: list[int], silent: bool) -> None:
        one, which = len(missing) == 1, ", ".join(map(str, missing))
        how = ("does" if one else "do") + " not answer"
        if not silent:
            how = ("is" if one else "are") + " still at work"
        print(
            f"conche: rank{'' if one else 's'} {which} {how} after {self.timeout:g} s (timeout): "
            f"the job ends; what has a checkpoint can be resumed",
            file=sys.stderr,
            flush=True,
        )
        self.end_all(2)


_watches: list[Watch] = []


def watch_of(comm: Any, timeout: float, end_all: Any) -> Watch:
    """The watch of these ranks: one for all networks of a process, since each takes a thread and a
    communicator, of which there are not many."""
    for watch in _watches:
        if _mpi().Group.Compare(watch.comm.Get_group(), comm.Get_group()) == _mpi().IDENT:
            watch.timeout = timeout
            return watch
    _watches.append(Watch(comm, timeout, end_all))
    return _watches[-1]


def _mpi() -> Any:
    return sys.modules["mpi4py.MPI"]
