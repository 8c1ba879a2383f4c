"""Sparse files: matrices that scipy has saved, and svmlight. Nothing of them ever becomes dense.

Their columns are called x0, x1, ... by their place (of svmlight: by the number in the file). What a
file does not have of them is zero, so files may be of different widths.
"""

from __future__ import annotations

import gzip
import re
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..common.arrays import MOST_SQUARES, Array, Block, sum_of_squares
from ..errors import StreamError
from .npz import DAMAGED, Member, Npz, members
from .tables import Table, task_name, unreadable

NUMBERED = re.compile(r"x(0|[1-9]\d*)")
BESIDE = ("{stem}.{name}.npy", "{stem}_{name}.npy", "{stem}-{name}.npy", "{stem}.npy")
HEAD = 50  # lines of an svmlight file that are looked at before it is learnt


class NumberedTable(Table):
    """A sparse matrix; a column is known by its place."""

    sparse = True

    def __init__(self, path: Path, n_rows: int, width: int):
        self.path, self.n_rows, self.width = path, n_rows, width
        self.names = _numbered(width)

    def has(self, name: str) -> bool:
        return NUMBERED.fullmatch(name) is not None or self.has_values(name)

    @abstractmethod
    def has_values(self, name: str) -> bool:
        """Whether there is a vector of this name beside the matrix."""

    @abstractmethod
    def matrix(self) -> Any:
        """The whole of it, by columns."""

    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Block:
        """As the others do, but sparse; a column that the file does not have is zero."""
        whole = self.matrix()
        places = np.array([int(name[1:]) for name in names], dtype=int)
        there = places < whole.shape[1]
        some = whole[:, places[there]]
        if not there.all():
            counts = np.zeros(len(places) + 1, dtype=some.indptr.dtype)
            counts[1:][there] = np.diff(some.indptr)
            shape = (self.n_rows, len(places))
            some = sparse.csc_array((some.data, some.indices, np.cumsum(counts)), shape)
        if not sum_of_squares(some.data) < MOST_SQUARES:
            for j, name in enumerate(names):
                self.checked(some.data[some.indptr[j] : some.indptr[j + 1], None], [name], "refuse")
        return some if rows is None else some[rows]


@lru_cache(maxsize=4)  # the files of a stream are mostly of one width
def _numbered(width: int) -> list[str]:
    return [f"x{j}" for j in range(width)]


class SparseNpz(NumberedTable):
    """What `scipy.sparse.save_npz` writes. A vector y is in the same file, or beside it: for
    january.npz in january.y.npy, january_y.npy, january-y.npy or january.npy."""

    def __init__(self, path: Path, found: dict[str, Member] | None = None):
        try:
            self._members = members(path) if found is None else found
            with np.load(path, allow_pickle=False) as archive:
                shape = tuple(int(side) for side in archive["shape"])
        except DAMAGED as error:
            raise unreadable(path, error) from None
        if len(shape) != 2 or min(shape) < 0:
            raise StreamError(f"{path}: a matrix of shape {shape}")
        super().__init__(path, *shape)
        self.stored = int(np.prod(self._members["data"].shape))
        self._matrix: Any = None

    def matrix(self) -> Any:
        if self._matrix is None:
            try:
                found = sparse.load_npz(self.path)
                if hasattr(found, "check_format"):  # indices that point elsewhere would crash
                    found.check_format(full_check=True)
                found = sparse.csc_array(found)
                found.sum_duplicates()
            except DAMAGED as error:
                raise unreadable(self.path, error) from None
            if found.dtype.kind not in "biuf":
                raise StreamError(f"{self.path}: the matrix is not numeric ({found.dtype})")
            self._matrix = found.astype(float)
        return self._matrix

    def has_values(self, name: str) -> bool:
        return name in self._members or self._beside(name) is not None

    def values(self, name: str, rows: Array | None = None) -> Array:
        place = self._beside(name)
        if name not in self._members and place is None:
            raise StreamError(f"{self.path}: no {name!r} in it, or beside it")
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                inside = name in self._members
                array = archive[name] if inside else np.load(place or "", allow_pickle=False)
        except DAMAGED as error:
            raise unreadable(self.path if inside else Path(str(place)), error) from None
        where = self.path if inside else place
        if array.shape != (self.n_rows,):
            raise StreamError(f"{where}: shape {array.shape} for {self.n_rows} rows")
        if array.dtype.kind not in "biufU":
            raise StreamError(f"{where}: neither numbers nor texts ({array.dtype})")
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise StreamError(f"{where}: missing or infinite values")
        return np.asarray(array if rows is None else array[rows])

    def hint(self, name: str) -> str:
        return f": it may be in the file, or beside it as {task_name(self.path)}.{name}.npy"

    def _beside(self, name: str) -> Path | None:
        stem = task_name(self.path)
        paths = (self.path.parent / form.format(stem=stem, name=name) for form in BESIDE)
        return next((path for path in paths if path.is_file()), None)


class Svmlight(NumberedTable):
    """Lines of ``label number:value number:value ...``; the labels are called y."""

    def __init__(self, path: Path, only: bytes | None = None):
        from sklearn.datasets import load_svmlight_file

        try:
            source: Any = path if only is None else BytesIO(only)
            found, y = load_svmlight_file(str(source) if only is None else source, zero_based=True)
        except (*DAMAGED, UnicodeDecodeError) as error:
            raise unreadable(path, error) from None
        super().__init__(path, *found.shape)
        self._matrix, self.stored = sparse.csc_array(found), found.nnz
        self._y = y.astype(int) if np.all(y == np.round(y)) else y

    def matrix(self) -> Any:
        return self._matrix

    def has_values(self, name: str) -> bool:
        return name == "y"

    def hint(self, name: str) -> str:
        return ": the labels of an svmlight file are called 'y'"

    def values(self, name: str, rows: Array | None = None) -> Array:
        if name != "y":
            raise StreamError(f"{self.path}: no {name!r}; the labels of an svmlight file are 'y'")
        if not np.all(np.isfinite(self._y)):
            raise StreamError(f"{self.path}: labels that are missing or infinite")
        return np.asarray(self._y if rows is None else self._y[rows])


class SvmlightHead(Svmlight):
    """The first lines, and how wide the file is: every line's last number, which is its largest."""

    partial = True

    def __init__(self, path: Path):
        width, head = 0, []
        try:
            with _opened(path) as lines:
                for i, line in enumerate(lines):
                    if i < HEAD:
                        head.append(line)
                    last = line.split(b"#")[0].rpartition(b":")[0].rpartition(b" ")[2]
                    width = max(width, int(last) + 1 if last.isdigit() else 0)
        except DAMAGED as error:
            raise unreadable(path, error) from None
        super().__init__(path, b"".join(head))
        NumberedTable.__init__(self, path, self.n_rows, max(width, self.width))


def open_npz(path: Path) -> Npz | SparseNpz:
    """A matrix X and vectors by name, or a sparse matrix."""
    try:
        found = members(path)
    except (zipfile.BadZipFile, *DAMAGED):
        return Npz(path)  # which says what is wrong
    is_sparse = {"format", "shape", "data"} <= found.keys() and "X" not in found
    return SparseNpz(path, found) if is_sparse else Npz(path)


def _opened(path: Path) -> Any:
    return gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb")
