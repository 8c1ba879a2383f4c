"""npz files: a matrix and vectors by name. NumPy is all they need."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

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
    zipfile.BadZipFile,
)


class Npz(Table):
    """A matrix ``X`` and vectors by name; X is memory-mapped where it is not compressed. Its
    columns are called x0, x1, ... unless an array ``columns`` names them."""

    noun = "array"

    def __init__(self, path: Path):
        self.path = path
        try:
            with np.load(path, allow_pickle=False) as archive:
                if "X" not in archive:
                    raise StreamError(f"{path}: no array 'X' in it")
                self._vectors = {
                    key: archive[key] for key in archive.files if key not in ("X", "columns")
                }
                names = _names(path, archive["columns"]) if "columns" in archive else None
                mapped = _mapped(path)
                self._X = archive["X"] if mapped is None else mapped
        except StreamError:
            raise
        except DAMAGED as error:
            if "pickle" in str(error) or isinstance(error, TypeError):
                error = ValueError("not an npz file of plain arrays")
            raise unreadable(path, error) from None
        X = self._X
        if X.ndim != 2:
            raise StreamError(f"{path}: X has shape {X.shape}, not a matrix")
        if X.dtype.kind not in "biuf":
            raise StreamError(f"{path}: array 'X' is not numeric ({X.dtype})")
        if names is not None and len(names) != X.shape[1]:
            raise StreamError(f"{path}: {len(names)} names for {X.shape[1]} columns of X")
        self._own = [f"x{j}" for j in range(X.shape[1])] if names is None else names
        self._place = {name: j for j, name in enumerate(self._own)}
        self.names = [*self._own, *self._vectors]
        self.n_rows = len(X)

    @property
    def features(self) -> list[str]:
        return self._own  # other arrays of the file are none of ours

    def read(self, names: Sequence[str], rows: Array | None, missing: str) -> Array:
        places = np.array([self._place[name] for name in names])
        run = slice(places[0], places[-1] + 1)
        consecutive = np.array_equal(places, np.arange(run.start, run.stop))
        block = self._X[:, run] if consecutive else self._X[:, places]
        out = np.array(block if rows is None else block[rows], dtype=float, order="F")
        bad = np.isinf(out) if missing != "refuse" else ~np.isfinite(out)
        if bad.any():
            name = names[int(np.flatnonzero(bad.any(axis=0))[0])]
            raise StreamError(
                f"{self.path}: array 'X' has missing or infinite values (column {name!r})"
            )
        return out

    def values(self, name: str, rows: Array | None = None) -> Array:
        if name not in self._vectors:
            raise StreamError(f"{self.path}: no array {name!r} in it")
        array = self._vectors[name]
        if array.shape != (self.n_rows,):
            raise StreamError(f"{self.path}: X has shape {self._X.shape} and {name} {array.shape}")
        if array.dtype.kind not in "biufU":
            raise StreamError(f"{self.path}: array {name!r} is not numeric ({array.dtype})")
        if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
            raise StreamError(f"{self.path}: array {name!r} has missing or infinite values")
        return np.asarray(array if rows is None else array[rows])


def _names(path: Path, array: Array) -> list[str]:
    if array.ndim != 1 or array.dtype.kind not in "US":
        raise StreamError(f"{path}: array 'columns' must be a list of names")
    texts = np.char.decode(array) if array.dtype.kind == "S" else array
    return [str(name) for name in texts]


def _mapped(path: Path) -> Array | None:
    """X of an npz file without reading it; None where it is compressed."""
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("X.npy")
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        with archive.open(info) as member:
            version = npy.read_magic(member)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(member)
            inside = member.tell()
    if dtype.hasobject or not np.prod(shape):
        return None
    with open(path, "rb") as file:  # the member's own header has names of any length
        file.seek(info.header_offset + 26)
        lengths = np.frombuffer(file.read(4), "<u2")
    offset = info.header_offset + 30 + int(lengths.sum()) + inside
    order: Literal["C", "F"] = "F" if fortran else "C"
    return np.memmap(path, dtype, "r", offset, shape, order)
