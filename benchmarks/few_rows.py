"""Fewer rows than columns, and many small tasks: `python -m benchmarks.few_rows`.

Weights are read after every task. Times are ratios to scikit-learn's `Ridge` on all rows at once,
or to `dsyrk` of the same rows; sizes are ratios to the rows' own bytes. Every case has a process
of its own, whose peak memory is measured. Exit status 1 where a limit is missed.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas
from sklearn.linear_model import Ridge

import conche
from conche import Task
from conche.common.arrays import Array
from conche.training import train

from .core import best


class Shape(NamedTuple):
    tasks: int
    rows: int
    columns: int

    @property
    def words(self) -> str:
        return f"{self.tasks} tasks of {self.rows} rows and {self.columns:,} columns"

    @property
    def bytes(self) -> int:
        return 8 * self.tasks * self.rows * self.columns


class Case(NamedTuple):
    """``limits``: by the name of what ``measure`` answers."""

    shape: Shape
    measure: Callable[[Shape], dict[str, float]]
    limits: dict[str, float]


def stream(shape: Shape) -> list[Task]:
    rng = np.random.default_rng(0)
    w = rng.standard_normal(shape.columns) / np.sqrt(shape.columns)
    tasks = []
    for _ in range(shape.tasks):
        X = rng.standard_normal((shape.rows, shape.columns))
        tasks.append(Task(X, X @ w + 0.3 * rng.standard_normal(shape.rows)))
    return tasks


def peak() -> int:
    """Bytes of this process at most so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def learn(tasks: list[Task]) -> Any:
    """A model whose weights have been read after every task."""
    model = conche.ConcheRegressor()
    for task in tasks:
        model.partial_fit(task.X, task.y)
        assert np.all(np.isfinite(model.coef_))
    return model


def reading(shape: Shape) -> dict[str, float]:
    """Time, memory and file of a model that is read after every task."""
    warm = stream(shape._replace(tasks=2, columns=200))
    learn(warm)  # what is loaded once is no part of it
    tasks = stream(shape)
    before = peak()
    models = []
    ours = best(lambda: models.append(learn(tasks)), 1)
    grown = peak() - before
    with tempfile.TemporaryDirectory() as folder:
        conche.save(models[0], file := Path(folder) / "model.conche")
        size = file.stat().st_size
    X, y = rows(tasks)
    theirs = best(lambda: Ridge(alpha=1.0).fit(X, y), 3)
    return {
        "seconds": ours,
        "time over Ridge": ours / theirs,
        "memory over rows": grown / shape.bytes,
        "file over rows": size / shape.bytes,
    }


def training(shape: Shape) -> dict[str, float]:
    """Time of a whole stream from files, with the errors before and after every task."""
    tasks = stream(shape)
    X, _ = rows(tasks)
    floor = best(lambda: blas.dsyrk(1.0, X.T, lower=1), 3)
    with tempfile.TemporaryDirectory() as folder:
        for t, task in enumerate(tasks):
            np.savez(Path(folder) / f"{t:03d}.npz", X=task.X, y=task.y)
        model = conche.ConcheRegressor()
        ours = best(lambda: train(model, conche.FileStream(folder, target="y")), 1)
        assert all(record["after"] is not None for record in model.tasks_)
    return {"seconds": ours, "time over dsyrk": ours / floor}


def rows(tasks: list[Task]) -> tuple[Array, Array]:
    X, y = (np.concatenate([getattr(task, name) for task in tasks]) for name in ("X", "y"))
    return X, y


FEW = {"time over Ridge": 10.0, "memory over rows": 6.0, "file over rows": 1.2}
CASES = [
    Case(Shape(20, 50, 10_000), reading, FEW),
    Case(Shape(20, 100, 5_000), reading, {"time over Ridge": 16.0}),
    Case(Shape(40, 300, 5_000), training, {"time over dsyrk": 12.0}),
]


def main(arguments: list[str]) -> int:
    if arguments:
        case = CASES[int(arguments[0])]
        warnings.simplefilter("ignore")
        print(json.dumps(case.measure(case.shape)))
        return 0
    print("| stream | what | measured | limit |\n|---|---|---|---|")
    missed = False
    for case, found in measured():
        for name, value in found.items():
            limit = case.limits.get(name)
            missed |= limit is not None and not value <= limit
            print(f"| {case.shape.words} | {name} | {value:.2f} | {limit or ''} |", flush=True)
    return int(missed)


def measured() -> Iterator[tuple[Case, dict[str, float]]]:
    for i, case in enumerate(CASES):
        command = [sys.executable, "-m", "benchmarks.few_rows", str(i)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        yield case, json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
