"""What a round costs on an engine, against the engine's own floor for the same vectors."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import conche
from conche.network import CentralNetwork
from conche.network.ray import RayNetwork
from conche.nodes import Partition, Setup
from conche.nodes.solvers import Context, option
from conche.nodes.solvers.options import About
from conche.rounds import get_loss
from conche.rounds.objective import Objective
from conche.rounds.steps import Problem
from conche.rounds.steps.safe import Safe

from .core import Row, best

N, COLUMNS, K, ROUNDS = 100_000, 4, 2, 200


def rounds(
    network: CentralNetwork, n: int = N, columns: int = COLUMNS, K: int = K
) -> Callable[[], None]:
    """One round: direction down, images up, their sum, the step; not what is recorded of it."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, columns)), rng.standard_normal((n, 1))
    partition = Partition.make(columns, partition=[columns // K] * K)
    setup = Setup(option("exact").solver(About(columns)), partition)
    network.start(setup)
    v = network.begin(X, network.place(setup.fresh(1, X.dtype.name))).predictions
    network.factorise(Context(0, K, n, n, 1.0))
    problem, steps = Problem(Objective(get_loss("squared"), y), K, intercept=False), Safe()
    now = steps.init(problem, v, network)

    def one() -> None:
        nonlocal now
        proposal = network.propose(now.point.g)
        move = steps.move(problem, now, *proposal)
        network.accept(move.step, move.momentum)
        point = replace(now.point, v=move.v, g=problem.objective.descent(move.v))
        now = replace(now, point=point)

    return one


def medians(*calls: Callable[[], Any], count: int = ROUNDS) -> list[float]:
    """Seconds of each, taken in turns, so that whatever else the machine does meets them alike."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(count):
        for call, spent in zip(calls, times, strict=True):
            clock = time.perf_counter()
            call()
            spent.append(time.perf_counter() - clock)
    return [float(np.median(spent[10:])) for spent in times]


def on_ray() -> Iterator[Row]:
    if importlib.util.find_spec("ray") is None:
        return
    network = RayNetwork()
    ours = rounds(network)  # which starts Ray
    import ray

    echo: Any = ray.remote(Echo)
    actors = [echo.options(num_cpus=0).remote() for _ in range(K)]
    g = np.random.default_rng(0).standard_normal((N, 1))

    def bare() -> None:
        sent = ray.put(g)
        sum(ray.get([actor.same.remote(sent) for actor in actors]))

    seconds, floor = medians(ours, bare)
    network.close()
    ray.shutdown()
    what = "an echo of the same vectors"
    yield Row(f"Ray: a round, n={N:,}, K={K}", what, seconds, floor, "<= 1.3")


class Echo:
    """An actor that answers what it is asked."""

    def same(self, g: Any) -> Any:
        return g


def a_task_on_ray() -> Iterator[Row]:
    """Memory up to the rank takes three exchanges a task, where it took ten rounds of vectors."""
    if importlib.util.find_spec("ray") is None:
        return
    import ray

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10_000, 40)), rng.standard_normal(10_000)
    blocks = conche.Memory(rank=0, ridge=1.0)
    ten = conche.ConcheRegressor(4, network="ray", solver=blocks, n_rounds=10, tol=None)
    times = []
    for model in (conche.ConcheRegressor(4, network="ray"), ten):
        model.partial_fit(X, y)
        times.append(best(partial(model.partial_fit, X, y), 10))
    ours, floor = times
    ray.shutdown()
    yield Row(
        "Ray: a task of memory, n=10,000, p=40, K=4", "ten rounds of blocks", ours, floor, "< 1"
    )


def on_mpi() -> Iterator[Row]:
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if importlib.util.find_spec("mpi4py") is None or not mpiexec.exists():
        return
    command = [str(mpiexec), "-n", str(K), sys.executable, "-m", "benchmarks.engines"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    ours, floor = map(float, done.stdout.split())
    what = "a bare Allreduce and the local products"
    yield Row(f"MPI: a round, n={N:,}, K={K}", what, ours, floor, "<= 1.5")


def as_a_rank() -> None:
    """Run by every rank; the first one prints the seconds of our round and of a bare one."""
    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    comm = MPI.COMM_WORLD
    ours = rounds(MPINetwork())
    A = np.random.default_rng(0).standard_normal((N, COLUMNS // K))
    g, total = np.random.default_rng(1).standard_normal((N, 1)), np.empty((N, 1))

    def bare() -> None:
        comm.Allreduce(A @ (A.T @ g), total)

    seconds, floor = medians(ours, bare)
    if comm.Get_rank() == 0:
        print(seconds, floor)


def rows() -> Iterator[Row]:
    yield from on_ray()
    yield from a_task_on_ray()
    yield from on_mpi()


if __name__ == "__main__":
    as_a_rank()
