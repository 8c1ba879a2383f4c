"""A matrix whose columns are read when a node asks for them, and not before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..common.arrays import Array, Block, as_dense


class Columns(ABC):
    """What stands for X where the columns are elsewhere: on disk, or still to be computed.

    A node reads its own block, ``X.select(which).read()``, and no other column is touched. A node
    on another machine is sent ``X.select(which).sendable()`` and reads that itself.

    Examples
    --------
    >>> import conche
    >>> import numpy as np
    >>> features = conche.CosineFeatures(1000).fit(np.eye(4))
    >>> X = features.columns(np.eye(4))  # nothing is computed yet
    >>> X.shape, X.select(slice(0, 10)).read().shape
    ((4, 1000), (4, 10))
    """

    names: Sequence[str] | None = None
    dtype: np.dtype[Any] = np.dtype(np.float64)
    sparse = False  # whether they are read as a scipy.sparse matrix
    nnz: int | None = None  # numbers in it, where it is sparse
    homes: tuple[Any, ...] = ()  # where nodes keep their weights, where those stay with them
    files: tuple[tuple[str, int], ...] = ()  # of each node's own, and its check sum
    computed = False  # whether from inputs that are in memory, and not read from a file

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_samples, n_features), known before anything is read."""

    @abstractmethod
    def select(self, which: slice | Array) -> Columns:
        """Some of the columns, by their places, in that order; nothing is read."""

    def reaching(self, names: Sequence[str]) -> Columns:
        """With those of ``names`` that are zero here: values of a text that has others here."""
        return self

    @abstractmethod
    def read(self) -> Block:
        """All of these columns: an n_samples x n_features array of ``dtype``, or sparse."""

    def read_on(self, put: Callable[[Array], Array]) -> Array:
        """The same on a device, to which ``put`` brings arrays; some are computed there."""
        return put(self.read())

    def sendable(self) -> Columns | None:
        """The same columns as a small description that another machine can read from.

        None where there is none, because the data are in this process's memory: then they have to
        be read here and sent.
        """
        return None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(as_dense(self.read()), dtype=dtype)

    def __len__(self) -> int:
        return self.shape[0]


class Aligned(Columns):
    """The columns of another matrix in an order of their own; those that it lacks are missing.

    Parameters
    ----------
    inner : has some of the columns.
    places : of each column in ``inner``; -1: it is missing.
    """

    names: Sequence[str]

    def __init__(self, inner: Columns, places: Array, names: Sequence[str]):
        self.inner, self.places, self.names, self.dtype = inner, places, names, inner.dtype

    @classmethod
    def to(cls, inner: Columns, names: Sequence[str]) -> Columns:
        """The columns of these names."""
        inner = inner.reaching(names)
        own = list(inner.names or ())
        if own == list(names):
            return inner
        where = {name: j for j, name in enumerate(own)}
        return cls(inner, np.array([where.get(name, -1) for name in names]), names)

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape[0], len(self.places)

    def select(self, which: slice | Array) -> Aligned:
        places = self.places[which]
        chosen = np.arange(len(self.places))[which]
        return Aligned(self.inner, places, [self.names[j] for j in chosen])

    def read(self) -> Array:
        out = np.full(self.shape, np.nan, dtype=self.dtype)
        there = np.flatnonzero(self.places >= 0)
        if len(there):
            out[:, there] = self.inner.select(self.places[there]).read()
        return out

    def sendable(self) -> Aligned | None:
        """With a description of the columns that are there."""
        there = self.places >= 0
        inner = self.inner.select(self.places[there]).sendable()
        if inner is None:
            return None
        return Aligned(inner, np.where(there, np.cumsum(there) - 1, -1), self.names)
