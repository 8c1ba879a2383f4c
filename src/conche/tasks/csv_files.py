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
            self._table = _parsed(path, reading)
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
        only = {"include_columns": [name], "column_types": {name: "string"}}
        try:
            texts: list[str] = _parsed(self.path, self.reading, **only)[name].to_pylist()
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
            self._table = self._first()
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(path, error) from None
        self._look()

    def _first(self) -> Any:
        try:
            with pyarrow(".csv").open_csv(self.path, parse_options=_csv(self.reading)) as lines:
                return pyarrow().Table.from_batches([lines.read_next_batch()])
        except StopIteration:
            return lines.schema.empty_table()
        except pyarrow().ArrowInvalid:
            return _parsed(self.path, self.reading)  # which says in which row


class CsvInput(Csv):
    """CSV from standard input."""

    def __init__(self, reading: Reading = PLAIN) -> None:
        self.path, self.reading = Path("standard input"), reading
        try:
            self._table = _parsed(sys.stdin.buffer.read(), reading)
        except (pyarrow().ArrowException, UnicodeDecodeError, OSError) as error:
            raise unreadable(self.path, error) from None
        self._look()


def _csv(reading: Reading) -> Any:
    return pyarrow(".csv").ParseOptions(delimiter=reading.separator)


def _parsed(source: Path | bytes, reading: Reading, **convert: Any) -> Any:
    """All of a text, as a pyarrow.Table."""
    part = pyarrow(".csv")
    options = {"parse_options": _csv(reading), "convert_options": part.ConvertOptions(**convert)}

    def parsed(**more: Any) -> Any:
        text = pyarrow().BufferReader(source) if isinstance(source, bytes) else source
        return part.read_csv(text, **options, **more)

    try:
        return parsed()
    except pyarrow().ArrowInvalid:  # again in one thread, which says in which row
        return parsed(read_options=part.ReadOptions(use_threads=False))
