"""Speed of the figures: against a plain pinv simulation, and projected to the paper's scale."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import conche
from conche.common.device import Cpu
from conche.paper.figures import built_in, read_spec
from conche.paper.figures.run import plan_work
from conche.paper.simulation.model import make_model
from conche.paper.simulation.rows import by_rows

from .core import Row, best

MINUTES = 60.0


def figure_4a() -> Iterator[Row]:
    """One trial of Fig. 4(a), all numbers of nodes, against the same with pinv; one thread each."""
    p, n, T = 1024, 2048, 16
    nodes = [2**i for i in range(11)]
    models = [make_model(T, n, [p // K] * K, n_shared=768) for K in nodes]
    with threadpool_limits(1):
        ours = best(lambda: by_rows(models, Cpu().draws(0, [0]), Cpu()), 3)
        plain = T * best(lambda: plain_pinv_task(n, p, nodes), 1)
    what = "Fig. 4(a), one trial: 11 numbers of nodes, 16 tasks"
    yield Row(what, "plain pinv simulation (one task of it, times 16)", ours, plain, "<= 0.05")


def plain_pinv_task(n: int, p: int, nodes: list[int]) -> None:
    """One task for every number of nodes, as one would write it first."""
    """Draw a task and learn it with every number of nodes, as Algorithm 1 is printed."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, p))
    y = A @ rng.standard_normal(p) / np.sqrt(p) + 0.1 * rng.standard_normal(n)
    for K in nodes:
        for k in range(K):
            np.linalg.pinv(A[:, k * p // K : (k + 1) * p // K]) @ y / K


def billion_columns() -> Iterator[Row]:
    """The widest blocks that we show, drawn by the directions that matter."""

    def two_trials() -> object:
        return conche.simulate(8, 500, [250_000_000] * 4, n_shared=750_000_000, trials=2)

    seconds = best(two_trials, 1)
    yield Row("p = 10^9, K = 4, n = 500, T = 8: one trial", "5 s", seconds / 2, 5.0, "<= 1")


def quick_scale() -> Iterator[Row]:
    """What a newcomer runs."""
    with tempfile.TemporaryDirectory() as folder:
        clock = time.perf_counter()
        command = [sys.executable, "-m", "conche", "reproduce", "all", "--check", "--out", folder]
        subprocess.run(command, check=True, capture_output=True)
        took = time.perf_counter() - clock
    yield Row("conche reproduce all --check (quick)", "90 s", took, 90.0, "<= 1")


def paper_scale(data: Path | None) -> Iterator[Row]:
    """Every shape of every figure, one batch of each; the rest is the same again."""
    total = 0.0
    for name in built_in():
        work = plan_work(read_spec(name, "paper"), 0, data)
        for prefix in dict.fromkeys(unit.name.split("-")[0] for unit in work.units):
            units = [u for u in work.units if u.name.split("-")[0] == prefix]
            with threadpool_limits(1):
                clock = time.perf_counter()
                units[0].run()
                took = time.perf_counter() - clock
            total += took / len(units[0].trials) * sum(len(u.trials) for u in units)
    what = "conche reproduce all --scale paper, 2 jobs (projected from one batch of each shape)"
    yield Row(what, "30 minutes", total / 2, 30 * MINUTES, "<= 1")


def rows(data: Path | None = None) -> Iterator[Row]:
    """All of them; ``data`` is the folder with MNIST's files, if any."""
    yield from figure_4a()
    yield from billion_columns()
    yield from quick_scale()
    yield from paper_scale(data)
