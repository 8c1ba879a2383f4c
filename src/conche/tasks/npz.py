"""npz files: a matrix and vectors by name. NumPy is all they need."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from ..common.arrays import Array
from ..errors import StreamError
from .tables import Table, unreadable

# what NumPy and zipfile raise on a file that is not what it says
DAMAGED = (
    OSError,
    ValueError,
    EOFError,
    TypeError,
    LookupError,
    AttributeError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


CHUNK = 1 << 24  # bytes read at a time


class Member(NamedTuple):
    """One array of an npz file, as its own header describes it."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    offset: int | None  # of its numbers in the file; None where they are compressed


class Npz(Table):
    """A matrix ``X`` and vectors by name, each read when it is asked for. Of an X that is not
    compressed, no more than the columns asked for. Its columns are called x0, x1, ... unless an
    array ``columns`` names them."""

    noun = "array"

    def __init__(self, path: Path):
        self.path = path
        try:
            self._members = members(path)
        except zipfile.BadZipFile:
            raise unreadable(path, ValueError("not an npz file of plain arrays")) from None
        except DAMAGED as error:
            raise unreadable(path, error) from None
        if "X" not in self._members:
            raise StreamError(f"{path}: no array 'X' in it")
        X = self._members["X"]
        if len(X.shape) != 2:
            raise StreamError(f"{path}: X has shape {X.shape}, not a matrix")
        if X.dtype.kind not in "biuf":
            raise StreamError(f"{path}: array 'X' is not numeric ({X.dtype})")
        names = self._names() if "columns" in self._members else None
        if names is not None and len(names) != X.shape[1]:
            raise StreamError(f"{path}: {len(names)} names for {X.shape[1]} columns of X")
        self._own = [f"x{j}" for j in range(X.shape[1])] if names is None else names
        self._place = {name: j for j, name in enumerate(self._own)}
        vectors = [name for name in self._members if name not in ("X", "columns")]
        self.names = [*self._own, *vectors]
        self.n_rows = X.shape[0]

    @property
    def features(self) -> list[str]:
        return self._own  # other arrays of the file are none of ours

    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        out = self._columns(np.array([self._place[name] for name in names]))
        out = out if rows is None else np.asfortranarray(out[rows])
        return self.checked(out, names, missing)

    def values(self, name: str, rows: Array | None = None) -> Array:
        member = self._members.get(name)
        if member is None or name in ("X", "columns"):
            raise StreamError(f"{self.path}: no array {name!r} in it")
        if member.shape != (self.n_rows,):
            X = self._members["X"].shape
            raise StreamError(f"{self.path}: X has shape {X} and {name} {member.shape}")
        if member.dtype.kind not in "biufU":
            raise StreamError(f"{self.path}: array {name!r} is not numeric ({member.dtype})")
        array = self._whole(name)
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise StreamError(f"{self.path}: array {name!r} has missing or infinite values")
        return np.asarray(array if rows is None else array[rows])

    def _names(self) -> list[str]:
        member = self._members["columns"]
        if len(member.shape) != 1 or member.dtype.kind not in "US":
            raise StreamError(f"{self.path}: array 'columns' must be a list of names")
        array = self._whole("columns")
        texts = np.char.decode(array) if array.dtype.kind == "S" else array
        return [str(name) for name in texts]

    def _whole(self, name: str) -> Array:
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                return np.asarray(archive[name])
        except DAMAGED as error:
            raise unreadable(self.path, error) from None

    def _columns(self, places: Array) -> Array:
        """Columns of X, in double precision and Fortran order."""
        X = self._members["X"]
        if X.offset is None:
            return np.array(self._whole("X")[:, places], dtype=float, order="F")
        out = np.empty((self.n_rows, len(places)), order="F")
        try:
            with open(self.path, "rb") as file:
                if X.fortran:
                    for j, place in enumerate(places):
                        out[:, j] = self._numbers(file, int(place) * self.n_rows, self.n_rows)
                    return out
                width = X.shape[1]
                step = max(CHUNK // (X.dtype.itemsize * width), 1)
                for first in range(0, self.n_rows, step):
                    last = min(first + step, self.n_rows)
                    some = self._numbers(file, first * width, (last - first) * width)
                    out[first:last] = some.reshape(-1, width)[:, places]
                return out
        except OSError as error:
            raise unreadable(self.path, error) from None

    def _numbers(self, file: IO[bytes], first: int, count: int) -> Array:
        """Some of X's numbers, in the order of the file. They are read and not mapped: a file that
        becomes shorter under a map ends the process."""
        X = self._members["X"]
        assert X.offset is not None
        file.seek(X.offset + first * X.dtype.itemsize)
        data = file.read(count * X.dtype.itemsize)
        if len(data) < count * X.dtype.itemsize:
            raise StreamError(f"{self.path}: became shorter while it was read")
        return np.frombuffer(data, X.dtype)


def members(path: Path) -> dict[str, Member]:
    """The arrays of the file by name; none of them is read, all are as long as they say."""
    found = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                name = info.filename.removesuffix(".npy")
                found[name] = _member(name, archive, info, file)
    return found


def _member(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: IO[bytes]) -> Member:
    with archive.open(info) as member:
        version = npy.read_magic(member)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(member)
        inside = member.tell()
    numbers = math.prod(shape) * dtype.itemsize
    wrong = min(shape, default=0) < 0 or numbers != info.file_size - inside
    if not dtype.hasobject and wrong:
        raise ValueError(
            f"array {name!r} of shape {shape} needs {numbers} bytes and has "
            f"{info.file_size - inside}"
        )
    offset = None
    if info.compress_type == zipfile.ZIP_STORED:
        file.seek(info.header_offset + 26)  # the member's own header has names of any length
        lengths = np.frombuffer(file.read(4), "<u2")
        offset = info.header_offset + 30 + int(lengths.sum()) + inside
    return Member(name, shape, dtype, fortran, offset)
