"""Streams that memory must not fail on: spectra of all kinds, arriving classes, rare columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

import conche
from conche import Memory, Task
from conche.common.arrays import Array
from conche.tasks import correlated
from conche.tasks.mnist import read_idx

from .reference import ridge_solution
from .streams import DATA, Pair, need

KINDS = ("independent", "factors", "heavy tails", "means", "toeplitz", "subspaces", "disjoint")


class Stream(NamedTuple):
    train: list[Task]
    test: list[Task]


def hard(kind: str, p: int, n_tasks: int, n: int, noise: float, seed: int = 0) -> Stream:
    """Linear tasks with one truth, whose columns hang together in some awkward way.

    Test tasks have the columns' distribution of their task (the same subspace, the same support).
    """
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(p) / np.sqrt(p)
    common = rng.standard_normal((20, p))
    train: list[Task] = []
    test: list[Task] = []
    for t in range(n_tasks):
        own = rng.standard_normal((p // 8, p)) / np.sqrt(p / 8)
        for tasks, rows in ((train, n), (test, 400)):
            X = rng.standard_normal((rows, p))
            if kind == "factors":
                X = rng.standard_normal((rows, 20)) @ common + 0.3 * X
            elif kind == "heavy tails":
                X = rng.standard_t(2.1, (rows, p))
            elif kind == "means":
                X = X + 3
            elif kind == "toeplitz":
                X = correlated(X, 0.95)
            elif kind == "subspaces":
                X = rng.standard_normal((rows, p // 8)) @ own
            elif kind == "disjoint":
                X[:, np.arange(p) * n_tasks // p != t] = 0
            tasks.append(Task(X, X @ w + noise * rng.standard_normal(rows)))
    return Stream(train, test)


def class_incremental(
    n_features: int,
    *,
    n_samples: int | None = None,
    n_tasks: int = 5,
    seed: int = 0,
    data: Path = DATA,
) -> tuple[list[tuple[Array, Array]], tuple[Array, Array]]:
    """MNIST sorted by class, in tasks of equal size, one pass, through random cosine features.

    Answers the tasks, and the test set: features and labels.
    """
    folder = need("mnist", data=data)
    (X, y), (X_test, y_test) = (
        (read_idx(folder / f"{part}-images-idx3-ubyte.gz").reshape(n, -1) / 255, labels)
        for part, n, labels in (
            (part, len(labels), labels)
            for part in ("train", "t10k")
            for labels in [read_idx(folder / f"{part}-labels-idx1-ubyte.gz")]
        )
    )
    rng = np.random.default_rng(seed)
    W, shift = 0.1 * rng.standard_normal((784, n_features)), rng.uniform(0, 2 * np.pi, n_features)
    chosen = rng.permutation(len(y))[:n_samples]
    order = chosen[np.argsort(y[chosen], kind="stable")]
    if n_tasks == 5:
        parts = [order[y[order] // 2 == t] for t in range(5)]
    else:
        parts = np.array_split(order, n_tasks)
    tasks = [(np.cos(X[part] @ W + shift), y[part]) for part in map(rng.permutation, parts)]
    return tasks, (np.cos(X_test @ W + shift), y_test)


def rare_columns(
    seed: int = 0, p: int = 10_000, n_tasks: int = 8, n: int = 500, words: int = 60
) -> Pair:
    """Zeros and ones whose columns are as frequent as words are (Zipf): most are rare."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, p + 1)
    share /= share.sum()
    w = rng.standard_normal(p)

    def draw(rows: int) -> Task:
        which = rng.choice(p, (rows, words), p=share)
        where = np.repeat(np.arange(rows), words)
        X = sparse.csr_array((np.ones(rows * words), (where, which.ravel())), shape=(rows, p))
        X.data[:] = 1.0
        signal = np.asarray(X @ w)
        return Task(X, signal / np.sqrt(words) + rng.standard_normal(rows))

    return [draw(n) for _ in range(n_tasks)], [draw(400) for _ in range(n_tasks)]


def exactness(seed: int) -> Iterator[tuple[float, int]]:
    """How far predictions are from offline's, and rounds, after every task of an awkward stream."""
    rng = np.random.default_rng(seed)
    p, outputs = int(rng.integers(2, 60)), int(rng.integers(1, 4))
    n_nodes, n_tasks = int(rng.integers(1, p + 1)), int(rng.integers(2, 9))
    common, ridge = rng.choice([0, 0.5, 0.9, 0.99, 0.999]), 10 ** rng.uniform(-2, 2)
    scale, intercept = 10 ** rng.uniform(-1.5, 1.5, p), bool(rng.integers(2))
    constant, zero, double = rng.random(p) < 0.1, rng.random(p) < 0.1, rng.integers(0, p, p // 6)
    w = rng.standard_normal((p, outputs))
    model = conche.ConcheRegressor(
        n_nodes=n_nodes, solver=Memory(ridge=ridge), fit_intercept=intercept, scaling=None
    )
    seen: list[tuple[Array, Array]] = []
    for _ in range(n_tasks):
        n = int(np.exp(rng.uniform(0, np.log(400))))
        Z = common**0.5 * rng.standard_normal((n, 1))
        Z = Z + (1 - common) ** 0.5 * rng.standard_normal((n, p))
        Z[:, constant], Z[:, zero] = 1.0, 0.0
        Z[:, double] = Z[:, (double + 1) % p]
        Y = Z @ w + 0.1 * rng.standard_normal((n, outputs))
        model.partial_fit(Z * scale, Y if outputs > 1 else Y[:, 0])
        seen.append((Z * scale, Y))
        A, targets = (np.vstack(part) for part in zip(*seen, strict=True))
        means = (A.mean(axis=0), targets.mean(axis=0)) if intercept else (0.0, 0.0)
        offline = (A - means[0]) @ ridge_solution(A - means[0], targets - means[1], ridge) + means[
            1
        ]
        ours = model.predict(A).reshape(offline.shape)
        last = model.history_[-1]["round"]
        yield float(np.linalg.norm(ours - offline) / np.linalg.norm(offline)), last
