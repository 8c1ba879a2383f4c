"""A matrix whose columns are read when a node asks for them, and not before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.arrays import Array


class Columns(ABC):
    """What stands for X where the columns are elsewhere: on disk, or still to be computed.

    A node reads its own block, ``X.select(which).read()``, and no other column is touched. A node
    on another machine is sent ``X.select(which).sendable()`` and reads that itself.
    """

    names: Sequence[str] | None = None
    dtype: np.dtype[Any] = np.dtype(np.float64)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features), known before anything is read."""

    @abstractmethod
    def select(self, which: slice | Array) -> Columns:
        """Some of the columns, by their places, in that order; nothing is read."""

    @abstractmethod
    def read(self) -> Array:
        """All of these columns: an n_samples x n_features array of ``dtype``."""

    def sendable(self) -> Columns | None:
        """The same columns as a small description that another machine can read from.

        None where there is none, because the data are in this process's memory: then they have to
        be read here and sent.
        """
        return None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(self.read(), dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]
