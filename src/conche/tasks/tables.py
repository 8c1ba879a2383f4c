"""One file of a stream: what columns it has, and any of them on demand."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ..common.arrays import MOST_SQUARES, Array, Block, sum_of_squares
from ..common.words import did_you_mean, in_line, one_line, too_large
from ..errors import ParameterError, StreamError
from .encoding import values_beside
from .key_texts import exact_texts

# after these words parsers show a row or a value of it
CONTENTS = re.compile(r"(, got \d+|invalid value|string to float|with base 10)\b.*")
SPARSE = (".svm", ".svmlight", ".libsvm")
ZIPPED = (".csv", *SPARSE)  # which may also end in .gz
SUFFIXES = (".parquet", ".csv", ".csv.gz", ".npz", *SPARSE)


@dataclass(frozen=True)
class Reading:
    """How the columns of a file become numbers.

    Parameters
    ----------
    separator : between the values of a CSV file.
    categories : text columns (names or patterns) of which every value becomes a column of zeros and
        ones, ``wind=north``; those that are not meant are refused.
    dates : of columns with dates or times, "number": days since 1970, ``time.days``; "calendar":
        ``time.year``, ``time.month``, ``time.day``, ``time.weekday``, ``time.hour``. None: refused.

    Examples
    --------
    >>> import tempfile
    >>> from conche.tasks import FileColumns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "january.csv"
    ...     _ = file.write_text("wind,y\\nnorth,1\\nsouth,2\\n")
    ...     FileColumns(file, ["wind=north"], reading=Reading(categories=("wind",))).read().tolist()
    [[1.0], [0.0]]
    """

    separator: str = ","
    categories: tuple[str, ...] = ()
    dates: str | None = None

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\n\r':
            raise ParameterError(f"separator={self.separator!r} must be one character")
        if self.dates not in (None, "number", "calendar"):
            raise ParameterError(f"dates={self.dates!r} must be 'number' or 'calendar'")


PLAIN = Reading()


class Table(ABC):
    """A file that is open: its names and rows are known, its columns are read when asked for."""

    path: Path
    names: list[str]
    n_rows: int
    noun = "column"  # what messages call one of the names
    sparse = False  # whether columns are read as a scipy.sparse matrix
    stored: int | None = None  # numbers in it, where it is sparse
    partial = False  # whether it is the beginning of a file, and no more
    index: Sequence[str] = ()  # names of an index that pandas has saved beside the columns

    @property
    def features(self) -> list[str]:
        """The names that can be features, unless others are asked for."""
        return [name for name in self.names if name not in self.index]

    def has(self, name: str) -> bool:
        """Whether a column of this name can be read."""
        return name in self._names_set

    def lacks(self, names: Collection[str]) -> list[str]:
        """Those of the columns that cannot be read."""
        if self._names_set.issuperset(names):  # quick, for many
            return []
        absent = [name for name in names if not self.has(name)]
        zero = self.zero(absent)
        return [name for name in absent if name not in zero]

    def zero(self, absent: Collection[str]) -> dict[str, str]:
        """Those of the columns that the file lacks and that are zero in it, with the column that
        shows it: another value of the same text."""
        return values_beside(absent, self._names_set) if absent else {}

    @cached_property
    def _names_set(self) -> frozenset[str]:
        return frozenset(self.names)

    def hint(self, name: str) -> str:
        """What may be wrong, for a message that the file has no such column."""
        return did_you_mean(name, self.names)

    def why_absent(self, name: str, whose: str) -> str:
        """Why a column that should be there cannot be read."""
        return f"{self.path}: column {name!r} of the {whose} is missing{self.hint(name)}"

    def copied(self, name: str) -> Array:
        """One column as it is, to be written elsewhere; None where a value is missing."""
        return self.values(name)

    def source(self, name: str) -> str:
        """The column of the file that a column is read from."""
        return name

    def parts(self, source: str) -> list[str]:
        """All columns that a text of the file could be read as; none of another column."""
        return []

    def pattern(self, name: str) -> str:
        """What all columns that stand for one of the file's are called."""
        return name

    def encoded(self, names: Sequence[str], first: bool = True) -> list[str]:
        """What is read in place of these columns: themselves, where they are numbers."""
        return list(names)

    @abstractmethod
    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Block:
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

    def checked(self, block: Array, names: Sequence[str], missing: str) -> Array:
        """The block that was read, if all of its numbers can be learnt from."""
        if sum_of_squares(block) < MOST_SQUARES:
            return block
        for name, column in zip(names, block.T, strict=True):
            there = column[~np.isnan(column)]
            if np.isinf(there).any() or (missing == "refuse" and len(there) < len(column)):
                raise StreamError(f"{self.path}: column {name!r} has missing or infinite values")
            if not sum_of_squares(there) < MOST_SQUARES:
                raise StreamError(f"{self.path}: {too_large(f'column {name!r}')}")
        return block

    @abstractmethod
    def values(self, name: str, rows: Array | None = None) -> Array:
        """One column as it is: numbers, or texts. Nothing may be missing."""

    def spelled(self, name: str, rows: Array | None = None) -> list[str]:
        """One column as texts that lose no digit, for keys. Nothing may be missing."""
        texts = exact_texts(self.values(name, rows))
        if texts is None:
            raise StreamError(
                f"{self.path}: the key {name!r} has more digits than a number keeps: store it as "
                f"text"
            )
        return texts


def suffix_of(path: Path) -> str | None:
    """How the name of a file of a stream ends, in small letters; None: as no such file."""
    name = path.name.lower()
    bare = name.removesuffix(".gz")
    end = Path(bare).suffix
    known = end in ZIPPED if bare != name else end in SUFFIXES
    return (end + ".gz" if bare != name else end) if known else None


def task_name(path: Path) -> str:
    """The name of a file without its ending.

    Examples
    --------
    >>> task_name(Path("months/2014-03.csv.gz"))
    '2014-03'
    """
    return path.name[: len(path.name) - len(suffix_of(path) or path.suffix)]


def open_table(path: Path, reading: Reading = PLAIN) -> Table:
    """Open a Parquet, CSV, npz or svmlight file, as its name ends.

    Raises
    ------
    StreamError : the file cannot be read, is empty, or has two columns of one name.

    Parameters
    ----------
    path : of the file.
    reading : how its columns become numbers.

    Returns
    -------
    An open `Table`, which knows its names and reads what it is asked for.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "january.npz", X=np.eye(3), y=np.ones(3))
    ...     open_table(Path(folder) / "january.npz").names
    ['x0', 'x1', 'x2', 'y']
    """
    from .arrow import Parquet  # here, because all build on Table
    from .csv_files import Csv
    from .numbered import Svmlight, open_npz

    end = (suffix_of(path) or "").removesuffix(".gz")
    if not end:
        raise StreamError(f"{path}: expected a file that ends in {', '.join(SUFFIXES)}")
    if end == ".npz":
        return _checked(open_npz(path))
    if end in SPARSE:
        return _checked(Svmlight(path))
    return _checked((Parquet if end == ".parquet" else Csv)(path, reading))


def peek(path: Path, reading: Reading = PLAIN) -> Table:
    """The same, to look at its columns' names alone: of a text file only the beginning is read."""
    from .csv_files import CsvHead
    from .numbered import SvmlightHead

    end = (suffix_of(path) or "").removesuffix(".gz")
    if end == ".csv":
        return _checked(CsvHead(path, reading))
    return _checked(SvmlightHead(path)) if end in SPARSE else open_table(path, reading)


def read_stdin(reading: Reading = PLAIN) -> Table:
    """CSV from standard input, all of it."""
    from .csv_files import CsvInput

    return _checked(CsvInput(reading))


def _checked(table: Table) -> Table:
    path = table.path
    if table.n_rows == 0:
        raise StreamError(f"{path}: no rows in it")
    twice = []
    if not table.sparse:  # whose columns have numbers, and are many
        twice = [name for name, count in Counter(table.names).items() if count > 1]
    if twice:
        raise StreamError(f"{path}: two columns are called {twice[0]!r}")
    return table


def unreadable(path: Path, error: Exception) -> StreamError:
    """The error that names the file and the first line of the reason, without what rows hold: the
    file may be a node's own, and whoever may look into it finds the row by its number."""
    first = (str(error).splitlines() or [one_line(error)])[0]
    if isinstance(error, OSError):  # pyarrow's have the system's word at their end
        first = (error.strerror or first).rpartition("Detail: [errno ")[2].rpartition("] ")[2]
    reason = CONTENTS.sub(r"\1", in_line(first))
    return StreamError(f"{path}: cannot be read ({reason})")
