"""What a round costs as nodes and samples grow: measured here, fitted, and said for 8, 64 and 512.

    python -m benchmarks.scaling
    python -m benchmarks.scaling workers

A round of ours and a bare round of the engine (an echo, an Allreduce) are measured in turns, for
several K and n. The model is fitted to all but the largest K, which it must then predict. Of Ray's
driver the processor's time is measured, too: alone with all workers, and at the top of a tree.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from conche.network import ray_crew
from conche.network.ray import RayNetwork

from .engines import Echo, medians, rounds

SAMPLES = (1_000, 10_000, 100_000)
NODES = (2, 4, 8)
PREDICTED = (8, 64, 512)
WORKERS = (4, 8, 16, 32, 64)


class Measured(NamedTuple):
    nodes: int
    samples: int
    ours: float  # seconds a round
    bare: float


def on_ray() -> list[Measured]:
    found = []
    for K in NODES:
        for n in SAMPLES:
            network = RayNetwork()
            ours = rounds(network, n, 2 * K, K)
            found.append(Measured(K, n, *medians(ours, echo(K, n), count=60)))
            network.close()
    import ray

    ray.shutdown()
    return found


def echo(K: int, n: int) -> Callable[[], Any]:
    """The same vector to K actors and back, by Ray alone."""
    import ray

    remote: Any = ray.remote(Echo)
    actors = [remote.options(num_cpus=0).remote() for _ in range(K)]
    g = np.random.default_rng(0).standard_normal((n, 1))

    def bare() -> None:
        sent = ray.put(g) if n > 10_000 else g
        sum(ray.get([actor.same.remote(sent) for actor in actors]))

    return bare


class Driver(NamedTuple):
    """Milliseconds of a round: on the clock, and of the driver's own processor time."""

    workers: int
    clock: float
    own: float


def of_driver(fan: int, count: int = 40) -> list[Driver]:
    """A round of n = 1,000 with so many messages from one process at most. All workers share this
    machine's cores, so the clock shows their work added up; the driver's time is its own."""
    before, ray_crew.FAN = ray_crew.FAN, fan
    found = []
    for W in WORKERS:
        network = RayNetwork()
        one = rounds(network, 1_000, 2 * W, W)
        for _ in range(5):
            one()
        clock, own = time.perf_counter(), time.process_time()
        for _ in range(count):
            one()
        clock, own = time.perf_counter() - clock, time.process_time() - own
        found.append(Driver(W, 1e3 * clock / count, 1e3 * own / count))
        network.close()
    ray_crew.FAN = before
    return found


def fitted(found: list[Driver], grows: Callable[[float], float]) -> str:
    """The driver's time: what is fixed, and what grows; least squares in relative error."""
    own = np.array([one.own for one in found])
    rows = np.array([[1.0, grows(one.workers)] for one in found])
    (fixed, each), off = nnls(rows / own[:, None], np.ones(len(own)))
    return f"{fixed:.3g} ms + {each:.3g} ms times that, {100 * off / len(own) ** 0.5:.0f} % off"


def on_workers(n: int = 10_000) -> tuple[float, float]:
    """Seconds of a round of 4 nodes on 4 workers, and of 64 on 4, two columns each, in turns."""
    few, many = RayNetwork(workers=4), RayNetwork(workers=4)
    ours, other = medians(rounds(few, n, 8, 4), rounds(many, n, 128, 64), count=100)
    few.close()
    many.close()
    return ours, other


def workers() -> None:
    few, many = on_workers()
    print(
        f"4 nodes on 4 workers {ms(few)} ms a round, 64 nodes {ms(many)}: {many / few:.2f} times\n"
    )
    star, tree = of_driver(fan=10**6), of_driver(ray_crew.FAN)
    rows = [
        [str(a.workers), *(f"{x:.3g}" for x in (a.clock, b.clock, a.own, b.own))]
        for a, b in zip(star, tree, strict=True)
    ]
    head = ["workers", "ms, all asked", "ms, tree", "driver's ms, all asked", "driver's ms, tree"]
    print(table(head, rows))
    large = [one for one in tree if one.workers > ray_crew.FAN]
    print("\ndriver, all asked, by W:", fitted(star, float))
    print("driver, tree, by log2 W:", fitted(large, np.log2))


def on_mpi() -> list[Measured]:
    """Two ranks alone: more than the machine has cores would measure its scheduler."""
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    command = [mpiexec, "-n", "2", sys.executable, "-m", "benchmarks.scaling", "rank"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    return [
        Measured(2, int(n), float(ours), float(bare))
        for n, ours, bare in map(str.split, done.stdout.splitlines())
    ]


def as_a_rank() -> None:
    from mpi4py import MPI

    from conche.network.mpi import MPINetwork

    comm = MPI.COMM_WORLD
    K = comm.Get_size()
    for n in (*SAMPLES, 1_000_000):
        g, total = np.random.default_rng(1).standard_normal((n, 1)), np.empty((n, 1))
        bare = partial(comm.Allreduce, g, total)
        ours, floor = medians(rounds(MPINetwork(), n, 2 * K, K), bare)
        if comm.Get_rank() == 0:
            print(n, ours, floor)


class Star(NamedTuple):
    """Seconds a round through one driver: fixed, a node, and a number sent to or from a node."""

    fixed: float
    node: float
    number: float

    @classmethod
    def fit(cls, found: list[Measured]) -> Star:
        rows = np.array([[1.0, m.nodes, 2.0 * m.nodes * m.samples] for m in found])
        seconds = np.array([m.ours for m in found])
        return cls(*nnls(rows / seconds[:, None], np.ones(len(found)))[0])  # relative errors

    def seconds(self, K: int, n: int) -> float:
        return self.fixed + K * (self.node + 2 * n * self.number)


class Tree(NamedTuple):
    """Seconds of a sum among ranks: log2 K messages, and each number up and down once.

    What our own round adds to the sum grows with the samples alone, not with the ranks.
    """

    message: float
    number: float
    own: float  # seconds a sample, of ours beside the sum

    @classmethod
    def fit(cls, found: list[Measured]) -> Tree:
        n, bare = np.array([[m.samples, m.bare] for m in found]).T
        rows = np.column_stack([np.ones_like(n), n])
        message, number = nnls(rows / bare[:, None], np.ones(len(n)))[0]
        own = float(np.median([(m.ours - m.bare) / m.samples for m in found if m.samples >= 1e5]))
        return cls(message, number, own)

    def seconds(self, K: int, n: int) -> float:
        sent = 2 * (K - 1) / K * n * self.number
        return float(np.log2(K)) * self.message + sent + n * self.own


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"


def report() -> None:
    ray, mpi = on_ray(), on_mpi()
    star = Star.fit([m for m in ray if m.nodes < max(NODES)])
    tree = Tree.fit(mpi)
    measured = [
        [engine, str(m.nodes), f"{m.samples:,}", ms(m.ours), ms(m.bare), f"{m.ours / m.bare:.2f}"]
        for engine, found in (("Ray", ray), ("MPI", mpi))
        for m in found
    ]
    print(table(["engine", "K", "n", "ms a round", "ms bare", "ratio"], measured))
    print(f"\nRay: {ms(star.fixed)} ms + K ({ms(star.node)} ms + 2n {1e9 * star.number:.2g} ns)")
    print(
        f"MPI: log2(K) {ms(tree.message)} ms + 2n (K-1)/K {1e9 * tree.number:.2g} ns "
        f"+ n {1e9 * tree.own:.2g} ns\n"
    )
    held = [m for m in ray if m.nodes == max(NODES)]
    checks = [[f"{m.samples:,}", ms(star.seconds(m.nodes, m.samples)), ms(m.ours)] for m in held]
    print(table([f"Ray, K = {max(NODES)}: n", "ms predicted", "ms measured"], checks), "\n")
    ahead = [
        [engine, f"{n:,}", *(ms(model.seconds(K, n)) for K in PREDICTED)]
        for engine, model in (("Ray", Star.fit(ray)), ("MPI", tree))
        for n in (*SAMPLES, 1_000_000)
    ]
    print(table(["engine", "n", *(f"ms a round, K = {K}" for K in PREDICTED)], ahead))


if __name__ == "__main__":
    {"rank": as_a_rank, "workers": workers}.get("".join(sys.argv[1:]), report)()
