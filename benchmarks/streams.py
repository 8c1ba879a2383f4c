"""A long stream from Parquet files: does memory stay flat, and is reading the smaller part?"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from scipy import sparse

import conche
from conche.common.arrays import Array
from conche.tasks.arrow import Parquet

from .core import Row

TASKS, SAMPLES, COLUMNS, DISTINCT = 200, 20_000, 500, 5
TEXTS, WORDS = 750, 40_000


def write(folder: Path) -> None:
    """200 tasks of 20,000 x 500; a few distinct files, linked again and again."""
    for i, task in enumerate(conche.gaussian_tasks(DISTINCT, SAMPLES, COLUMNS, n_shared=400)):
        columns = {f"c{j}": task.X[:, j] for j in range(COLUMNS)} | {"y": task.y}
        pa.parquet.write_table(pa.table(columns), folder / f"{i:03d}.parquet")
    for i in range(DISTINCT, TASKS):
        os.link(folder / f"{i % DISTINCT:03d}.parquet", folder / f"{i:03d}.parquet")


def learn(folder: str) -> None:
    """In a process of its own: seconds in all, of reading, bytes gained after the tenth task."""
    reading = 0.0
    real = Parquet.read

    def timed(self: Parquet, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        nonlocal reading
        clock = time.perf_counter()
        block = real(self, names, rows, missing)
        reading += time.perf_counter() - clock
        return block

    setattr(Parquet, "read", timed)  # noqa: B010  # in this process alone
    model = conche.ConcheRegressor(n_nodes=4, fit_intercept=True, scaling="first")
    clock, resident = time.perf_counter(), []
    for task in conche.FileStream(folder):
        model.partial_fit(task.X, task.y)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident.append(pages * resource.getpagesize())
    total = time.perf_counter() - clock
    print(total, reading, max(np.array(resident[10:])) - resident[9])


def write_sparse(folder: Path) -> float:
    """Texts of 150 words: twelve files, and how many bytes they are."""
    rng = np.random.default_rng(0)
    for i in range(12):
        words = rng.integers(0, WORDS, (TEXTS, 150))
        where = np.repeat(np.arange(TEXTS), 150), words.ravel()
        X = sparse.csr_array((rng.random(words.size), where), (TEXTS, WORDS))
        sparse.save_npz(folder / f"{i}.npz", X)
        np.save(folder / f"{i}.y.npy", X[:, :200].sum(axis=1))
    return float(sum(path.stat().st_size for path in folder.iterdir()))


def learn_sparse(folder: str) -> None:
    """In a process of its own: seconds, and bytes of the model's file."""
    warnings.simplefilter("ignore")
    model = conche.ConcheRegressor(n_nodes=4)
    clock = time.perf_counter()
    for task in conche.FileStream(folder):
        model.partial_fit(task.X, task.y)
    seconds = time.perf_counter() - clock
    conche.save(model, Path(folder) / "model")
    print(seconds, (Path(folder) / "model").stat().st_size)


def sparse_rows() -> Iterator[Row]:
    """A stream of sparse files: fast, and small."""
    with tempfile.TemporaryDirectory() as folder:
        data = write_sparse(Path(folder))
        code = f"from benchmarks.streams import learn_sparse; learn_sparse({folder!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
    seconds, size = map(float, done.stdout.split())
    yield Row(f"12 tasks of sparse {TEXTS} x {WORDS:,} files, K=4", "5 s", seconds, 5.0, "<= 1")
    yield Row("  the model's file", "ten times the data", size, 10 * data, "<= 1")


def rows() -> Iterator[Row]:
    """What share of the time is reading, and how much memory is gained."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        code = f"from benchmarks.streams import learn; learn({folder!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
    yield from sparse_rows()
    total, reading, growth = map(float, done.stdout.split())
    what = f"{TASKS} tasks of {SAMPLES:,} x {COLUMNS} from Parquet, K=4: reading"
    yield Row(what, "all of it", reading, total, "<= 0.5")
    yield Row("  memory gained after the tenth task", "50 MB", max(growth, 1.0), 50e6, "<= 1")
