"""Streams on disk: one file per task in name order, or one table with a column that says which."""

from __future__ import annotations

import fnmatch
import glob
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from .columns import Columns, Source
from .tables import SUFFIXES, StreamError, Table, open_table
from .task import Array, Task


class FileColumns(Columns):
    """Features of one task, still on disk: a node reads its own columns and no others."""

    def __init__(self, table: Table, names: list[str], rows: Array | None, missing: str):
        self.table, self.names, self.rows, self.missing = table, names, rows, missing
        self._names = names
        self.shape = (table.n_rows if rows is None else len(rows), len(names))

    def read(self, columns: slice | Array) -> Array:
        chosen = np.array(self._names, dtype=object)[columns].tolist()
        return self.table.read(chosen, self.rows, self.missing)

    def source(self) -> Source:
        path = str(self.table.path.absolute())
        return FileSource(path, tuple(self._names), self.rows, self.missing)


@dataclass(frozen=True)
class FileSource(Source):
    """A file, and which of its columns and rows."""

    path: str
    names: tuple[str, ...]
    rows: Array | None
    missing: str

    def columns(self, which: slice | Array) -> Source:
        chosen = np.array(self.names, dtype=object)[which].tolist()
        return replace(self, names=tuple(chosen))

    def read(self) -> Array:
        return open_table(Path(self.path), "").read(self.names, self.rows, self.missing)


class FileStream:
    """The tasks of a stream, one at a time. The first fixes the columns; later ones are matched by
    name.

    ``stream`` is a folder or a glob with one Parquet, CSV or npz file per task, or, with
    ``task_column``, one Parquet or CSV table whose tasks come in the order in which they first
    appear. ``features`` and ``drop`` are names or patterns (``*``, ``?``). ``columns``, where
    given, are those of a model that learnt an earlier part of the stream. Rows of X stay on disk
    until a node reads its block; ``missing="keep"`` lets NaN through to a model that fills it.
    """

    def __init__(
        self,
        stream: str | Path,
        target: str = "y",
        task_column: str | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        missing: str = "refuse",
        columns: Sequence[str] | None = None,
    ):
        self.stream, self.target, self.task_column = stream, target, task_column
        self.missing = missing
        self.files = stream_files(stream)
        self._table: Table | None = None
        self._rows: dict[str, Array] = {}
        if task_column is not None:
            self._find_tasks(task_column)
        first = self._open(self.files[0])
        if columns is None:
            columns = self._choose(first, features, drop)
        self.columns = list(columns)
        self._extra = set(first.features) - set(self.columns)

    def _find_tasks(self, task_column: str) -> None:
        if task_column == self.target:
            raise StreamError(f"{self.stream}: {task_column!r} is the target and the task column")
        if len(self.files) > 1:
            raise StreamError(f"{self.stream}: a task column needs one table, not several files")
        self._table = self._open(self.files[0])
        if task_column not in self._table.names:
            raise StreamError(f"{self.files[0]}: no column {task_column!r} for the task")
        labels = self._table.values(task_column)
        _, first, which = np.unique(labels, return_index=True, return_inverse=True)
        for code in np.argsort(first):
            self._rows[str(labels[first[code]])] = np.flatnonzero(which == code)

    @property
    def names(self) -> list[str]:
        """The tasks' names, in order."""
        return list(self._rows) if self._rows else [file.stem for file in self.files]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Task]:
        return (self.task(i) for i in range(len(self)))

    def task(self, i: int) -> Task:
        if self._rows:
            assert self._table is not None
            name = self.names[i]
            return self._task(self._table, name, self._rows[name])
        table = self._open(self.files[i])
        self._match(table)
        return self._task(table, self.files[i].stem, None)

    def _task(self, table: Table, name: str, rows: Array | None) -> Task:
        y = table.values(self.target, rows)
        return Task(FileColumns(table, self.columns, rows, self.missing), y, name=name)

    def _open(self, file: Path) -> Table:
        if self._table is not None:
            return self._table
        table = open_table(file, self.target)
        if self.target not in table.names:
            what = "array" if file.suffix.lower() == ".npz" else "column"
            raise StreamError(f"{file}: no {what} {self.target!r} for the target")
        return table

    def _choose(
        self, table: Table, features: Sequence[str] | None, drop: Sequence[str]
    ) -> list[str]:
        free = [name for name in table.features if name not in (self.target, self.task_column)]
        chosen = free if features is None else []
        for pattern in features or ():
            found = [n for n in free if fnmatch.fnmatchcase(n, pattern) and n not in chosen]
            if not found and pattern not in chosen:
                raise StreamError(f"{table.path}: no column {pattern!r} among the features")
            chosen += found
        for pattern in drop:
            dropped = [name for name in free if fnmatch.fnmatchcase(name, pattern)]
            if not dropped:
                raise StreamError(f"{table.path}: no column {pattern!r} to drop")
            chosen = [name for name in chosen if name not in dropped]
        if not chosen:
            raise StreamError(f"{table.path}: no columns beside the target")
        return chosen

    def _match(self, table: Table) -> None:
        present = set(table.names)
        for name in self.columns:
            if name not in present:
                raise StreamError(f"{table.path}: column {name!r} of the first task is missing")
        for name in table.features:
            if name not in self._extra and name not in self.columns and name != self.target:
                raise StreamError(f"{table.path}: column {name!r} is not in the first task")


def stream_files(stream: str | Path) -> list[Path]:
    """The files of a stream, one per task, in the order of their names."""
    path = Path(stream)
    found = path.iterdir() if path.is_dir() else map(Path, glob.glob(str(stream)))
    known = (f for f in found if f.suffix.lower() in SUFFIXES and f.is_file())
    files = sorted(known, key=lambda f: f.name)
    if not files:
        raise StreamError(f"{stream}: no {', '.join(SUFFIXES)} files there")
    return files


def read_stream(stream: str | Path, target: str = "y") -> list[Task]:
    """All tasks of a stream at once, in memory."""
    tasks = []
    for task in FileStream(stream, target):
        if task.y.dtype.kind == "U":
            raise StreamError(f"{stream}: column {target!r} is not numeric (text)")
        tasks.append(Task(np.ascontiguousarray(task.X), task.y.astype(float), name=task.name))
    return tasks


def read_groups(path: str | Path, columns: Sequence[str]) -> dict[str, list[int]]:
    """Which node holds which columns, from a JSON or TOML file: names of nodes, each with the names
    (or patterns) of its columns. Every column belongs to exactly one node."""
    try:
        text = Path(path).read_text()
        groups = tomllib.loads(text) if str(path).endswith(".toml") else json.loads(text)
    except (OSError, ValueError) as error:
        raise StreamError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from None
    if not isinstance(groups, dict) or not groups:
        raise StreamError(f"{path}: expected nodes, each with a list of its columns")
    owner: dict[str, str] = {}
    out: dict[str, list[int]] = {}
    for node, patterns in groups.items():
        if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
            raise StreamError(f"{path}: node {node!r} needs a list of column names")
        out[node] = []
        for pattern in patterns:
            found = [j for j, name in enumerate(columns) if fnmatch.fnmatchcase(name, pattern)]
            if not found:
                raise StreamError(f"{path}: node {node!r} names {pattern!r}, which is no column")
            for j in found:
                if columns[j] in owner:
                    raise StreamError(
                        f"{path}: column {columns[j]!r} is on node {owner[columns[j]]!r} and on "
                        f"{node!r}"
                    )
                owner[columns[j]] = node
                out[node].append(j)
        if not out[node]:
            raise StreamError(f"{path}: node {node!r} has no columns")
    for name in columns:
        if name not in owner:
            raise StreamError(f"{path}: column {name!r} is on no node")
    return out
