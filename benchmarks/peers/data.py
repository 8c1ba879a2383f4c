"""Streams that all methods learn: real ones where their data are at hand, and two that are made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from conche.common.arrays import Array
from conche.tasks import CosineFeatures, read_idx
from tests.helpers.streams import beijing

from ..flights import columns, delays, with_weather

EVERY = 5  # of the flights, one is taken


class Part(NamedTuple):
    """A task's samples, to learn and to test with."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


class Stream(NamedTuple):
    """Tasks in order; labels 0, 1, ... where they are to be told apart."""

    name: str
    parts: list[Part]
    classes: int = 0


def split(X: Array, y: Array, rng: np.random.Generator) -> Part:
    """A quarter is held out."""
    rows = rng.permutation(len(y))
    test, train = rows[: len(y) // 4], rows[len(y) // 4 :]
    return Part(X[train], y[train], X[test], y[test])


def air(folder: Path | None) -> Stream:
    train, test = beijing() if folder is None else beijing(data=folder)
    pairs = zip(train, test, strict=True)
    return Stream("Beijing", [Part(a.X, a.y, b.X, b.y) for a, b in pairs])


def flights(folder: Path | None) -> Stream:
    """A month a task: how late a flight arrives, from what is known before it leaves."""
    table = with_weather(slice(None, None, EVERY))
    X, y = columns(table), delays(table)
    rng, month = np.random.default_rng(0), table["month"].to_numpy()
    parts = [split(X[month == m], y[month == m], rng) for m in range(1, 13)]
    return Stream("flights", [_scaled(part, parts[0].X) for part in parts])


def _scaled(part: Part, first: Array) -> Part:
    """By the first task, for all methods alike."""
    centre, scale = first.mean(axis=0), first.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    return part._replace(X=(part.X - centre) / scale, X_test=(part.X_test - centre) / scale)


def digits(folder: Path | None) -> Stream:
    """Two new digits a task, 1,000 cosine features."""
    if folder is None:
        raise ImportError("--data is not given", name="MNIST")
    images = {}
    for name in ("train", "t10k"):
        pixels = read_idx(folder / "mnist" / f"{name}-images-idx3-ubyte.gz")
        labels = read_idx(folder / "mnist" / f"{name}-labels-idx1-ubyte.gz").astype(int)
        images[name] = (pixels.reshape(len(pixels), -1) / 255, labels)
    X, y = (part[:20_000] for part in images["train"])
    features = CosineFeatures(1000, seed=0).fit(X[:2000])
    test, labels = images["t10k"]
    A, B = np.asarray(features.transform(X)), np.asarray(features.transform(test))
    parts = []
    for c in range(0, 10, 2):
        a, b = (y // 2 == c // 2), (labels // 2 == c // 2)
        parts.append(Part(A[a], y[a], B[b], labels[b]))
    return Stream("split MNIST", parts, classes=10)


def made(name: str, drift: float) -> Stream:
    """Twenty tasks of 1,000 x 100 with one truth, or with one that walks."""
    rng = np.random.default_rng(0)
    w, parts = rng.standard_normal(100) / 10, []
    mix = np.eye(100) + rng.standard_normal((100, 100)) / 15
    for _ in range(20):
        X = rng.standard_normal((1000, 100)) @ mix
        parts.append(split(X, X @ w + 0.5 * rng.standard_normal(1000), rng))
        w = w + drift * rng.standard_normal(100) / 10
    return Stream(name, parts)


STREAMS: dict[str, Callable[[Path | None], Stream]] = {
    "Beijing": air,
    "flights": flights,
    "split MNIST": digits,
    "stationary": lambda folder: made("stationary", 0.0),
    "drifting": lambda folder: made("drifting", 0.1),
}
