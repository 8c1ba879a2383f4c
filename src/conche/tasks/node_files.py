"""One node's own files, as a description that travels to where they are."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..common.arrays import Array, Block, as_dense
from ..common.words import counted, did_you_mean
from ..errors import StreamError
from .chosen import choose, find_tasks
from .columns import Aligned
from .files import FileColumns
from .folders import stream_files
from .keys import Keys, check_key
from .tables import PLAIN, Reading, Table, open_table, peek, task_name

PIECE = 1 << 20  # bytes of a file at a time


class Found(NamedTuple):
    """A task's table, and which of its rows are the task's; None: all."""

    table: Table
    rows: Array | None

    @property
    def n_rows(self) -> int:
        """Of the task."""
        return self.table.n_rows if self.rows is None else len(self.rows)


@dataclass(frozen=True)
class NodeFiles:
    """Where a node finds its tasks, on its own machine.

    Parameters
    ----------
    name : of the node.
    files : a folder or a pattern, one file a task; with ``task_column`` one table.
    features, drop : take only these columns, take all but these; names or patterns.
    key : columns that rows are matched by; none: rows are in the same order everywhere.
    task_column : the column that says which task a row is of.
    missing : "keep" reads what is missing as NaN, whole rows too; "refuse" does not.
    reading : how texts and dates become numbers, and what separates the values of a CSV file.
    """

    name: str
    files: str
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    task_column: str | None = None
    missing: str = "refuse"
    reading: Reading = PLAIN

    def tasks(self) -> list[str]:
        """The names of the tasks that are there, in order."""
        files = stream_files(self.files)
        if self.task_column is None:
            return [task_name(file) for file in files]
        return list(self._by_column(files))

    def find(self, task: str, only_look: bool = False) -> Found:
        """One task's rows; ``only_look`` at the names of its columns."""
        files = stream_files(self.files)
        if self.task_column is not None:
            rows = self._by_column(files)
            if task not in rows:
                near = did_you_mean(task, rows)
                raise StreamError(
                    f"{files[0]}: no task {task!r} in column {self.task_column!r}{near}"
                )
            return Found(_kept_open(files[0], _stamp(files[0]), self.reading), rows[task])
        for file in files:
            if task_name(file) == task:
                return Found((peek if only_look else open_table)(file, self.reading), None)
        near = did_you_mean(task, [task_name(file) for file in files])
        raise StreamError(f"{self.files}: no file for the task {task!r}{near}")

    def _by_column(self, files: list[Path]) -> dict[str, Array]:
        table = _kept_open(files[0], _stamp(files[0]), self.reading)
        names, rows = find_tasks(table, str(self.task_column), files)
        return dict(zip(names, rows, strict=True))

    def choose(self, table: Table, first: bool = True) -> list[str]:
        """What to learn from in a table; all that is named must be in the ``first`` one."""
        taken = [*self.key, *([self.task_column] if self.task_column else [])]
        return choose(table, self.features, self.drop, taken, self.reading.categories, first)

    def columns(self, table: Table, known: Sequence[str], growing: bool) -> list[str]:
        """Which columns of one task there are, in the order of those that are ``known``, and after
        them the new ones, where they may grow."""
        absent = set(table.lacks(known))
        if absent and self.missing == "refuse":
            name = next(name for name in known if name in absent)
            raise StreamError(table.why_absent(name, "first task" if growing else "model"))
        there = [name for name in known if name not in absent]
        if not there:
            raise StreamError(f"{table.path}: has none of the node's columns, such as {known[0]!r}")
        if not growing:
            return there
        old, before = set(known), {table.source(name) for name in known} - set(known)
        new = [name for name in self.choose(table, first=False) if name not in old]
        for name in new:
            if name in before:  # whose values, or parts, were columns so far
                raise StreamError(f"{table.path}: column {name!r} has numbers here, not before")
        return [*there, *new]

    def places(self, found: Found, keys: Keys) -> Array:
        """Which row of its own each of the task's keys is; -1: none."""
        order, rows = keys.order(self.keys(found, keys.salt)), found.rows
        return order if rows is None else np.where(order >= 0, rows[order], -1)

    def keys(self, found: Found, salt: bytes | None) -> Keys:
        """A node's own; errors tell them only if they travel as they are."""
        return Keys.of(found.table, self.key, salt, found.rows, tell=salt is None)

    def read(self, task: str, names: Sequence[str], keys: Keys | None, n_rows: int) -> Block:
        """Some columns of a task, its rows in the order of the keys."""
        found = self.find(task)
        table, rows = found
        if keys is not None:
            rows = self.places(found, keys)
        check_rows(found if keys is None else Found(table, rows), n_rows)
        lacking = set(table.lacks(names))
        there = [name for name in names if name not in lacking]

        def block(which: Array | None) -> Block:
            return Aligned.to(FileColumns(table, there, which, self.missing), names).read()

        if lacking and self.missing == "refuse":
            raise StreamError(table.why_absent(next(iter(lacking)), "task"))
        gone = np.zeros(0, dtype=bool) if rows is None else rows < 0
        if np.any(gone) and self.missing == "refuse":
            raise StreamError(f"{table.path}: rows have gone since they were matched")
        if not np.any(gone):
            return block(rows)
        assert rows is not None
        out = np.full((n_rows, len(names)), np.nan, order="F")
        if not np.all(gone):
            out[~gone] = as_dense(block(rows[~gone]))
        return out

    def check(self, table: Table) -> None:
        """Refuse a table without the key."""
        check_key(table, self.key)


def check_rows(found: Found, n_rows: int) -> None:
    """Where nothing matches rows, there must be as many as the target has."""
    if found.n_rows != n_rows:
        raise StreamError(
            f"{found.table.path}: {counted(found.n_rows, 'row')}, and the target has {n_rows}; "
            f"rows that are not the same everywhere need a key"
        )


def _stamp(file: Path) -> tuple[int, int]:
    state = file.stat()
    return state.st_mtime_ns, state.st_size


@lru_cache(maxsize=16)
def _kept_open(file: Path, stamp: tuple[int, int], reading: Reading) -> Table:
    """A table with all tasks in it is opened once."""
    return open_table(file, reading)


def check_sum(file: Path) -> int:
    """What a file is known by again."""
    return _check_sum(file, _stamp(file))


@lru_cache(maxsize=64)
def _check_sum(file: Path, stamp: tuple[int, int]) -> int:
    found = 0
    with file.open("rb") as stream:
        while piece := stream.read(PIECE):
            found = zlib.crc32(piece, found)
    return found
