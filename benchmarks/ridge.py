"""`python -m benchmarks.ridge`: the default ridge, learnt in tasks, beside RidgeCV on all rows.

    python -m benchmarks.ridge [--data DIR] [flights] [traps] [tutorial] [streams]

Most of the data come with the packages of ``pip install 'conche[bench]'``. ``--data`` is a folder
with ``mnist`` and ``beijing-air``. What is not there is skipped with the reason. The exit status
is 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from conche.common.arrays import Array

from . import flights
from .acceptance import traps
from .peers.measure import table
from .real import STREAMS, Real
from .yardsticks import Case, Rows, indicators, learn, report, ridge_cv, squared, together

NODES = 2
FLIGHTS, DRAWN, LEARNT = 336_776, 75_000, 48_000  # of all, so many are drawn; the rest is predicted
FLIGHTS_LIMIT, TUTORIAL_LIMIT = 1.005, 1.02
STREAM_LIMIT = 1.01  # beyond two standard errors
SPLITS = 5


def over_ridge_cv(tasks: list[Rows], X: Array, y: Array) -> float:
    """Test error, over that of RidgeCV on all rows of the tasks."""
    ours = squared(learn(tasks, NODES).predict(X), y)
    return ours / squared(ridge_cv(*together(tasks)).predict(X), y)


def by_task(X: Array, y: Array, number: Array) -> list[Rows]:
    return [(X[number == i], y[number == i]) for i in np.unique(number)]


def flight_cases() -> Iterator[Case]:
    """How late flights arrive, given how late they left: of a year, at once and by month."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows = flights.with_weather(rng.permutation(FLIGHTS)[:DRAWN])
        rows = rows.iloc[rng.permutation(len(rows))]
        X, month = flights.columns(rows), rows["month"].to_numpy()
        X = np.column_stack([X, rows["dep_delay"].to_numpy(float)])
        y = rows["arr_delay"].to_numpy(float)
        (X, X_test), (y, y_test) = (np.split(part, [LEARNT]) for part in (X, y))
        theirs = squared(ridge_cv(X, y).predict(X_test), y_test)
        ways = [(X, y)], by_task(X, y, month[:LEARNT])
        found.append([squared(learn(way, NODES).predict(X_test), y_test) / theirs for way in ways])
    for way, worst in zip(("one fit", "month by month"), np.max(found, axis=0), strict=True):
        name = f"flights, {way}: error over RidgeCV's, worst of ten seeds"
        yield Case(name, float(worst), FLIGHTS_LIMIT)


def trap_cases() -> Iterator[Case]:
    yield from traps(NODES)


def electricity(rng: np.random.Generator, hours: int, season: float) -> Rows:
    """A month of the tutorial's building; the season is 1 in January and -1 in July."""
    temperature = 10 - 12 * season + 4 * rng.normal(size=hours)
    heating, cooling = np.maximum(0, 15 - temperature), np.maximum(0, temperature - 22)
    wind = rng.gamma(2, 2, size=hours)
    sun = np.maximum(0, 0.5 - 0.4 * season + 0.3 * rng.normal(size=hours))
    people = rng.poisson(30, size=hours)
    load = 40 + 3 * heating + 5 * cooling + 0.8 * wind - 6 * sun + 0.5 * people
    load = load + 2 * rng.normal(size=hours)
    X = np.column_stack([temperature, heating, cooling, wind, sun, people])
    return X.round(3), load.round(3)  # as they are in its files


def tutorial(seed: int) -> tuple[list[Rows], list[Rows]]:
    """Its year of months, to learn and to test with, drawn in the same order."""
    rng, parts = np.random.default_rng(seed), []
    for month in range(12):
        season = np.cos(2 * np.pi * month / 12)
        parts.append((electricity(rng, 500, season), electricity(rng, 200, season)))
    train, test = zip(*parts, strict=True)
    return list(train), list(test)


def tutorial_cases(seeds: Sequence[int] = range(20)) -> Iterator[Case]:
    years = [tutorial(seed) for seed in seeds]
    found = [over_ridge_cv(train, *together(test)) for train, test in years]
    name = f"the tutorial of ten minutes: error over RidgeCV's, worst of {len(seeds)} seeds"
    yield Case(name, max(found), TUTORIAL_LIMIT)


def stream_cases(data: Path | None, names: Sequence[str] = tuple(STREAMS)) -> Iterator[Case]:
    """Every stream in five splits; and a table of them in the end."""
    lines = []
    for name in names:
        try:
            real = STREAMS[name](data)
        except (ImportError, OSError) as missing:
            print(f"     {name}: skipped ({missing})", flush=True)
            continue
        found = np.array([errors(real, split) for split in range(SPLITS)])
        log = np.log(found[:, 0] / found[:, 1])
        spread = log.std(ddof=1) / np.sqrt(SPLITS)
        sizes = [f"{len(real.y):,} x {real.X.shape[1]}", str(len(np.unique(real.task)))]
        means = [f"{mean:.4g}" for mean in found.mean(axis=0)]
        lines.append([name, *sizes, *means, f"{np.exp(log.mean()):.4f}", f"{spread:.4f}"])
        what = f"{name}: error over RidgeCV's, less two standard errors"
        yield Case(what, float(np.exp(log.mean() - 2 * spread)), STREAM_LIMIT)
    head = ["stream", "rows x columns", "tasks", "Conche", "RidgeCV", "ratio", "standard error"]
    print(f"\n{table(head, lines)}")


def errors(real: Real, split: int) -> tuple[float, float]:
    """Ours and RidgeCV's; a quarter of the rows is for testing."""
    test = np.random.default_rng(split).random(len(real.y)) < 0.25
    X, y, X_test, y_test = real.X[~test], real.y[~test], real.X[test], real.y[test]
    found = learn(by_task(X, y, real.task[~test]), NODES, real.classes).predict(X_test)
    if not real.classes:
        return squared(found, y_test), squared(ridge_cv(X, y).predict(X_test), y_test)
    classes = np.unique(y)
    theirs = classes[ridge_cv(X, indicators(y, classes)).predict(X_test).argmax(axis=1)]
    return wrong(found, y_test), wrong(theirs, y_test)


def wrong(found: Array, y: Array) -> float:
    """The share; half an error more, so that there is a ratio where there is none."""
    return float((np.sum(found != y) + 0.5) / len(y))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="flights, traps, tutorial, streams; all without")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[Case]]] = {
        "flights": flight_cases,
        "traps": trap_cases,
        "tutorial": tutorial_cases,
        "streams": partial(stream_cases, given.data),
    }
    unknown = [name for name in given.parts if name not in parts]
    if unknown:
        parser.error(f"no part {unknown[0]!r}: there are {', '.join(parts)}")
    kept = True
    for name in given.parts or parts:
        clock = time.perf_counter()
        try:
            with threadpool_limits(1):
                kept &= report(parts[name]())
        except ImportError as missing:
            print(f"     {name}: skipped ({missing})")
        print(f"({name}: {time.perf_counter() - clock:.0f} s)\n", flush=True)
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
