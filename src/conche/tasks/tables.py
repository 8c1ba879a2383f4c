"""One file of a stream: what columns it has, and any of them on demand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ..common.arrays import Array
from ..common.words import one_line
from ..errors import StreamError

SUFFIXES = (".parquet", ".csv", ".npz")


class Table(ABC):
    """A file that is open: its names and rows are known, its columns are read when asked for."""

    path: Path
    names: list[str]
    n_rows: int
    noun = "column"  # what messages call one of the names
    index: Sequence[str] = ()  # names of an index that pandas has saved beside the columns

    @property
    def features(self) -> list[str]:
        """The names that can be features, unless others are asked for."""
        return [name for name in self.names if name not in self.index]

    @abstractmethod
    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        """Numeric columns as one array.

        Parameters
        ----------
        names : which columns, in this order.
        rows : which rows, in this order; None for all.
        missing : "refuse" raises on a missing value; anything else reads it as NaN.

        Returns
        -------
        Rows x names, in Fortran order, because nodes work column by column.
        """

    @abstractmethod
    def values(self, name: str, rows: Array | None = None) -> Array:
        """One column as it is: numbers, or texts. Nothing may be missing."""


def is_table(path: Path) -> bool:
    """Whether the name ends as a file of a stream does, in small letters or capitals."""
    return path.suffix.lower() in SUFFIXES


def open_table(path: Path) -> Table:
    """Open a Parquet, CSV or npz file, as its suffix says.

    Raises
    ------
    StreamError : the file cannot be read, is empty, or has two columns of one name.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "january.npz", X=np.eye(3), y=np.ones(3))
    ...     open_table(Path(folder) / "january.npz").names
    ['x0', 'x1', 'x2', 'y']
    """
    from .arrow import Csv, Parquet  # here, because both build on Table
    from .npz import Npz

    if not is_table(path):
        raise StreamError(f"{path}: expected a .parquet, .csv or .npz file")
    kinds: dict[str, type[Parquet | Csv | Npz]] = {".parquet": Parquet, ".csv": Csv, ".npz": Npz}
    return _checked(kinds[path.suffix.lower()](path))


def peek(path: Path) -> Table:
    """The same, to look at its columns' names alone: of a CSV file only the beginning is read."""
    from .arrow import CsvHead

    if path.suffix.lower() != ".csv":
        return open_table(path)
    return _checked(CsvHead(path))


def read_stdin() -> Table:
    """CSV from standard input, all of it."""
    from .arrow import CsvInput

    return _checked(CsvInput())


def _checked(table: Table) -> Table:
    path = table.path
    if table.n_rows == 0:
        raise StreamError(f"{path}: no rows in it")
    twice = [name for name, count in Counter(table.names).items() if count > 1]
    if twice:
        raise StreamError(f"{path}: two columns are called {twice[0]!r}")
    return table


def unreadable(path: Path, error: Exception) -> StreamError:
    """The error that names the file and the first line of the reason."""
    said = str(error).splitlines() or [one_line(error)]
    return StreamError(f"{path}: cannot be read ({said[0]})")
