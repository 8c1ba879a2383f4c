"""What secure sums cost: a round and a task, against the same without them.

python -m benchmarks.secure
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import conche
from conche.common.arrays import Array
from conche.network.ray import RayNetwork

from .engines import medians, rounds
from .scaling import ms, table

SAMPLES = (1_000, 10_000, 100_000)
RANKS = 2  # as many as there are cores here


class Counted:
    """A communicator that counts what this rank gives away."""

    def __init__(self, comm: Any):
        self.comm, self.bytes = comm, 0

    def Allreduce(self, own: Array, total: Array, **options: Any) -> None:
        self.bytes += own.nbytes
        self.comm.Allreduce(own, total, **options)

    def Allgatherv(self, own: Array, total: Any) -> None:
        self.bytes += own.nbytes
        self.comm.Allgatherv(own, total)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)


def on_ray(K: int = 4) -> list[list[str]]:
    """A round of K workers, in turns."""
    found = []
    for n in SAMPLES:
        plain, secure = RayNetwork(), RayNetwork(secure=True)
        ours, hidden = medians(rounds(plain, n, 2 * K, K), rounds(secure, n, 2 * K, K), count=60)
        found.append(["Ray", str(K), f"{n:,}", ms(ours), ms(hidden), f"{hidden / ours:.2f}", ""])
        plain.close()
        secure.close()
    return found


def as_a_rank() -> None:
    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    comm = MPI.COMM_WORLD
    K = comm.Get_size()
    for n in (*SAMPLES, 1_000_000):
        counts = [Counted(comm), Counted(comm)]
        networks = [MPINetwork(counts[0]), MPINetwork(counts[1], secure=True)]
        calls: list[Callable[[], None]] = [rounds(one, n, 2 * K, K) for one in networks]
        for one in calls:
            one()
        before = [count.bytes for count in counts]
        ours, hidden = medians(*calls, count=100)
        sent = [count.bytes - first for count, first in zip(counts, before, strict=True)]
        if comm.Get_rank() == 0:
            print("MPI", K, f"{n:,}", ms(ours), ms(hidden), f"{hidden / ours:.2f}", end=" ")
            print(f"{sent[1] / sent[0]:.3f}")


def tasks_on_a_rank() -> None:
    """Whole streams of five tasks: seconds and bytes of this rank, after a first stream."""
    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    comm, K = MPI.COMM_WORLD, 4
    solvers: dict[str, Any] = {
        "exact, 10 rounds": dict(solver="exact", n_rounds=10),
        "damped, cg, 10 rounds": dict(solver="damped", steps="cg", n_rounds=10),
        "memory, blocks alone": dict(
            solver=conche.Memory(rank=0), steps="cg", n_rounds=30, tol=1e-6
        ),
        "memory, 40 directions": dict(
            solver=conche.Memory(rank=40), steps="cg", n_rounds=30, tol=1e-6
        ),
        "memory, lossless by sums": dict(solver=conche.Memory(), steps="cg", n_rounds=30, tol=1e-6),
        "memory, its default": dict(solver="memory", steps="cg", n_rounds=30, tol=1e-6),
    }
    tasks = conche.gaussian_tasks(5, 2_000, 200, n_shared=150, noise_var=0.1)
    for name, options in solvers.items():
        seconds, sent = [], []
        for secure in (False, True):
            count = Counted(comm)
            network = MPINetwork(count, secure=secure)
            best = np.inf
            for _ in range(3):
                model = conche.CoCoARegressor(K, network=network, **options)
                before, clock = count.bytes, time.perf_counter()
                for task in tasks:
                    model.partial_fit(task.X, task.y)
                best = min(best, time.perf_counter() - clock)
            seconds.append(best)
            sent.append(count.bytes - before)
        if comm.Get_rank() == 0:
            times, more = seconds[1] / seconds[0], sent[1] / sent[0]
            print(f"{name};{ms(seconds[0])};{ms(seconds[1])};{times:.2f};{more:.3f}")


def ranks(what: str) -> list[str]:
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    command = [mpiexec, "-n", str(RANKS), sys.executable, "-m", "benchmarks.secure", what]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return done.stdout.splitlines()


def report() -> None:
    head = ["engine", "workers", "n", "ms a round", "ms, secure", "times", "bytes, times"]
    print(table(head, [line.split() for line in ranks("rank")] + on_ray()), "\n")
    head = ["five tasks, n = 2,000, p = 200, K = 4, 2 ranks", "ms", "ms, secure", "times", "bytes"]
    print(table(head, [line.split(";") for line in ranks("tasks")]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    {"rank": as_a_rank, "tasks": tasks_on_a_rank}.get("".join(sys.argv[1:]), report)()
