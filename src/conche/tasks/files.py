"""Streams on disk: one file per task in name order, or one table with a column that says which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path

import numpy as np

from ..common.arrays import Array, Block, even_sizes
from ..common.words import counted
from ..errors import ParameterError, StreamError
from .chosen import choose, find_tasks, warn_of_absent
from .columns import Aligned, Columns
from .encoding import values_beside
from .folders import stream_files
from .tables import PLAIN, Reading, Table, open_table, peek, task_name
from .task import Task

MOST_OPEN = 64  # files that stay open after a look at their columns


class FileColumns(Columns):
    """Features of one task, still on disk: a node reads its own columns and no others.

    Parameters
    ----------
    table : the open file; or its path, and it is opened when it is read.
    names, rows, missing, reading : what to read of it and how, as in `FileStream`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "january.csv"
    ...     _ = file.write_text("a,b,y\\n1,2,3\\n4,5,6\\n")
    ...     FileColumns(file, ["b"]).read().tolist()
    [[2.0], [5.0]]
    """

    names: Sequence[str]

    def __init__(
        self,
        table: Table | Path,
        names: Sequence[str],
        rows: Array | None = None,
        missing: str = "refuse",
        reading: Reading = PLAIN,
    ):
        self.table, self.names, self.rows, self.missing = table, names, rows, missing
        self.reading = reading  # to open it with
        if isinstance(table, Table):
            self.sparse, self.nnz = table.sparse, table.stored

    @property
    def shape(self) -> tuple[int, int]:
        n_rows = self._open().n_rows if self.rows is None else len(self.rows)
        return n_rows, len(self.names)

    def select(self, which: slice | Array) -> FileColumns:
        chosen = self.names[which] if isinstance(which, slice) else [self.names[j] for j in which]
        new = copy(self)
        new.names = chosen
        return new

    def reaching(self, names: Sequence[str]) -> FileColumns:
        more = values_beside(names, frozenset(self.names))
        if not more:
            return self
        new = copy(self)
        new.names = [*self.names, *more]
        return new

    def read(self) -> Block:
        table = self._open()
        zero = table.zero([name for name in self.names if not table.has(name)])
        names = [zero.get(name, name) for name in self.names]
        block = table.read(names, self.rows, self.missing)
        if zero:
            block[:, [name in zero for name in self.names]] *= 0.0  # what is missing stays so
        return block

    def sendable(self) -> FileColumns:
        """The file's absolute path in place of the open file."""
        path = self.table if isinstance(self.table, Path) else self.table.path
        new = copy(self)
        new.table = path.absolute()
        return new

    def _open(self) -> Table:
        return open_table(self.table, self.reading) if isinstance(self.table, Path) else self.table


class FileStream:
    """The tasks of a stream on disk, one at a time.

    Columns are matched by name. Later tasks may have more of them than the first, unless
    ``growing`` is set to False; where missing values are kept, they may have fewer. A model puts
    that in order. Rows of X stay on disk until a node reads its block.

    Parameters
    ----------
    stream : a folder or a glob with one Parquet, CSV or npz file per task, in the natural order of
        their names (2 before 10); or, with
        ``task_column``, one Parquet or CSV table, whose tasks come in the order in which they
        first appear.
    target : the column (of an npz file: the array) with the target.
    task_column : the column that says which task a row belongs to.
    features, drop : take only these columns; take all but these. Names or patterns (``*``, ``?``).
    missing : "keep" lets NaN through to a model that fills it; "refuse" names file and column.
    weight : the column (of an npz file: the array) that says what each sample counts for.
    reading : how texts and dates become numbers, and what separates the values of a CSV file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for month in ("january", "february"):
    ...         np.savez(Path(folder) / f"{month}.npz", X=np.eye(3), y=np.ones(3))
    ...     [(task.name, task.X.shape) for task in FileStream(folder)]
    [('february', (3, 3)), ('january', (3, 3))]
    """

    def __init__(
        self,
        stream: str | Path,
        target: str = "y",
        task_column: str | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        missing: str = "refuse",
        weight: str | None = None,
        reading: Reading = PLAIN,
    ):
        self.reading = reading
        self.stream, self.target, self.task_column = stream, target, task_column
        self.missing, self.weight = missing, weight
        self._features, self._drop, self._given = features, drop, False
        self.growing = True  # whether tasks may have columns that the first has not
        self.files = stream_files(stream)
        self._latest: tuple[Path, Table] | None = None
        self._looked_at: dict[Path, Table] = {}  # by `check`, and still open
        first = self._open(self.files[0])
        self.names: list[str] = [task_name(file) for file in self.files]  # of the tasks, in order
        self._rows: list[Array] | None = None
        if task_column is not None:
            self.names, self._rows = self._find_tasks(first, task_column)
        self.notes: list[str] = []  # what users should hear of
        self.lacked: list[str] = []  # rows that some node does not have: all read the same
        self.columns = self._choose(self._widest(first))
        self._note_index(first)
        self._sources = {first.source(name) for name in self.columns} - {*self.columns}
        self._known = {*first.features, *self.columns, target, *([weight] if weight else [])}

    def of_model(self, columns: Sequence[str] | None) -> FileStream:
        """The same for a model that is trained: every task has its columns and no others. What a
        file does not have of them is missing (NaN), where missing values are kept. None: as it is,
        for a model that has no names for its columns."""
        if columns is not None:
            self.columns, self._given, self.growing = list(columns), True, False
        return self

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        tasks = f"{counted(len(self), 'task')}, {self.names[0]!r} to {self.names[-1]!r}"
        return f"FileStream({str(self.stream)!r}: {tasks}; {len(self.columns)} columns)"

    def __iter__(self) -> Iterator[Task]:
        return (self.task(i) for i in range(len(self)))

    def task(self, i: int) -> Task:
        """Task number i: its target is read, its features are not yet."""
        rows = None if self._rows is None else self._rows[i]
        table = self._open(self.files[i if rows is None else 0])
        names = self._match(table)
        y = table.values(self.target, rows)
        X: Columns = FileColumns(table, names, rows, self.missing, self.reading)
        if self._given:
            X = Aligned.to(X, self.columns)
        return Task(X, y, name=self.names[i], sample_weight=self._weights(table, rows))

    def _weights(self, table: Table, rows: Array | None) -> Array | None:
        if self.weight is None:
            return None
        weights = table.values(self.weight, rows)
        if weights.dtype.kind not in "biuf":
            raise StreamError(f"{table.path}: {table.noun} {self.weight!r} is text, not weights")
        return weights.astype(float)

    def _open(self, file: Path) -> Table:
        """Open a file, unless it is the one that was opened last."""
        if self._latest is None or self._latest[0] != file:
            self._latest = None  # a table may be large: let go of it before the next is opened
            table = self._looked_at.pop(file, None) or open_table(file, self.reading)
            self._check_names(table)
            self._latest = file, table
        return self._latest[1]

    def _check_names(self, table: Table) -> None:
        for name, what in ((self.target, "target"), (self.weight, "weight")):
            if name is not None and not table.has(name):
                said = f"{table.path}: no {table.noun} {name!r} for the {what}{table.hint(name)}"
                raise StreamError(said)

    def _find_tasks(self, table: Table, task_column: str) -> tuple[list[str], list[Array]]:
        if task_column == self.target:
            raise StreamError(f"{self.stream}: {task_column!r} is the target and the task column")
        return find_tasks(table, task_column, self.files)

    def _choose(self, table: Table, first: bool = True) -> list[str]:
        """The columns that are asked for; what is asked for must be in the ``first`` task."""
        if self.weight == self.target:
            raise StreamError(f"{table.path}: {self.weight!r} is the target and the weight")
        taken = [name for name in (self.target, self.task_column, self.weight) if name is not None]
        return choose(table, self._features, self._drop, taken, self.reading.categories, first)

    def _widest(self, first: Table) -> Table:
        """Of sparse files the one with most columns, so that all are there from the start."""
        if not first.sparse or self.task_column is not None:
            return first
        others = (self._peek(file) for file in self.files[1:])
        return max((first, *others), key=lambda table: len(table.names))

    @property
    def has_parts(self) -> bool:
        """Whether columns stand for others: values of a text, parts of a date."""
        return bool(self.reading.categories or self.reading.dates)

    def blocks(self, n_nodes: int) -> list[list[str]]:
        """An even split of the files' own columns over nodes, as patterns: all values of a text,
        those that come later too, are on one node."""
        table = self._open(self.files[0])
        sources = list(dict.fromkeys(table.source(name) for name in self.columns))
        if not 1 <= n_nodes <= len(sources):
            raise ParameterError(
                f"n_nodes={n_nodes}: {counted(len(sources), 'column')} fit on 1 to {len(sources)} "
                f"nodes"
            )
        patterns = [self.meant(name) for name in sources]
        ends = np.cumsum([0, *even_sizes(len(patterns), n_nodes)])
        return [patterns[first:last] for first, last in pairwise(ends.tolist())]

    def meant(self, name: str) -> str:
        """A name, or the pattern of the columns that stand for it."""
        if not self.has_parts or name in self.columns:
            return name
        table = self._open(self.files[0])
        sources = {table.source(column) for column in self.columns}
        return table.pattern(name) if name in sources else name

    def _note_index(self, table: Table) -> None:
        left_out = [name for name in table.index if self._features is None]
        for name in left_out[:1]:
            self.notes.append(
                f"{table.path}: column {name!r} is an index that pandas has saved, and left out; "
                f"--features brings it back"
            )

    def check(self) -> None:
        """Refuse files without the columns they should have, before anything is learnt; of a CSV
        file the first line is read."""
        if self._rows is not None:  # one table, which is open
            return
        for file in self.files[1:]:  # the first was looked at to begin with
            table = self._peek(file)
            self._check_names(table)
            self._match(table)

    def _peek(self, file: Path) -> Table:
        """A file to look at its columns; it stays open, unless it is only the beginning of one."""
        if file in self._looked_at:
            return self._looked_at[file]
        table = peek(file, self.reading)
        if not table.partial and len(self._looked_at) < MOST_OPEN:
            self._looked_at[file] = table
        return table

    def _match(self, table: Table) -> list[str]:
        """The columns to read of a file."""
        absent = table.lacks(self.columns)
        if absent and not (self.missing == "keep" and (self.growing or self._given)):
            whose = "model" if self._given else "first task"
            raise StreamError(table.why_absent(absent[0], whose))
        if absent and self._given:
            warn_of_absent(table.path, absent, self.columns)
        new: list[str] = []
        if self.growing and (self.has_parts or not self._known.issuperset(table.names)):
            known = set(self.columns)
            new = [name for name in self._choose(table, first=False) if name not in known]
            for name in new:
                if name in self._sources:  # whose values, or parts, were columns so far
                    raise StreamError(f"{table.path}: column {name!r} has numbers here, not before")
        elif not self.growing and not self._given:
            for name in table.features:
                if name not in self._known:
                    raise StreamError(f"{table.path}: column {name!r} is not in the first task")
        if len(absent) == len(self.columns):
            raise StreamError(f"{table.path}: has none of the stream's columns")
        lacking = set(absent)
        there = [name for name in self.columns if name not in lacking] if absent else self.columns
        return [*there, *new] if new else there
