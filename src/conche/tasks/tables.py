"""One file of a stream: what columns it has, and any of them on demand. Parquet, CSV or npz."""

from __future__ import annotations

import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.lib import format as npy

from .task import Array

SUFFIXES = (".parquet", ".csv", ".npz")


class StreamError(ValueError):
    """A stream that cannot be read; the message names the file, and the column if there is one."""


class Table(ABC):
    """A file that is open: its names and rows are known, its columns are read when asked for."""

    path: Path
    names: list[str]
    n_rows: int

    @property
    def features(self) -> list[str]:
        """The columns that can be features."""
        return self.names

    @abstractmethod
    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        """Numeric columns, n x count, column by column in memory; NaN only where ``missing`` says
        that the reader knows what to do with it."""

    @abstractmethod
    def values(self, name: str, rows: Array | None = None) -> Array:
        """One column as it is: numbers, or texts; nothing may be missing."""


def open_table(path: Path, target: str) -> Table:
    """Open by suffix; ``target`` is what an npz file must have beside X."""
    table: Table
    if path.suffix.lower() == ".npz":
        table = Npz(path, target)
    elif path.suffix.lower() == ".parquet":
        table = Parquet(path)
    else:
        table = Csv(path)
    if table.n_rows == 0:
        raise StreamError(f"{path}: no rows in it")
    for name in table.names:
        if table.names.count(name) > 1:
            raise StreamError(f"{path}: two columns are called {name!r}")
    return table


class _Arrow(Table):
    """What Parquet and CSV have in common."""

    @abstractmethod
    def _columns(self, names: Sequence[str], rows: Array | None) -> Any: ...

    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        table = self._columns(names, rows)
        out = np.empty((table.num_rows, len(names)), order="F")
        for j, name in enumerate(names):
            column = table[name]
            self._check_numeric(name, column)
            if column.null_count and missing == "refuse":
                raise StreamError(
                    f"{self.path}: column {name!r} has {column.null_count} missing values"
                )
            values = column.to_numpy()  # nulls become NaN
            out[:, j] = values if values.dtype.kind != "O" else values.astype(float)
            bad = np.isinf(out[:, j]) if missing != "refuse" else ~np.isfinite(out[:, j])
            if bad.any():
                raise StreamError(f"{self.path}: column {name!r} has missing or infinite values")
        return out

    def values(self, name: str, rows: Array | None = None) -> Array:
        column = self._columns([name], rows)[name]
        if column.null_count:
            raise StreamError(
                f"{self.path}: column {name!r} has {column.null_count} missing values"
            )
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            texts = np.array(column.to_pylist(), dtype=str)
            if np.any(texts == ""):
                raise StreamError(
                    f"{self.path}: column {name!r} has {np.sum(texts == '')} missing values"
                )
            return texts
        if pa.types.is_temporal(kind):
            return np.array([str(value) for value in column.to_pylist()])
        self._check_numeric(name, column)
        array = np.asarray(column.to_numpy())
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise StreamError(f"{self.path}: column {name!r} has missing or infinite values")
        return array

    def _check_numeric(self, name: str, column: Any) -> None:
        kind = column.type
        known = pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean
        empty = pa.types.is_null(kind)  # a column that is missing throughout
        if not empty and not any(is_kind(kind) for is_kind in known):
            raise StreamError(f"{self.path}: column {name!r} is not numeric ({kind})")


class Parquet(_Arrow):
    """Columns are projected: only what is asked for is read, and only the row groups it is in."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._file = pa.parquet.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None
        self.names = list(self._file.schema_arrow.names)
        self.n_rows = self._file.metadata.num_rows

    def _columns(self, names: Sequence[str], rows: Array | None) -> Any:
        try:
            if rows is None:
                return self._file.read(columns=list(names))
            meta = self._file.metadata
            counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
            edges = np.cumsum([0, *counts])
            groups = np.unique(np.searchsorted(edges, rows, side="right") - 1)
            table = self._file.read_row_groups(groups.tolist(), columns=list(names))
            starts = np.cumsum([0, *(counts[g] for g in groups)])[:-1]
            place = np.searchsorted(edges, rows, side="right") - 1
            within = rows - edges[place] + starts[np.searchsorted(groups, place)]
            return table.take(pa.array(within))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, error) from None


class Csv(_Arrow):
    """Text has to be parsed as a whole; that is done once."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._table = pa.csv.read_csv(path)
            self.names = list(self._table.column_names)
        except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
            raise _unreadable(path, error) from None
        self.n_rows = self._table.num_rows

    def _columns(self, names: Sequence[str], rows: Array | None) -> Any:
        table = self._table.select(list(names))
        return table if rows is None else table.take(pa.array(rows))


class Npz(Table):
    """A matrix ``X`` and vectors by name; X is memory-mapped where it is not compressed. Its
    columns are called x0, x1, ... unless an array ``columns`` names them."""

    def __init__(self, path: Path, target: str):
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as archive:
                if "X" not in archive:
                    raise StreamError(f"{path}: no array 'X' in it")
                self._vectors = {
                    key: archive[key] for key in archive.files if key not in ("X", "columns")
                }
                names = _names(path, archive["columns"]) if "columns" in archive else None
                mapped = _mapped(path)
                self._X = archive["X"] if mapped is None else mapped
        except StreamError:
            raise
        except (
            OSError, ValueError, EOFError, TypeError, KeyError, AttributeError, zipfile.BadZipFile,
        ) as error:  # fmt: skip
            if "pickle" in str(error) or isinstance(error, TypeError):
                error = ValueError("not an npz file of plain arrays")
            raise _unreadable(path, error) from None
        X, y = self._X, self._vectors.get(target)
        if y is not None and (X.ndim != 2 or y.shape != X.shape[:1] or X.size == 0):
            raise StreamError(f"{path}: X has shape {X.shape} and {target} {y.shape}")
        if X.ndim != 2:
            raise StreamError(f"{path}: X has shape {X.shape}, not a matrix")
        if X.dtype.kind not in "biuf":
            raise StreamError(f"{path}: array 'X' is not numeric ({X.dtype})")
        if names is not None and len(names) != X.shape[1]:
            raise StreamError(f"{path}: {len(names)} names for {X.shape[1]} columns of X")
        self._own = [f"x{j}" for j in range(X.shape[1])] if names is None else list(map(str, names))
        self._place = {name: j for j, name in enumerate(self._own)}
        self.names = [*self._own, *self._vectors]
        self.n_rows = len(X)

    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        places = np.array([self._place[name] for name in names])
        run = slice(places[0], places[-1] + 1)
        consecutive = np.array_equal(places, np.arange(run.start, run.stop))
        block = self._X[:, run] if consecutive else self._X[:, places]
        out = np.array(block if rows is None else block[rows], dtype=float, order="F")
        bad = np.isinf(out) if missing != "refuse" else ~np.isfinite(out)
        if bad.any():
            name = names[int(np.flatnonzero(bad.any(axis=0))[0])]
            raise StreamError(
                f"{self.path}: array 'X' has missing or infinite values (column {name!r})"
            )
        return out

    @property
    def features(self) -> list[str]:
        return self._own  # other arrays of the file are none of ours

    def values(self, name: str, rows: Array | None = None) -> Array:
        if name not in self._vectors:
            raise StreamError(f"{self.path}: no array {name!r} in it")
        array = self._vectors[name]
        if array.dtype.kind not in "biufU":
            raise StreamError(f"{self.path}: array {name!r} is not numeric ({array.dtype})")
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise StreamError(f"{self.path}: array {name!r} has missing or infinite values")
        return np.asarray(array if rows is None else array[rows])


def _names(path: Path, array: Array) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in "US":
        raise StreamError(f"{path}: array 'columns' must be a list of names")
    texts = np.char.decode(array) if array.dtype.kind == "S" else array
    return [str(name) for name in texts]


def _mapped(path: Path) -> Array | None:
    """X of an npz file without reading it; None where it is compressed."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("X.npy")
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        with archive.open(info) as member:
            version = npy.read_magic(member)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(member)
            inside = member.tell()
    if dtype.hasobject or not np.prod(shape):
        return None
    with open(path, "rb") as file:  # the member's own header has names of any length
        file.seek(info.header_offset + 26)
        lengths = np.frombuffer(file.read(4), "<u2")
    offset = info.header_offset + 30 + int(lengths.sum()) + inside
    order = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", offset, shape, order)  # type: ignore[call-overload]


def _unreadable(path: Path, error: Exception) -> StreamError:
    said = str(error).splitlines()
    return StreamError(f"{path}: cannot be read ({said[0] if said else type(error).__name__})")
