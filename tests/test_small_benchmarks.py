"""Benchmarks with limits, small: what they find and how large it is, not how long it took."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import conche
from benchmarks import few_rows, mnist, text

from .helpers.streams import need


def test_few_rows_are_kept_as_rows(tmp_path: Path) -> None:
    """The model is no larger than its rows, and right after every task."""
    shape = few_rows.Shape(tasks=5, rows=20, columns=3000)
    model, seen = conche.ConcheRegressor(), []
    for task in few_rows.stream(shape):
        model.partial_fit(task.X, task.y)
        seen.append(task)
        X, y = few_rows.rows(seen)
        scale = np.sqrt(model.ridge_)
        offline = Ridge(alpha=1.0).fit(X / scale, y)
        apart = np.abs(model.predict(X) - offline.predict(X / scale))
        assert np.max(apart) <= 1e-9 * np.std(y)
    conche.save(model, file := tmp_path / "model.conche")
    assert file.stat().st_size <= few_rows.FEW["file over rows"] * shape.bytes


@pytest.mark.filterwarnings("ignore")
def test_few_rows_are_measured() -> None:
    found = few_rows.reading(few_rows.Shape(2, 10, 300))
    assert found.keys() >= few_rows.FEW.keys() and min(found.values()) >= 0
    assert few_rows.training(few_rows.Shape(3, 10, 30)).keys() >= {"time over dsyrk"}


def test_digits_learnt_two_by_two_are_learnt() -> None:
    found = mnist.measured(need("mnist"), columns=300, rows=6000)
    assert found.accuracy >= 0.88


def some_docstrings() -> text.Documents:
    """Of four packages that every Python has."""
    for package in ("asyncio", "email", "importlib", "logging"):
        own = partial(text.docstrings, only=package)
        yield from islice(own(), 150)


@pytest.mark.filterwarnings("ignore")
def test_words_are_told_better_than_by_gradients() -> None:
    stream = text.read(some_docstrings, columns=2**12)
    assert stream is not None and len(set(stream.y)) == 4
    for order in text.ORDERS:
        tasks = text.in_order(stream, order)
        every = np.concatenate(tasks)
        assert len(np.unique(every)) == len(every) == np.sum(~stream.held)
        found = text.compared(stream, order)
        assert not text.worse(found, order), (order, found)
    assert found["last label"].before < found["SGD"].before  # class by class
