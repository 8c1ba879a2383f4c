"""A matrix whose columns are read when a node asks for them, and not before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from .task import Array


class Source(ABC):
    """Where columns are, without any of them: small, and the same on every machine."""

    @abstractmethod
    def columns(self, which: slice | Array) -> Source:
        """Some of them."""

    @abstractmethod
    def read(self) -> Array: ...


class Columns(ABC):
    """What stands for X where the columns are elsewhere: on disk, or still to be computed."""

    shape: tuple[int, int]
    names: list[str] | None = None
    dtype = np.dtype(np.float64)

    @abstractmethod
    def read(self, columns: slice | Array) -> Array:
        """Some columns, by their places: n_samples x count."""

    def source(self) -> Source | None:
        """Where the columns are, for a node that reads them itself; None if they are here."""
        return None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.read(slice(None)), dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]
