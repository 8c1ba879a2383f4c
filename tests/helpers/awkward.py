"""1,200 streams on which double precision loses digits, and how far a model is from the reference.

The reference learns the same rows at once, with the ridge that the model says it has used.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import conche
from conche import Memory
from conche.common.arrays import Array

from .long_double import Wide, discounted, ridge_solution

pd = import_module("pandas")
STREAMS = 1200
NODES = (1, 3)
KINDS = (
    "collinear",
    "duplicates",
    "constants",
    "units",
    "means",
    "sizes",
    "rare",
    "weights",
    "late columns",
    "late classes",
    "missing",
    "few rows",
)
STRONG = 1e-7  # a ridge, as a share of a column's mean square, from which on no digit is lost
EPS = float(np.finfo(float).eps)


class Stream(NamedTuple):
    kinds: set[str]
    tasks: list[tuple[Any, Array, Array | None]]  # columns, targets, sample weights
    classes: Array | None  # all of them, where targets are labels
    ridge: float | None
    discount: float
    intercept: bool


class Apart(NamedTuple):
    """The largest distance of a prediction from the reference's, over the targets' deviation."""

    distance: float
    allowed: float


def awkward(seed: int) -> Stream:
    """One kind of trouble for certain, others by chance; 3 to 24 columns, 2 to 7 tasks."""
    rng = np.random.default_rng(seed)
    kinds = {KINDS[seed % len(KINDS)]} | {kind for kind in KINDS if rng.random() < 0.1}
    p, n_tasks, outputs = int(rng.integers(3, 25)), int(rng.integers(2, 8)), int(rng.integers(1, 4))
    most = 12 if "few rows" in kinds else 150
    mixing = np.eye(p) + rng.choice([0.0, 0.5]) * rng.standard_normal((p, p)) / np.sqrt(p)
    units, own = np.ones(p), np.ones(outputs)
    if "sizes" in kinds:
        units, own = (10.0 ** rng.uniform(-40, 40, k) for k in (p, outputs))
    means = np.zeros(p)
    if "means" in kinds:
        means = rng.choice([-1, 0, 1], p) * 10.0 ** rng.uniform(0, 5, p)
    w, noise = rng.standard_normal((p, outputs)), 10.0 ** rng.uniform(-4, 1)
    some = rng.permutation(p)  # which columns are special, and how
    tasks = []
    for t in range(n_tasks):
        n = int(rng.integers(2, most))
        Z = rng.standard_normal((n, p)) @ mixing
        if "duplicates" in kinds:
            Z[:, some[1]] = Z[:, some[2]]
        if "rare" in kinds:
            Z[:, some[:2]] *= rng.random((n, 2)) < 0.03
        if "constants" in kinds:
            Z[:, some[1]] = 0.1
            if t == 0:
                Z[:, some[2]] = 0.3
        if "collinear" in kinds:
            Z[:, some[0]] = Z[:, some[1:]].sum(axis=1) + 1e-14 * rng.standard_normal(n)
        Y = Z @ w + noise * rng.standard_normal((n, outputs))
        if "units" in kinds:
            Z = Z * 10.0 ** rng.choice([-3, 0, 3], p)
            Y = Z @ w + noise * rng.standard_normal((n, outputs))
        tasks.append(((Z + means) * units, (Y + means[:outputs]) * own, None))
    return _finished(kinds, tasks, rng)


def _finished(kinds: set[str], tasks: list[Any], rng: np.random.Generator) -> Stream:
    """With sample weights, gaps, labels and late columns, where they are meant to be, and a ridge
    that evidence chooses or that is given."""
    total, classes = 0.0, None
    cuts = np.quantile(np.concatenate([Y[:, 0] for _, Y, _ in tasks]), [0.3, 0.7])
    for t, (X, Y, _) in enumerate(tasks):
        v, columns, targets = None, X, Y if Y.shape[1] > 1 else Y[:, 0]
        if "weights" in kinds:
            v = 10.0 ** rng.uniform(-3, 3, len(X)) * (rng.random(len(X)) < 0.9)
            v[:2] = 1.0
        total += len(X) if v is None else float(v.sum())
        if "missing" in kinds:
            columns = np.where(rng.random(X.shape) < 0.2, np.nan, X)
            columns[0] = X[0]
        if "late classes" in kinds:
            every = np.digitize(Y[:, 0], cuts)
            targets = every if t else np.minimum(every, 1)  # class 2 comes with the second task
            classes = np.arange(3)
        if "late columns" in kinds:
            there = X.shape[1] if t else max(X.shape[1] // 2 + 1, max(NODES))
            names = [f"c{j}" for j in range(X.shape[1])]
            columns = pd.DataFrame(columns, columns=names).iloc[:, :there]
        tasks[t] = (columns, targets, v)
    if classes is not None:
        classes = np.unique(np.concatenate([y for _, y, _ in tasks]))
    given = 10.0 ** rng.uniform(-9, 1) * total if rng.random() < 0.5 else None
    discount, intercept = float(rng.choice([1.0, 1.0, 0.9])), bool(rng.random() < 0.8)
    return Stream(kinds, tasks, classes, given, discount, intercept)


def compared(stream: Stream, n_nodes: int) -> Apart:
    """After all tasks, on all rows."""
    kind = conche.CoCoARegressor if stream.classes is None else conche.CoCoAClassifier
    model: Any = kind(
        n_nodes,
        solver=Memory(ridge=stream.ridge, discount=stream.discount),
        scaling="standard",
        fit_intercept=stream.intercept,
        missing="mean" if "missing" in stream.kinds else "refuse",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for X, y, v in stream.tasks:
            model.partial_fit(X, y, sample_weight=v)
    X, Y, v = all_rows(stream)
    W, b = ridge_solution(X, Y, np.atleast_2d(model.ridge_), v, stream.intercept)
    theirs = X.astype(Wide) @ W.T + b
    columns: Any = X
    if "late columns" in stream.kinds:
        columns = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    ours = model.predict(columns) if stream.classes is None else model.decision_function(columns)
    deviation = np.maximum(np.std(Y.astype(Wide), axis=0), np.finfo(Wide).tiny)
    distance = np.abs(ours.reshape(theirs.shape) - theirs) / deviation
    allowed = _allowed(X, Y, v, np.atleast_2d(model.ridge_))
    worst = int(np.argmax(np.max(distance, axis=0) / allowed))
    return Apart(float(np.max(distance[:, worst])), float(allowed[worst]))


def _allowed(X: Array, Y: Array, v: Array, ridge: Array) -> Array:
    """One number an output."""
    n = v.sum()
    mean = v @ X / n
    square = v @ (X - mean) ** 2 / n
    live = square > (1e-13 * np.abs(mean)) ** 2
    if not np.any(live):
        return np.full(len(ridge), 1e-9)
    share = np.min(ridge[:, live] / (n * square[live]), axis=1)
    offset = np.max(np.abs(mean[live]) / np.sqrt(square[live]))
    weak = np.minimum(100 * EPS / share + EPS * offset, 1e-6)
    return np.asarray(np.where(share >= STRONG, 1e-9, weak).astype(float))


def all_rows(stream: Stream) -> tuple[Array, Array, Array]:
    """Columns, targets and weights of all tasks together, as a model without tasks would get them.

    A gap holds the column's mean up to and with its task. Before a column came, it was at its mean
    of the task that brought it; without an intercept, at zero.
    """
    sizes = [np.shape(X)[1] for X, _, _ in stream.tasks]
    seen, total = np.zeros(max(sizes), Wide), np.zeros(max(sizes), Wide)
    parts: list[Array] = []
    weights: list[Array] = []
    for (columns, _, own), p in zip(stream.tasks, sizes, strict=True):
        X, v = np.asarray(columns, dtype=float), np.ones(len(columns)) if own is None else own
        gaps = np.isnan(X)
        seen[:p] += v.astype(Wide) @ ~gaps
        total[:p] += v.astype(Wide) @ np.where(gaps, 0.0, X)
        new = slice(parts[-1].shape[1] if parts else p, p)
        mean = (total[:p] / seen[:p]).astype(float)
        start = mean[new] if stream.intercept else 0 * mean[new]
        parts = [np.hstack([old, np.tile(start, (len(old), 1))]) for old in parts]
        parts.append(np.where(gaps, mean, X))
        weights.append(v)
    X, y = np.vstack(parts), np.concatenate([y for _, y, _ in stream.tasks])
    if stream.classes is None:
        Y = y.reshape(len(X), -1)
    else:
        shown = stream.classes if len(stream.classes) > 2 else stream.classes[1:]
        Y = np.where(y[:, None] == shown, 1.0, -1.0)
    return X, Y, discounted(weights, stream.discount)
