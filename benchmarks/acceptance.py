"""`python -m benchmarks.acceptance`: what the default ridge has to stand, each with its limit.

    python -m benchmarks.acceptance [--data DIR] [--nodes 1 4]

``--data`` is a folder with ``mnist`` and ``beijing-air``; their cases are skipped without it. The
exit status is 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from conche.common.arrays import Array
from conche.tasks import read_idx

from .yardsticks import (
    Case,
    Rows,
    indicators,
    learn,
    report,
    ridge_cv,
    ridge_path,
    squared,
    together,
)

Stream = tuple[list[Rows], list[Rows]]  # to learn, and to test with
Draw = Callable[..., Rows]
SEEDS = range(10)
WORST = "over RidgeCV, worst"
EQUAL = 1e-8  # of the target's variance: errors below it are equal


def ridges(least: float, most: float) -> Array:
    """Of correlations, that is over the number of rows, in half decades."""
    return 10.0 ** np.arange(least, most + 0.1, 0.5)


def line(rng: np.random.Generator, p: int = 20) -> Draw:
    """Samples of one truth of p independent columns."""
    w = rng.standard_normal(p)

    def draw(n: int, noise: float = 1.0, scale: float = 1.0) -> Rows:
        X = rng.standard_normal((n, p)) * scale
        return X, X @ w + noise * rng.standard_normal(n)

    return draw


# --- a first task that misleads, against RidgeCV on all rows ---


def trapped(
    first: Callable[[Draw], Rows], noise: float, n_nodes: int, seeds: Sequence[int]
) -> float:
    """The worst seed's test error over RidgeCV's: a first task, then five honest ones."""
    found = []
    for seed in seeds:
        draw = line(np.random.default_rng(seed))
        tasks = [first(draw)] + [draw(100, noise) for _ in range(5)]
        X, y = draw(3000, noise)
        ours = squared(learn(tasks, n_nodes).predict(X), y)
        found.append(ours / squared(ridge_cv(*together(tasks)).predict(X), y))
    return max(found)


def traps(n_nodes: int, seeds: Sequence[int] = SEEDS) -> Iterator[Case]:
    for noise in (1.0, 0.1, 0.01):
        found = trapped(partial(shorter, noise=noise), noise, n_nodes, seeds)
        yield Case(f"columns x 1e-3 in the first task, noise {noise}: {WORST}", found, 1.02)
    for factor in (1e3, 1e4, 1e5):
        found = trapped(partial(longer, factor=factor), 1.0, n_nodes, seeds)
        yield Case(f"one honest sample x {factor:g} in a first task of 30: {WORST}", found, 1.02)
    for value, limit in ((100.0, 1.1), (1e3, 1.35)):
        found = trapped(partial(mistaken, value=value), 1.0, n_nodes, seeds)
        yield Case(f"one target of {value:g} in a first task of 30: {WORST}", found, limit)


def shorter(draw: Draw, noise: float) -> Rows:
    return draw(100, noise, 1e-3)


def longer(draw: Draw, factor: float) -> Rows:
    X, y = draw(30)
    X[-1] *= factor
    y[-1] *= factor
    return X, y


def mistaken(draw: Draw, value: float) -> Rows:
    X, y = draw(30)
    y[-1] = value
    return X, y


# --- what must make no difference ---


def orders(n_nodes: int, seeds: Sequence[int] = range(6)) -> Iterator[Case]:
    found = []
    for noise in (0.0, 0.1, 1.0, 5.0):
        for n in (30, 300):
            found += [reordered(n, noise, seed, n_nodes) for seed in seeds]
    name = "the same rows in other orders and tasks: predictions over their deviation, worst"
    yield Case(name, max(found), 1e-7)


def reordered(n: int, noise: float, seed: int, n_nodes: int, p: int = 40) -> float:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.5 * rng.standard_normal((p, p)))
    y = X @ rng.standard_normal(p) / 6 + noise * rng.standard_normal(n)
    X_test, found = rng.standard_normal((300, p)), []
    for _ in range(4):
        rows = rng.permutation(n)
        cuts = np.sort(rng.choice(np.arange(1, n), rng.integers(1, 15), replace=False))
        tasks = list(zip(np.split(X[rows], cuts), np.split(y[rows], cuts), strict=True))
        found.append(learn(tasks, n_nodes).predict(X_test))
    return float(np.max(np.std(found, axis=0)) / np.std(found[0]))


def plain(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """200 x 15, with noise; and columns to predict."""
    X = rng.standard_normal((200, 15))
    y = X @ rng.standard_normal(15) + rng.standard_normal(200)
    return X, y, rng.standard_normal((200, 15))


def in_two(X: Array, y: Array, n_nodes: int) -> Any:
    return learn([(X[:50], y[:50]), (X[50:], y[50:])], n_nodes)


def units(n_nodes: int, seeds: Sequence[int] = SEEDS) -> Iterator[Case]:
    scaled, moved = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, y, X_test = plain(rng)
        found = in_two(X, y, n_nodes).predict(X_test)
        u, v = 10.0 ** rng.uniform(-30, 30, 15), 10.0 ** rng.uniform(-30, 30)
        other = in_two(X * u, y * v, n_nodes).predict(X_test * u) / v
        scaled.append(np.abs(found - other).max() / found.std())

        rng = np.random.default_rng(seed)
        X, y, X_test = plain(rng)
        by = 1e6 * rng.standard_normal(15)
        other = in_two(X + by, y + 1e6, n_nodes).predict(X_test + by) - 1e6
        moved.append(np.abs(found - other).max() / np.std(y))
    yield Case(
        "units from 1e-30 to 1e30: predictions over their deviation, worst", max(scaled), 1e-11
    )
    yield Case("columns and target moved by 1e6: predictions over it, worst", max(moved), 1e-7)


# --- tasks that share a part of the truth, against the best fixed ridge ---


def model(
    rng: np.random.Generator,
    p: int,
    T: int,
    n: int,
    shared: int,
    noise: float,
    corr: float = 0.0,
    outputs: int = 1,
) -> Stream:
    """T tasks; the tests have no noise, so that their error is what is in excess."""
    lags = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    root = np.linalg.cholesky(corr**lags) if corr else None
    common = rng.standard_normal((p, outputs)) / np.sqrt(p)
    variance = noise * (10.0 ** np.linspace(-1.5, 1.5, outputs) if outputs > 1 else np.ones(1))
    train, test = [], []

    def draw(w: Array, samples: int) -> Rows:
        X = rng.standard_normal((samples, p))
        X = X if root is None else X @ root.T
        return X, X @ w + rng.standard_normal((samples, outputs)) * np.sqrt(variance)

    for _ in range(T):
        w = common.copy()
        w[shared:] = rng.standard_normal((p - shared, outputs)) / np.sqrt(p)
        train.append(draw(w, n))
        X, _ = draw(w, max(400, 2000 // T))
        test.append((X, X @ w))
    if outputs == 1:
        train, test = ([(X, y[:, 0]) for X, y in part] for part in (train, test))
    return train, test


def over_the_best(stream: Stream, n_nodes: int, given: Array, noise: float = 0.0) -> float:
    """Test error over that of the best of the ridges that are given, with noise to both."""
    (X, y), test = together(stream[0]), stream[1]
    X_test, y_test = together(test)
    ours = squared(learn(stream[0], n_nodes).predict(X_test), y_test)
    paths = ridge_path(X, y, X_test, given * len(X))
    return (ours + noise) / (min(squared(found, y_test) for found in paths) + noise)


MODELS: list[tuple[tuple[Any, ...], float]] = [  # p, T, n, shared, noise, corr; the limit
    ((64, 8, 4, 64, 1.0), 1.1),
    ((64, 8, 8, 64, 0.01), 1.25),
    ((64, 8, 8, 64, 1.0), 1.05),
    ((64, 8, 16, 64, 1e-4), 1.05),
    ((64, 8, 64, 64, 1e-4), 1.02),
    ((64, 8, 64, 64, 10.0), 1.02),
    ((100, 10, 5, 100, 0.01, 0.9), 1.05),
    ((100, 10, 10, 100, 1.0, 0.95), 1.05),
    ((100, 10, 40, 100, 0.01, 0.95), 1.03),
]


def models(n_nodes: int, seeds: Sequence[int] = range(8)) -> Iterator[Case]:
    for sizes, limit in MODELS:
        streams = (model(np.random.default_rng(seed), *sizes) for seed in seeds)
        found = [over_the_best(each, n_nodes, ridges(-8, 2), sizes[4]) for each in streams]
        name = f"p, T, n, shared, noise, corr = {sizes}: over the best ridge, median"
        yield Case(name, float(np.median(found)), limit)


def outputs(n_nodes: int, seeds: Sequence[int] = range(6)) -> Iterator[Case]:
    """Each its own ridge: better than any that they share."""
    sizes = (100, 10, 40, 100, 0.1, 0.0, 10)
    streams = (model(np.random.default_rng(seed), *sizes) for seed in seeds)
    found = [over_the_best(each, n_nodes, ridges(-6, 2)) for each in streams]
    name = "10 outputs, noise from 10^-2.5 to 10^0.5: over the best shared ridge, worst"
    yield Case(name, max(found), 0.95)


# --- least squares, nothing to learn, next to no rows, the same rows again ---


def noiseless(n_nodes: int, seeds: Sequence[int] = range(5)) -> Iterator[Case]:
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        mix = rng.standard_normal((20, 64))
        X = rng.standard_normal((500, 20)) @ mix
        y = X @ rng.standard_normal(64)
        wrong = learn([(X[:100], y[:100]), (X[100:], y[100:])], n_nodes).predict(X) - y
        found.append(np.abs(wrong).max() / y.std())
    name = "no noise, rank 20 of 64 columns, 500 rows: predictions over their deviation, worst"
    yield Case(name, max(found), 1e-6)


def difference(rng: np.random.Generator, n: int = 230) -> Rows:
    """Two counts at ten places on ten days, indicators of both; the target is what is between."""
    place, day = rng.integers(10, size=n), rng.integers(10, size=n)
    level = 10.0 ** rng.uniform(1, 5, 10)[place]
    first = np.round(level * (1 + 0.1 * rng.standard_normal(n)))
    second = np.round(first - 0.02 * level * rng.standard_normal(n))
    indicators = [np.eye(10)[kind] for kind in (place, day)]
    return np.column_stack([first, second, *indicators]), first - second


def exact_difference(n_nodes: int, seeds: Sequence[int] = SEEDS) -> Iterator[Case]:
    """30 rows are enough for least squares, and any ridge that shows is too strong."""
    found = []
    for seed in seeds:
        X, y = difference(np.random.default_rng(seed))
        X, y, X_test, y_test = X[:30], y[:30], X[30:], y[30:]
        floor = EQUAL * np.var(y_test)
        ours = squared(learn([(X, y)], n_nodes).predict(X_test), y_test)
        alphas = np.append(ridges(-10, 2) * len(X), 0.0)
        best = min(squared(each, y_test) for each in ridge_path(X, y, X_test, alphas))
        found.append((ours + floor) / (best + floor))
    name = "the difference of two nearly equal columns, 30 x 22: over the best ridge or none, worst"
    yield Case(name, max(found), 1.25)


def no_signal(n_nodes: int, seeds: Sequence[int] = SEEDS) -> Iterator[Case]:
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((200, 40)), rng.standard_normal(200)
        found.append(
            1
            + squared(
                learn([(X, y)], n_nodes).predict(rng.standard_normal((1000, 40))), np.zeros(1000)
            )
        )
    yield Case("no signal, 200 x 40: error over that of zero, worst", max(found), 1.05)


def few_rows(n_nodes: int, seeds: Sequence[int] = SEEDS) -> Iterator[Case]:
    found = []
    for n in (2, 3, 4):
        for seed in seeds:
            rng = np.random.default_rng(seed)
            w, X = rng.standard_normal(64) / 8, rng.standard_normal((n, 64))
            y = X @ w + 0.5 * rng.standard_normal(n)
            X_test = rng.standard_normal((500, 64))
            truth = X_test @ w
            ours = squared(learn([(X, y)], n_nodes).predict(X_test), truth)
            found.append((ours + 0.25) / (squared(y.mean(), truth) + 0.25))
    name = "2, 3 and 4 rows of 64 columns: error over the mean's, median"
    yield Case(name, float(np.median(found)), 1.1)


def repeats(n_nodes: int, seeds: Sequence[int] = SEEDS) -> Iterator[Case]:
    """The rows of a task that comes again count once, or no noise would be left in them."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        w, X = rng.standard_normal(64) / 8, rng.standard_normal((64, 64))
        task = X, X @ w + 0.5 * rng.standard_normal(64)
        X_test = rng.standard_normal((1000, 64))
        once, often = (learn([task] * times, n_nodes).predict(X_test) for times in (1, 5))
        found.append((squared(often, X_test @ w) + 0.25) / (squared(once, X_test @ w) + 0.25))
    name = "64 rows x 64 columns as five tasks: error over that of once, worst"
    yield Case(name, max(found), 1.001)


# --- real streams ---


FILES = ("images-idx3", "labels-idx1")
DIGITS = (
    (500, 200, 1.03),
    (500, 500, 1.05),
    (500, 3000, 1.03),
    (1000, 1000, 1.03),
    (1000, 3000, 1.03),
)


def digits(folder: Path, p: int, n: int) -> Stream:
    """Two new digits a task, p cosine features."""
    images, labels = (read_idx(folder / f"train-{kind}-ubyte.gz") for kind in FILES)
    tests, test_labels = (read_idx(folder / f"t10k-{kind}-ubyte.gz") for kind in FILES)
    rng = np.random.default_rng(5)
    rows = rng.permutation(len(labels))[:n]
    W, phase = rng.standard_normal((784, p)) * 0.1, rng.uniform(0, 2 * np.pi, p)
    X, X_test = (np.cos(part.reshape(-1, 784) / 255 @ W + phase) for part in (images[rows], tests))
    y = labels[rows].astype(int)
    tasks = [(X[y // 2 == pair], y[y // 2 == pair]) for pair in range(5)]
    return tasks, [(X_test, test_labels.astype(int))]


def class_incremental(n_nodes: int, data: Path) -> Iterator[Case]:
    for p, n, limit in DIGITS:
        tasks, [(X_test, y_test)] = digits(data / "mnist", p, n)
        ours = np.mean(learn(tasks, n_nodes, classes=True).predict(X_test) != y_test)
        X, y = together(tasks)
        paths = ridge_path(X, indicators(y, np.arange(10)), X_test, ridges(-6, 1.5) * n)
        best = min(np.mean(found.argmax(axis=1) != y_test) for found in paths)
        name = f"MNIST, two digits a task, {p} features, {n} rows: errors over the best ridge's"
        yield Case(name, float(ours / best), limit)


def air(folder: Path, station: int = 7, hours: int = 3) -> Stream:
    """48 months of twelve stations: one station's log PM2.5 some hours ahead.

    Gaps are filled by what was last known; a quarter of the hours is for testing.
    """
    with np.load(folder / "beijing12.npz", allow_pickle=False) as file:
        X, time = file["X"].astype(float), file["time"]
    n = len(X)
    X = X.reshape(n, -1)
    for column in X.T:
        known = np.maximum.accumulate(np.where(np.isnan(column), 0, np.arange(n)))
        column[:] = column[known]
        column[np.isnan(column)] = np.nanmedian(column)
    X = X.reshape(n, -1, 11)
    skewed = [0, 1, 2, 3, 4, 5, 9]  # pollutants and rain
    X[:, :, skewed] = np.log1p(np.maximum(X[:, :, skewed], 0))
    y, X = X[hours:, station, 0], X[:-hours].reshape(n - hours, -1)
    month = (time[hours:, 0].astype(int) - 2013) * 12 + time[hours:, 1] - 3
    held = np.random.default_rng(5).random(len(y)) < 0.25
    parts = [[(X[r], y[r]) for t in range(48) for r in [(month == t) & of]] for of in (~held, held)]
    return parts[0], parts[1]


def beijing(n_nodes: int, data: Path) -> Iterator[Case]:
    train, test = air(data / "beijing-air")
    ours = learn(train, n_nodes)
    X, y = together(train)
    sizes = np.cumsum([len(month) for _, month in test])[:-1]

    def error(found: Array) -> float:
        """Months count alike."""
        months = zip(np.split(found, sizes), test, strict=True)
        return float(np.mean([squared(part, y) for part, (_, y) in months]))

    X_test = together(test)[0]
    best = min(error(found) for found in ridge_path(X, y, X_test, ridges(-8, 1) * len(X)))
    name = "Beijing, station 7, 3 hours ahead, 48 months: over the best ridge"
    yield Case(name, error(ours.predict(X_test)) / best, 1.005)


MADE = (
    *(traps, orders, units, models, outputs, noiseless, exact_difference),
    *(no_signal, few_rows, repeats),
)
REAL = (class_incremental, beijing)


def cases(n_nodes: int, data: Path | None) -> Iterator[Case]:
    made = (group(n_nodes) for group in MADE)
    real = (group(n_nodes, data) for group in REAL if data)
    return chain.from_iterable(chain(made, real))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 4])
    given = parser.parse_args()
    kept = True
    for n_nodes in given.nodes:
        print(f"\n{n_nodes} node{'s' * (n_nodes > 1)}", flush=True)
        with threadpool_limits(1):
            kept &= report(cases(n_nodes, given.data))
    if given.data is None:
        print("\nMNIST and Beijing: skipped (--data is not given)")
    sys.exit(0 if kept else 1)


if __name__ == "__main__":
    main()
