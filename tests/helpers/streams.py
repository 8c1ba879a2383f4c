"""Streams that several tests learn: Beijing's air and odd/even digits."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from conche import Task
from conche.common.arrays import Array

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Pair = tuple[list[Task], list[Task]]


def need(*parts: str, data: Path = DATA) -> Path:
    """A file of a data set beside the project; the test is skipped where there is none."""
    path = data.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the data set {'/'.join(parts)} is not beside the project")
    return path


def beijing(seed: int = 0, hours_ahead: int = 6, station: int = 0, data: Path = DATA) -> Pair:
    """12 stations x 11 columns, 48 months: predict one station's log PM2.5 hours ahead.

    Skewed columns are logged, all are standardised on the first year, missing entries are zero
    (the mean); a random quarter of every month is held out. Returns (train, test) tasks.
    """
    with np.load(need("beijing-air", "beijing12.npz", data=data), allow_pickle=False) as file:
        X, time, columns = file["X"].astype(float), file["time"], list(file["columns"])
    for name in ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "RAIN", "WSPM"):
        j = columns.index(name)
        X[:, :, j] = np.log1p(X[:, :, j])
    target = np.roll(X[:, station, columns.index("PM2.5")], -hours_ahead)
    target[-hours_ahead:] = np.nan
    first_year = slice(0, 365 * 24)
    X = (X - np.nanmean(X[first_year], axis=0)) / np.nanstd(X[first_year], axis=0)
    target = (target - np.nanmean(target[first_year])) / np.nanstd(target[first_year])
    X = np.nan_to_num(X.reshape(len(X), -1))
    month = time[:, 0].astype(int) * 12 + time[:, 1]
    rng = np.random.default_rng(seed)
    train: list[Task] = []
    test: list[Task] = []
    for m in np.unique(month):
        rows = rng.permutation(np.flatnonzero((month == m) & np.isfinite(target)))
        held = len(rows) // 4
        for tasks, part in ((test, rows[:held]), (train, rows[held:])):
            tasks.append(Task(X[part], target[part], name=str(m)))
    return train, test


def _idx(path: Path, header: int) -> Array:
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=header)


def mnist(seed: int = 0, n_features: int = 3000, n_samples: int = 100, n_test: int = 2000) -> Pair:
    """Section IV-F: odd against even in five tasks, through random cosine features."""
    rng = np.random.default_rng(seed)
    zeta = rng.normal(0, 0.2, size=(784, n_features))
    pairs: list[list[Task]] = []
    for prefix, n in (("train", n_samples), ("t10k", n_test)):
        images = _idx(need("mnist", f"{prefix}-images-idx3-ubyte.gz"), 16).reshape(-1, 784)
        labels = _idx(need("mnist", f"{prefix}-labels-idx1-ubyte.gz"), 8)
        tasks = []
        for even in range(0, 10, 2):
            rows = np.flatnonzero((labels == even) | (labels == even + 1))
            rows = rng.choice(rows, min(n, len(rows)), replace=False)
            X = np.cos(images[rows] / 255 @ zeta)
            tasks.append(Task(X, 1 - 2.0 * (labels[rows] % 2 == 0), name=f"{even}/{even + 1}"))
        pairs.append(tasks)
    return pairs[0], pairs[1]


def drawn(n: int, p: int, seed: int, kind: str) -> tuple[Array, Array]:
    """A task of n samples and p columns: independent, or correlated in one of three ways."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    if kind == "factors":
        X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, p)) + 0.3 * X
    elif kind == "common":
        X = 3 * rng.standard_normal((n, 1)) + X
    elif kind == "chain":
        for j in range(1, p):
            X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    return X, X @ rng.standard_normal(p) / np.sqrt(p) + 0.1 * rng.standard_normal(n)
