"""Where a node's old columns lie among its new ones, when columns arrive or leave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..common.arrays import Array


class Layout(NamedTuple):
    """Old row ``rows[i]`` is new row ``places[i]``, of ``size`` rows; the others are new."""

    rows: Array
    places: Array
    size: int

    @classmethod
    def grown(cls, sizes: list[int], added: list[int], constants: list[bool]) -> Layout:
        """Of one node, or of several in a row: blocks of these sizes, each with so many more
        columns at its end, but before the constant where it has one."""
        places, first = [], 0
        for size, more, constant in zip(sizes, added, constants, strict=True):
            own = first + np.arange(size)
            if constant:
                own[-1] += more
            places.append(own)
            first += size + more
        old = np.concatenate(places)
        return cls(np.arange(len(old)), old, first)

    @classmethod
    def of(cls, rows: Array) -> Layout:
        """Some of the old rows, in this order, and nothing else."""
        return cls(rows, np.arange(len(rows)), len(rows))

    def along(self, array: Array, axis: int = 0, new: float = 0.0) -> Array:
        """An array with one entry per column along ``axis``; of new columns, ``new``."""
        array = np.moveaxis(array, axis, 0)
        out = np.full((self.size, *array.shape[1:]), new, dtype=array.dtype)
        out[self.places] = array[self.rows]
        # in one order, so that what a saved model goes on with rounds as what it was saved from
        return np.ascontiguousarray(np.moveaxis(out, 0, axis))

    def both(self, matrix: Array) -> Array:
        """A matrix with a row and a column per column; zero where one of them is new."""
        return self.along(self.along(matrix, 0), 1)

    @property
    def is_new(self) -> Array:
        """Which of the new rows have no old one."""
        new = np.ones(self.size, dtype=bool)
        new[self.places] = False
        return new
