"""Streams: error before a task is learnt, error over all tasks in the end, forgetting, seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from conche.common.arrays import Array

from .data import STREAMS, Stream
from .learners import Learner, methods
from .measure import Measured, alone, megabytes, table

SHORT = 2.0  # seconds of learning, below which other work on the machine shows
PASSES = 2  # more of them, then


class Score(NamedTuple):
    before: float  # mean error of every task but the first, before it was learnt
    final: float  # mean error over all tasks' test samples, at the end
    forgotten: float  # by how much a task's error is above the least that it had, in the mean
    kept: int  # bytes
    path: list[tuple[float, float]]  # seconds so far, error over all tasks


def score(stream: Stream, learner: Learner) -> tuple[float, Score]:
    """One pass; the seconds are those of learning alone."""
    seconds, before, path, errors = 0.0, [], [], []
    for i, part in enumerate(stream.parts):
        if i:
            before.append(error(stream, learner.predict(part.X), part.y))
        clock = time.perf_counter()
        learner.learn(part.X, part.y)
        seconds += time.perf_counter() - clock
        if not stream.classes or i == len(stream.parts) - 1 or i % 8 == 7 or i < 3:
            now = [error(stream, learner.predict(p.X_test), p.y_test) for p in stream.parts]
            errors.append(now)
            path.append((seconds, float(np.mean(now))))
    final = np.array(errors[-1])
    least = np.min(errors, axis=0)
    done = Score(
        float(np.mean(before)),
        float(final.mean()),
        float(np.mean(final - least)),
        learner.kept(),
        path,
    )
    return seconds, done


def error(stream: Stream, found: Array, y: Array) -> float:
    wrong = found != y if stream.classes else (found - y) ** 2
    value = float(np.mean(wrong))
    return value if np.isfinite(value) else np.inf


def compare(stream: Stream) -> tuple[list[list[str]], dict[str, Any]]:
    """A row for every method, with the best of its settings."""
    best: dict[str, tuple[str, Measured]] = {}
    for name, make in methods(stream):
        found = alone(_ready(stream, make))
        own = name.partition(",")[0]
        known = best.get(own)
        if known is None or _final(found) < _final(known[1]):
            best[own] = (name, found)
    rows, paths = [], {}
    for name, m in best.values():
        if m.found is None:
            rows.append([stream.name, name, "", "", "", "", m.reason])
            continue
        s: Score = m.found
        paths[name] = s.path
        numbers = [f"{x:.4f}" if abs(x) < 1e4 else f"{x:.1e}" for x in s[:3]]
        rows.append([stream.name, name, *numbers, f"{m.seconds:.2f} s", megabytes(s.kept)])
    return rows, paths


def _ready(stream: Stream, make: Callable[[], Learner]) -> Callable[[], Callable[[], Any]]:
    def ready() -> Callable[[], Any]:
        first = stream.parts[0]
        make().learn(first.X[:50], first.y[:50])  # what is loaded at first use is loaded now
        return lambda: quickest(stream, make)

    return ready


def quickest(stream: Stream, make: Callable[[], Learner]) -> tuple[float, Score]:
    """The seconds are the least of several passes, each from nothing, where one is short."""
    seconds, found = score(stream, make())
    for _ in range(PASSES if seconds < SHORT else 0):
        learner = make()
        clock = time.perf_counter()
        for part in stream.parts:
            learner.learn(part.X, part.y)
        seconds = min(seconds, time.perf_counter() - clock)
    return seconds, found


def _final(m: Measured) -> float:
    return np.inf if m.found is None else float(m.found.final)


def run(folder: Path | None) -> dict[str, Any]:
    """Print the table; answers the paths of the figure."""
    every, paths = [], {}
    for name, make in STREAMS.items():
        try:
            stream = make(folder)
        except (ImportError, OSError) as missing:
            print(f"{name}: skipped ({missing})", flush=True)
            continue
        rows, paths[name] = compare(stream)
        every += rows
        print("\n".join(" ".join(row) for row in rows), flush=True)
    head = ["stream", "method", "before", "at the end", "forgotten", "seconds", "kept"]
    print(table(head, every), "\n", flush=True)
    return paths
