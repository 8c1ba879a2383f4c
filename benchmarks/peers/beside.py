"""Seconds of a stream beside adding up X^T X: in turns, in one process, over the size of tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from .data import STREAMS, Part, Stream
from .learners import Learner, Ours, Products
from .measure import table

PASSES = 7  # the least of them counts, of every method
SIZES = ((200, 20), (1000, 100), (5000, 200), (4000, 1000), (20_000, 500))
TASKS = 12


def made(n: int, p: int) -> Stream:
    """Tasks of one size, columns that are mixed, one truth."""
    rng = np.random.default_rng(0)
    w, mix = rng.standard_normal(p), np.eye(p) + rng.standard_normal((p, p)) / (2 * p**0.5)
    parts = []
    for _ in range(TASKS):
        X = rng.standard_normal((n, p)) @ mix
        y = X @ w + p**0.5 * rng.standard_normal(n)
        parts.append(Part(X, y, X[:0], y[:0]))
    return Stream("made", parts)


def seconds(stream: Stream, make: Callable[[], Learner]) -> float:
    """Of one pass, from nothing."""
    learner, clock = make(), time.perf_counter()
    for part in stream.parts:
        learner.learn(part.X, part.y)
    return time.perf_counter() - clock


def row(stream: Stream) -> list[str]:
    """Milliseconds a task, and how many times that of X^T X."""
    ways: list[Callable[[], Learner]] = [
        partial(Products, stream.classes, 1.0),
        partial(Ours, stream.classes, 1),
        partial(Ours, stream.classes, 8),
    ]
    least = [float("inf")] * len(ways)
    for _ in range(PASSES):
        least = [min(known, seconds(stream, way)) for known, way in zip(least, ways, strict=True)]
    count = len(stream.parts)
    n = sum(len(part.y) for part in stream.parts) // count
    size = f"{count} of {n:,} x {stream.parts[0].X.shape[1]:,}"
    each = [f"{1e3 * s / count:.2f} ms" for s in least]
    ratios = [f"{s / least[0]:.2f}" for s in least[1:]]
    return [stream.name, size, *each, *ratios]


def run(folder: Path | None) -> None:
    """Print the table."""
    rows = []
    for name, make in STREAMS.items():
        try:
            rows.append(row(make(folder)))
        except (ImportError, OSError) as missing:
            print(f"{name}: skipped ({missing})", flush=True)
    rows += [row(made(n, p)) for n, p in SIZES]
    head = ["stream", "tasks", "X^T X", "Conche K = 1", "K = 8", "K = 1 over X^T X", "K = 8"]
    print(table(head, rows), "\n", flush=True)
