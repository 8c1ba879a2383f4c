"""Streams on disk: a folder or a glob, one Parquet, CSV or npz file per task, in name order."""

from __future__ import annotations

import glob
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .task import Array, Task

SUFFIXES = (".parquet", ".csv", ".npz")


class StreamError(ValueError):
    """A stream that cannot be read; the message names the file, and the column if there is one."""


def stream_files(stream: str | Path) -> list[Path]:
    """The files of a stream, one per task, in the order of their names."""
    path = Path(stream)
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(stream)))
    files = sorted((f for f in found if f.suffix in SUFFIXES), key=lambda f: f.name)
    if not files:
        raise StreamError(f"{stream}: no {', '.join(SUFFIXES)} files there")
    return files


def read_stream(stream: str | Path, target: str = "y") -> list[Task]:
    """All tasks of a stream. The first file fixes the columns; later ones are matched by name.

    An npz file holds the matrix ``X`` and the vector named by ``target``; tables hold one column
    per feature and the target's.
    """
    tasks: list[Task] = []
    names: list[str] | None = None
    for file in stream_files(stream):
        X, y, columns = _read_npz(file, target) if file.suffix == ".npz" else _read(file, target)
        names = columns if names is None else names
        tasks.append(Task(_matched(file, X, columns, names), y, name=file.stem))
    return tasks


def _read(file: Path, target: str) -> tuple[Array, Array, list[str]]:
    try:
        parquet = file.suffix == ".parquet"
        table = pa.parquet.read_table(file) if parquet else pa.csv.read_csv(file)
        columns = list(table.column_names)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise StreamError(f"{file}: cannot be read ({str(error).splitlines()[0]})") from None
    if table.num_rows == 0:
        raise StreamError(f"{file}: no rows in it")
    for name in columns:
        if columns.count(name) > 1:
            raise StreamError(f"{file}: two columns are called {name!r}")
    if target not in columns:
        raise StreamError(f"{file}: no column {target!r} for the target")
    arrays = {name: _numbers(file, name, table[name]) for name in columns}
    features = [name for name in columns if name != target]
    if not features:
        raise StreamError(f"{file}: no columns beside the target")
    return np.column_stack([arrays[name] for name in features]), arrays[target], features


def _read_npz(file: Path, target: str) -> tuple[Array, Array, list[str]]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            for name in ("X", target):
                if name not in archive:
                    raise StreamError(f"{file}: no array {name!r} in it")
            X, y = archive["X"], archive[target]
    except StreamError:
        raise
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise StreamError(f"{file}: cannot be read ({error})") from None
    if X.ndim != 2 or y.shape != X.shape[:1] or X.size == 0:
        raise StreamError(f"{file}: X has shape {X.shape} and {target} {y.shape}")
    for name, array in (("X", X), (target, y)):
        if array.dtype.kind not in "biuf":
            raise StreamError(f"{file}: array {name!r} is not numeric ({array.dtype})")
        if not np.all(np.isfinite(array)):
            raise StreamError(f"{file}: array {name!r} has missing or infinite values")
    return X.astype(float), y.astype(float), [f"x{j}" for j in range(X.shape[1])]


def _numbers(file: Path, name: str, column: Any) -> Array:
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise StreamError(f"{file}: column {name!r} is not numeric ({kind})")
    if column.null_count:
        raise StreamError(f"{file}: column {name!r} has {column.null_count} missing values")
    values = np.asarray(column.to_numpy(), dtype=float)
    if not np.all(np.isfinite(values)):
        raise StreamError(f"{file}: column {name!r} has missing or infinite values")
    return values


def _matched(file: Path, X: Array, columns: list[str], names: list[str]) -> Array:
    """X with its columns in the first file's order."""
    if columns == names:
        return X
    missing, extra = set(names) - set(columns), set(columns) - set(names)
    if missing:
        raise StreamError(f"{file}: column {min(missing)!r} of the first task is missing")
    if extra:
        raise StreamError(f"{file}: column {min(extra)!r} is not in the first task")
    return X[:, [columns.index(name) for name in names]]
