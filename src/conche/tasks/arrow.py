"""Parquet files, and what CSV files share with them; pyarrow is imported with the first of them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..common.arrays import Array
from ..common.extras import need
from ..common.words import counted
from ..errors import StreamError
from .encoding import CALENDAR, MOST_VALUES, Part, as_numbers, part_of
from .tables import PLAIN, Reading, Table, unreadable


@cache
def pyarrow(part: str = "") -> Any:
    """pyarrow, or one of its parts (``".csv"``, ``".parquet"``)."""
    return need(f"pyarrow{part}", "files", "reading Parquet and CSV")


class ArrowTable(Table):
    """What Parquet and CSV have in common."""

    reading: Reading
    schema: Any  # pyarrow's

    @abstractmethod
    def columns(self, names: Sequence[str], rows: Array | None) -> Any:
        """A pyarrow.Table of these columns and rows."""

    @cached_property
    def texts(self) -> frozenset[str]:
        """Columns of texts."""
        return frozenset(field.name for field in self.schema if _is_text(field.type))

    @cached_property
    def coded(self) -> frozenset[str]:
        """Texts, whole numbers, and what is empty: what may be meant as categories."""
        types = pyarrow().types
        known = types.is_integer, types.is_boolean, types.is_null
        numbers = (f.name for f in self.schema if any(is_it(f.type) for is_it in known))
        return self.texts.union(numbers)

    @cached_property
    def dates(self) -> frozenset[str]:
        """Columns of dates, or of times of a day that is known."""
        types = pyarrow().types
        known = types.is_timestamp, types.is_date
        return frozenset(f.name for f in self.schema if any(is_it(f.type) for is_it in known))

    def has(self, name: str) -> bool:
        return super().has(name) or self._part(name) is not None

    def source(self, name: str) -> str:
        part = None if super().has(name) else self._part(name)
        return name if part is None else part.column

    def parts(self, source: str) -> list[str]:
        if source not in self.coded:
            return []
        return [f"{source}={value}" for value in self._categories(source, True)]

    def pattern(self, name: str) -> str:
        return f"{escape(name)}{'.' if name in self.dates else '='}*"

    def _part(self, name: str) -> Part | None:
        return part_of(name, self.coded, self.dates)

    @cached_property
    def empty(self) -> frozenset[str]:
        """Columns without any value, whose type nobody can tell."""
        return frozenset(f.name for f in self.schema if pyarrow().types.is_null(f.type))

    def encoded(self, names: Sequence[str], first: bool = True) -> list[str]:
        """With the values of categories, and the parts of dates, that are asked for. A column that
        is empty may be a text or a date, unless the file is the ``first``, and brings nothing."""
        if not self.reading.categories and self.reading.dates is None:
            return list(names)
        meant = [p for p in self.reading.categories if any(sign in p for sign in "*?[")]
        out: list[str] = []
        for name in names:
            by_name = name in self.reading.categories
            if by_name and name not in self.coded:
                raise StreamError(f"{self.path}: column {name!r} has no texts to be categories of")
            by_pattern = any(fnmatchcase(name, p) for p in meant)
            if not first and name in self.empty and (by_pattern or self.reading.dates):
                continue
            if by_name or (name in self.texts and by_pattern):
                out += [f"{name}={value}" for value in self._categories(name, by_name)]
            elif name in self.dates and self.reading.dates is not None:
                parts = CALENDAR if self.reading.dates == "calendar" else ("days",)
                out += [f"{name}.{part}" for part in parts]
            else:
                out.append(name)
        if len(set(out)) < len(out):
            twice = next(name for name in out if out.count(name) > 1)
            raise StreamError(f"{self.path}: two columns would be called {twice!r}")
        return out

    def _categories(self, name: str, by_name: bool) -> list[str]:
        found = pyarrow(".compute").unique(_texts(self.columns([name], None)[name]))
        values = sorted(value for value in found.to_pylist() if value is not None)
        if len(values) > MOST_VALUES and not by_name:
            raise StreamError(
                f"{self.path}: column {name!r} has {len(values)} different texts: name it among "
                f"the categories if you mean it; drop='{name}' leaves it out"
            )
        return values

    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        parts = [None if super(ArrowTable, self).has(name) else self._part(name) for name in names]
        pairs = list(zip(names, parts, strict=True))
        sources = dict.fromkeys(part.column if part else name for name, part in pairs)
        table = self.columns(list(sources), rows)
        coded = {part.column for part in parts if part and not part.is_date}
        texts = {name: _texts(table[name]) for name in coded}  # once for all of their values
        out = np.empty((table.num_rows, len(names)), order="F")
        for j, (name, part) in enumerate(pairs):
            source = part.column if part else name
            column = texts[source] if part and not part.is_date else table[source]
            if part is None:
                self._check_numeric(name, column)
            if missing == "refuse" and column.null_count:
                count = counted(column.null_count, "missing value")
                raise StreamError(
                    f"{self.path}: column {name!r} has {count}; missing='mean' fills them"
                )
            if part is not None:
                out[:, j] = as_numbers(column, part, pyarrow(".compute"))
            else:
                values = column.to_numpy()  # nulls become NaN
                out[:, j] = values if values.dtype.kind != "O" else values.astype(float)
        return self.checked(out, names, missing)

    def values(self, name: str, rows: Array | None = None) -> Array:
        types = pyarrow().types
        column = self.columns([name], rows)[name]
        self._check_complete(name, column.null_count)
        column = _plain(column)
        if _is_text(column.type):
            texts = np.array(column.to_pylist(), dtype=str)
            self._check_complete(name, int(np.sum(texts == "")))
            self._check_commas(name, texts[0])
            return texts
        if types.is_temporal(column.type):
            return np.array([str(value) for value in column.to_pylist()])
        self._check_numeric(name, column)
        array = np.asarray(column.to_numpy())
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise StreamError(f"{self.path}: column {name!r} has missing or infinite values")
        return array

    def spelled(self, name: str, rows: Array | None = None) -> list[str]:
        column, types = self.columns([name], rows)[name], pyarrow().types
        if not types.is_temporal(column.type):
            return super().spelled(name, rows)
        self._check_complete(name, column.null_count)
        if types.is_timestamp(column.type) and column.type.tz:
            column = column.cast(pyarrow().timestamp(column.type.unit, "UTC"))
        return [str(text) for text in column.cast("string").to_pylist()]

    def _check_complete(self, name: str, missing: int) -> None:
        if missing:
            count = counted(missing, "missing value")
            raise StreamError(f"{self.path}: column {name!r} has {count}")

    def _check_numeric(self, name: str, column: Any) -> None:
        types, kind = pyarrow().types, column.type
        known = types.is_integer, types.is_floating, types.is_boolean
        empty = types.is_null(kind)  # a column that is missing throughout
        if not empty and not any(is_kind(kind) for is_kind in known):
            also = ""
            if name in self.texts:
                also = f", categories='{name}' encodes it"
                self._check_commas(name, next(iter(column.drop_null().to_pylist()), ""))
                if self.reading.dates is not None:
                    also += " (dates are read as 2024-01-31, or 2024-01-31 12:00)"
            elif name in self.dates:
                also = ", dates='number' or dates='calendar' reads it"
            raise StreamError(
                f"{self.path}: column {name!r} is not numeric ({kind}); drop='{name}' leaves it "
                f"out{also}{self._other_separator()}"
            )

    def _check_commas(self, name: str, text: Any) -> None:
        if re.fullmatch(r"-?\d+,\d+", str(text)):
            raise StreamError(
                f"{self.path}: column {name!r} has numbers with decimal commas; save them with "
                f"points"
            )

    def copied(self, name: str) -> Array:
        column = _plain(self.columns([name], None)[name])
        values = column.to_pylist()
        if pyarrow().types.is_temporal(column.type):
            values = [None if value is None else str(value) for value in values]
        copy = np.empty(len(values), dtype=object)
        copy[:] = values
        return copy

    def why_absent(self, name: str, whose: str) -> str:
        """Where the column is there, but of another kind than it was."""
        for source, kind in ((name.rpartition(".")[0], "date"), (name.partition("=")[0], "text")):
            if source != name and source in self._names_set:
                return f"{self.path}: column {source!r} is no {kind} here, as in the {whose}"
        return super().why_absent(name, whose)

    def hint(self, name: str) -> str:
        return self._other_separator() or super().hint(name)

    def _other_separator(self) -> str:
        """Where a file seems to have another separator."""
        for sign in ";\t|,":
            if len(self.names) == 1 and sign in self.names[0]:
                return f"; it looks as if separator={sign!r} were meant"
        return ""


def _plain(column: Any) -> Any:
    """Texts that are kept as numbers of a list, as texts."""
    is_listed = pyarrow().types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if is_listed else column


def _texts(column: Any) -> Any:
    """Texts, of which an empty one is missing."""
    column, compute = _plain(column), pyarrow(".compute")
    if not _is_text(column.type):  # codes that are meant as texts
        return column.cast("string")
    return compute.if_else(compute.equal(column, ""), pyarrow().scalar(None, column.type), column)


def _is_text(kind: Any) -> bool:
    types = pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind))


class Parquet(ArrowTable):
    """Only the columns that are asked for are read, and only the row groups they are in."""

    def __init__(self, path: Path, reading: Reading = PLAIN):
        self.path, self.reading = path, reading
        try:
            self._file = pyarrow(".parquet").ParquetFile(path)
        except (pyarrow().ArrowException, OSError) as error:
            raise unreadable(path, error) from None
        self.schema = self._file.schema_arrow
        self.names = list(self.schema.names)
        known = self.schema.pandas_metadata or {}
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
