"""CSV files, and what comes from standard input, by pyarrow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..common.arrays import Array
from ..errors import StreamError
from .arrow import ArrowTable, pyarrow
from .tables import PLAIN, Reading, unreadable


class Csv(ArrowTable):
    """Text has to be parsed as a whole; that is done once."""

    def __init__(self, path: Path, reading: Reading = PLAIN):
        self.path, self.reading = path, reading
        try:
            self._table = pyarrow(".csv").read_csv(path, parse_options=_csv(reading))
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(path, error) from None
        self._look()

    def _look(self) -> None:
        try:
            self.names, self.schema = list(self._table.column_names), self._table.schema
        except UnicodeDecodeError as error:
            raise unreadable(self.path, error) from None
        self.index = ("",) if "" in self.names else ()  # a column that pandas gave no name
        self._spelled: dict[str, list[str]] = {}
        self.n_rows = self._table.num_rows

    def columns(self, names: Sequence[str], rows: Array | None) -> Any:
        table = self._table.select(list(names))
        return table if rows is None else table.take(pyarrow().array(rows))

    def spelled(self, name: str, rows: Array | None = None) -> list[str]:
        """As the file has them: what Arrow reads depends on the other rows, and is not exact."""
        self._check_complete(name, self._table[name].null_count)
        if name not in self._spelled:
            self._spelled[name] = self._as_texts(name)
        texts = self._spelled[name]
        self._check_complete(name, texts.count(""))
        return texts if rows is None else [texts[i] for i in rows.tolist()]

    def _as_texts(self, name: str) -> list[str]:
        part = pyarrow(".csv")
        only = part.ConvertOptions(include_columns=[name], column_types={name: "string"})
        options = {"parse_options": _csv(self.reading), "convert_options": only}
        try:
            texts: list[str] = part.read_csv(self.path, **options)[name].to_pylist()
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(self.path, error) from None
        if len(texts) != self.n_rows:
            raise StreamError(f"{self.path}: has changed while it was read")
        return texts


class CsvHead(Csv):
    """The first rows of a CSV file."""

    partial = True

    def __init__(self, path: Path, reading: Reading = PLAIN):
        self.path, self.reading = path, reading
        try:
            with pyarrow(".csv").open_csv(path, parse_options=_csv(reading)) as lines:
                self._table = pyarrow().Table.from_batches([lines.read_next_batch()])
        except StopIteration:
            self._table = lines.schema.empty_table()
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(path, error) from None
        self._look()


class CsvInput(Csv):
    """CSV from standard input."""

    def __init__(self, reading: Reading = PLAIN) -> None:
        self.path, self.reading = Path("standard input"), reading
        try:
            text = pyarrow().BufferReader(sys.stdin.buffer.read())
            self._table = pyarrow(".csv").read_csv(text, parse_options=_csv(reading))
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(self.path, error) from None
        self._look()


def _csv(reading: Reading) -> Any:
    return pyarrow(".csv").ParseOptions(delimiter=reading.separator)
