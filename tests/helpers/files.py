"""Streams of tasks written to disk, for tests that read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from conche import Task, gaussian_tasks
from conche.common.sealed import unseal
from conche.model_file import FORMAT

JUDGED = (
    "tasks.before",
    "tasks.after",
    "tasks.gap",
    "tasks.gap_bound",
    "path.coef",
    "path.intercept",
)


def write(folder: Path, tasks: Sequence[Task], kind: str = "parquet", digits: int = 3) -> None:
    """One file per task, 000.parquet, 001.parquet, ...: columns c0, c1, ... (npz: X) and y."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, task in enumerate(tasks):
        file = folder / f"{i:0{digits}d}.{kind}"
        if kind == "npz":
            np.savez(file, X=task.X, y=task.y)
            continue
        table = pa.table({f"c{j}": task.X[:, j] for j in range(task.n_features)} | {"y": task.y})
        (pa.parquet.write_table if kind == "parquet" else pa.csv.write_csv)(table, file)


def write_stream(folder: Path, tasks: Sequence[Task], kind: str) -> None:
    """The same with names of two digits: 00.csv, 01.csv, ..."""
    write(folder, tasks, kind, digits=2)


def write_halves(folder: Path) -> None:
    """Eight tasks of ten columns, two thirds of the samples in train/ and one in test/."""
    tasks = gaussian_tasks(8, 60, 10, n_shared=8, noise_var=0.1)
    write(folder / "train", [Task(t.X[:40], t.y[:40]) for t in tasks])
    write(folder / "test", [Task(t.X[40:], t.y[40:]) for t in tasks])


def assert_the_same_but_for_errors(one: Path, other: Path) -> None:
    """Model files of one stream that was learnt in other runs. A run's last task is judged with
    the likeliest ridge, others with the one in force; nothing else depends on it, to the last bit.
    """
    (described, arrays), (known, expected) = (unseal(file, FORMAT) for file in (one, other))
    assert described == known and arrays.keys() == expected.keys()
    for name in arrays.keys() - set(JUDGED):
        assert np.array_equal(arrays[name], expected[name], equal_nan=True), name
