"""Seconds as a plan foresees them, against what training takes: `python -m benchmarks.plan`."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import conche
from conche.common.arrays import Array, even_sizes
from conche.network.ray import RayNetwork
from conche.nodes.solvers.options import About, default_rank
from conche.planner import cost
from conche.planner.traffic import Stream

from .core import Row


class Case(NamedTuple):
    """A stream of tasks of n samples."""

    p: int
    n: int
    K: int
    first: bool = False  # whether its first task is measured, or later ones
    rank: int | None = None
    network: str = "local"


LOCAL = [
    Case(16, 512, 1),
    Case(64, 2048, 8),
    Case(132, 550, 12),
    Case(256, 512, 8),
    Case(256, 512, 8, first=True),
    Case(256, 8192, 4),
    Case(1024, 2048, 8),
    Case(1024, 512, 8, first=True),
    Case(2000, 512, 16),
    Case(600, 400, 4, rank=100),
    Case(1500, 1000, 8, rank=300),
    Case(3000, 1000, 4, first=True, rank=600),
]
RAY = [
    Case(16, 512, 2, network="ray"),
    Case(256, 2048, 2, network="ray"),
    Case(256, 2048, 4, network="ray"),
    Case(1024, 2048, 4, network="ray"),
    Case(132, 550, 8, network="ray"),
]


def rows() -> Iterator[Row]:
    """The worst of all cases; `main` has every one."""
    kinds = {"local": LOCAL}
    if importlib.util.find_spec("ray") is not None:
        kinds["Ray"] = RAY
    for name, cases in kinds.items():
        pairs = [both(case) for case in cases]
        ours, real = max(pairs, key=lambda pair: abs(np.log(pair[0] / pair[1])))
        yield Row(
            f"seconds of a task on {name} as `conche plan` foresees them, the worst of "
            f"{len(cases)} streams",
            "what it took",
            ours,
            real,
            "2/3 to 1.5",
        )


def both(case: Case) -> tuple[float, float]:
    """Foreseen, and measured: the median of the last tasks."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal(case.p) / case.p**0.5
    later = 1 if case.first else 5
    rank = default_rank(About(case.p)) if case.rank is None else case.rank
    network = RayNetwork() if case.network == "ray" else "local"
    took, rounds = [], 1
    for _ in range(3 if case.first else 1):
        solver = conche.Memory(rank=rank)
        model = conche.ConcheRegressor(case.K, solver=solver, network=network)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a small rank loses, and says so
            sizes = [] if case.first else [case.n, min(case.n, 64)]
            for n in (*sizes, *[case.n] * later):
                model.partial_fit(*_task(rng, n, w))
        took += [task["seconds"] for task in model.tasks_[-later:]]
        rounds = sum(each["task"] == len(model.tasks_) for each in model.history_)
    if isinstance(network, RayNetwork):
        network.close()
    ns = np.full(1 if case.first else 2, case.n)
    stream = Stream(even_sizes(case.p, case.K), ns, rank, case.network != "local")
    return cost.seconds(stream, cost.WIRES[case.network], rounds), float(np.median(took))


def _task(rng: np.random.Generator, n: int, w: Array) -> tuple[Array, Array]:
    X = rng.standard_normal((n, len(w)))
    return X, X @ w + 0.3 * rng.standard_normal(n)


def main() -> None:
    print("| network | p | n | K | rank | task | foreseen | took | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in (*LOCAL, *RAY):
        ours, real = both(case)
        rank = "all" if case.rank is None else case.rank
        which = "first" if case.first else "later"
        sizes = f"{case.network} | {case.p} | {case.n} | {case.K} | {rank} | {which}"
        times = f"{1e3 * ours:.1f} ms | {1e3 * real:.1f} ms | {ours / real:.2f}"
        print(f"| {sizes} | {times} |", flush=True)


if __name__ == "__main__":
    main()
