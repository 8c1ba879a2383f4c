"""How far columns vary: running counts, means and squared deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ..common.arrays import Array, Block

ENOUGH = 10  # samples that show how far a column varies
CHUNK = 1 << 20  # bytes that are looked at together: so many stay near the processor


@dataclass(frozen=True)
class Spread:
    """Count of samples, mean and sum of squared deviations, one number per column each.

    Deviations and not squares, so that neither the unit nor the origin of a column matters.
    """

    count: Array
    mean: Array
    deviations: Array

    @classmethod
    def nothing(cls, n_columns: int) -> Spread:
        """Of columns that nobody has seen yet."""
        zeros = np.zeros(n_columns)
        return cls(zeros, zeros, zeros)

    @classmethod
    def of(cls, block: Block, gaps: bool = False) -> Spread:
        """Of one task's columns; with ``gaps``, NaN counts as missing."""
        n, p = block.shape
        if sparse.issparse(block):
            columns = block.tocsc().astype(np.float64)
            stored = np.diff(columns.indptr)
            mean = np.asarray(columns.sum(axis=0)).ravel() / n
            columns.data = (columns.data - np.repeat(mean, stored)) ** 2
            deviations = np.asarray(columns.sum(axis=0)).ravel() + (n - stored) * mean**2
            return cls(np.full(p, float(n)), mean, deviations)
        rows = max(CHUNK // (block.itemsize * max(p, 1)), 1)
        seen = cls.nothing(p)
        for first in range(0, n, rows):
            seen = seen.joined(cls._of_few(block[first : first + rows], gaps))
        return seen

    @classmethod
    def _of_few(cls, block: Array, gaps: bool) -> Spread:
        n, p = block.shape
        if gaps:
            present = ~np.isnan(block)
            count = present.sum(axis=0).astype(float)
            values = np.where(present, block, 0).astype(float)
            mean = values.sum(axis=0) / np.maximum(count, 1)
            return cls(count, mean, np.sum(np.where(present, values - mean, 0.0) ** 2, axis=0))
        mean = block.mean(axis=0, dtype=np.float64)
        centred = block - mean.astype(block.dtype)
        squares = np.einsum("ij,ij->j", centred, centred, dtype=np.float64)
        return cls(np.full(p, float(n)), mean, squares)

    @classmethod
    def from_array(cls, rows: Array) -> Spread:
        """Back from `to_array`."""
        return cls(*rows)

    def to_array(self) -> Array:
        """Three rows: counts, means, deviations."""
        return np.array([self.count, self.mean, self.deviations])

    def joined(self, other: Spread) -> Spread:
        """Of both samples together."""
        count = self.count + other.count
        share = other.count / np.maximum(count, 1)
        gap = np.where(other.count > 0, other.mean - self.mean, 0.0)
        between = gap**2 * self.count * share
        return Spread(count, self.mean + gap * share, self.deviations + other.deviations + between)

    def rescaled(self, ratio: Array) -> Spread:
        """Of the same columns divided by ``ratio``."""
        return Spread(self.count, self.mean / ratio, self.deviations / ratio**2)

    @property
    def settled(self) -> Array:
        """Which columns have samples enough to tell their variation from their level."""
        return np.asarray(self.count >= ENOUGH)

    @property
    def varies(self) -> Array:
        """Which columns are more than a constant and its rounding."""
        return np.asarray(self.deviations > 1e-20 * self.count * self.mean**2)

    @property
    def variance(self) -> Array:
        """The variance of every column."""
        return np.asarray(self.deviations / np.maximum(self.count, 1))

    @property
    def scales(self) -> Array:
        """The variance per column; the mean square where it does not vary or samples are few."""
        return np.where(self.settled & self.varies, self.variance, self.variance + self.mean**2)
