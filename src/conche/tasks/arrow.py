"""Parquet and CSV files, by pyarrow, which is imported with the first of them."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..common.arrays import Array
from ..common.extras import need
from ..errors import StreamError
from .tables import Table, unreadable


@cache
def pyarrow(part: str = "") -> Any:
    """pyarrow, or one of its parts (``".csv"``, ``".parquet"``)."""
    return need(f"pyarrow{part}", "files", "reading Parquet and CSV")


class ArrowTable(Table):
    """What Parquet and CSV have in common."""

    @abstractmethod
    def columns(self, names: Sequence[str], rows: Array | None) -> Any:
        """A pyarrow.Table of these columns and rows."""

    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        table = self.columns(names, rows)
        out = np.empty((table.num_rows, len(names)), order="F")
        for j, name in enumerate(names):
            column = table[name]
            self._check_numeric(name, column)
            if missing == "refuse" and column.null_count:
                raise StreamError(
                    f"{self.path}: column {name!r} has {column.null_count} missing values; "
                    f"missing='mean' fills them"
                )
            values = column.to_numpy()  # nulls become NaN
            out[:, j] = values if values.dtype.kind != "O" else values.astype(float)
            bad = np.isinf(out[:, j]) if missing != "refuse" else ~np.isfinite(out[:, j])
            if bad.any():
                raise StreamError(f"{self.path}: column {name!r} has missing or infinite values")
        return out

    def values(self, name: str, rows: Array | None = None) -> Array:
        types = pyarrow().types
        column = self.columns([name], rows)[name]
        self._check_complete(name, column.null_count)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_string(column.type) or types.is_large_string(column.type):
            texts = np.array(column.to_pylist(), dtype=str)
            self._check_complete(name, int(np.sum(texts == "")))
            return texts
        if types.is_temporal(column.type):
            return np.array([str(value) for value in column.to_pylist()])
        self._check_numeric(name, column)
        array = np.asarray(column.to_numpy())
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise StreamError(f"{self.path}: column {name!r} has missing or infinite values")
        return array

    def _check_complete(self, name: str, missing: int) -> None:
        if missing:
            raise StreamError(f"{self.path}: column {name!r} has {missing} missing values")

    def _check_numeric(self, name: str, column: Any) -> None:
        types, kind = pyarrow().types, column.type
        known = types.is_integer, types.is_floating, types.is_boolean
        empty = types.is_null(kind)  # a column that is missing throughout
        if not empty and not any(is_kind(kind) for is_kind in known):
            raise StreamError(
                f"{self.path}: column {name!r} is not numeric ({kind}); drop='{name}' leaves it out"
            )


class Parquet(ArrowTable):
    """Only the columns that are asked for are read, and only the row groups they are in."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._file = pyarrow(".parquet").ParquetFile(path)
        except (pyarrow().ArrowException, OSError) as error:
            raise unreadable(path, error) from None
        self.names = list(self._file.schema_arrow.names)
        known = self._file.schema_arrow.pandas_metadata or {}
        named = {name for name in known.get("index_columns", ()) if isinstance(name, str)}
        self.index = tuple(name for name in self.names if name in named)
        self.n_rows = self._file.metadata.num_rows

    def columns(self, names: Sequence[str], rows: Array | None) -> Any:
        try:
            if rows is None:
                return self._file.read(columns=list(names))
            meta = self._file.metadata
            counts = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
            edges = np.cumsum([0, *counts])
            place = np.searchsorted(edges, rows, side="right") - 1  # each row's group
            groups = np.unique(place)
            table = self._file.read_row_groups(groups.tolist(), columns=list(names))
            starts = np.cumsum([0, *(counts[g] for g in groups)])[:-1]
            within = rows - edges[place] + starts[np.searchsorted(groups, place)]
            return table.take(pyarrow().array(within))
        except (pyarrow().ArrowException, OSError) as error:
            raise unreadable(self.path, error) from None


class Csv(ArrowTable):
    """Text has to be parsed as a whole; that is done once."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._table = pyarrow(".csv").read_csv(path)
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(path, error) from None
        self._look()

    def _look(self) -> None:
        try:
            self.names = list(self._table.column_names)
        except UnicodeDecodeError as error:
            raise unreadable(self.path, error) from None
        self.index = ("",) if "" in self.names else ()  # a column that pandas gave no name
        self.n_rows = self._table.num_rows

    def columns(self, names: Sequence[str], rows: Array | None) -> Any:
        table = self._table.select(list(names))
        return table if rows is None else table.take(pyarrow().array(rows))


class CsvHead(Csv):
    """The first rows of a CSV file."""

    def __init__(self, path: Path):
        self.path = path
        try:
            with pyarrow(".csv").open_csv(path) as lines:
                self._table = pyarrow().Table.from_batches([lines.read_next_batch()])
        except StopIteration:
            self._table = lines.schema.empty_table()
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(path, error) from None
        self._look()


class CsvInput(Csv):
    """CSV from standard input."""

    def __init__(self) -> None:
        self.path = Path("standard input")
        try:
            text = pyarrow().BufferReader(sys.stdin.buffer.read())
            self._table = pyarrow(".csv").read_csv(text)
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(self.path, error) from None
        self._look()
