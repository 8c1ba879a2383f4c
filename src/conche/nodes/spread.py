"""How far columns vary: running counts, means, squared deviations and extremes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..common.arrays import (
    Array,
    Block,
    column_squares,
    here,
    in_double,
    is_here,
    ratio,
    scale_rows,
    space,
)

ENOUGH = 10  # samples that show how far a column varies
RARE = 0.25  # a column counts for at least so much of its farthest sample's distance from the mean
DIGITS = 1e-8  # share of a column's squares below which its deviations are not told by their sums
CHUNK = 1 << 20  # bytes that are looked at together: so many stay near the processor


@dataclass(frozen=True)
class Spread:
    """Count of samples, mean, sum of squared deviations, least and largest value, of every column.

    Deviations and not squares, so that neither the unit nor the origin of a column matters.
    """

    count: Array
    mean: Array
    deviations: Array
    lowest: Array
    highest: Array

    @classmethod
    def nothing(cls, n_columns: int) -> Spread:
        """Of columns that nobody has seen yet."""
        zeros = np.zeros(n_columns)
        return cls(zeros, zeros, zeros, zeros, zeros)

    @classmethod
    def of(cls, block: Block, gaps: bool = False, weights: Array | None = None) -> Spread:
        """Of one task's columns; with ``gaps``, NaN counts as missing; ``weights`` are samples'."""
        n, p = block.shape
        if not is_here(block):
            return cls._elsewhere(block, gaps, weights)
        w = np.ones(n) if weights is None else weights
        if sparse.issparse(block):
            return cls._of_sparse(block.tocsc().astype(np.float64), w)
        rows = max(CHUNK // (block.itemsize * max(p, 1)), 1)
        seen = cls.nothing(p)
        for first in range(0, n, rows):
            some = slice(first, first + rows)
            plain = weights is None and not gaps
            few = cls._plain(block[some]) if plain else cls._weighed(block[some], gaps, w[some])
            seen = seen.joined(few)
        return seen

    @classmethod
    def centred(
        cls, block: Array, centre: Array, out: Array, scale: Array | None = None
    ) -> tuple[Spread, Array]:
        """Make ``out`` block - centre, over ``scale`` if there is one, a part at a time that stays
        near the processor. Answers the spread of the block, and the sums of squares of ``out``'s
        columns."""
        n, p = block.shape
        taken = centre.astype(block.dtype)
        by = None if scale is None else (1 / scale).astype(block.dtype)
        rows = max(CHUNK // (block.itemsize * max(p, 1)), 1)
        sums, squares = np.zeros(p), np.zeros(p)
        low, high = np.full(p, np.inf), np.full(p, -np.inf)
        for first in range(0, n, rows):
            part = out[first : first + rows]
            np.subtract(block[first : first + rows], taken, out=part)
            if by is not None:
                np.multiply(part, by, out=part)
            sums += np.add.reduce(part, axis=0, dtype=np.float64)
            squares += column_squares(part)
            np.minimum(low, np.minimum.reduce(part, axis=0), out=low)
            np.maximum(high, np.maximum.reduce(part, axis=0), out=high)
        mean = sums / n
        deviations = squares - n * mean**2
        if np.any(doubtful := (squares > 0) & (deviations < DIGITS * squares)):
            own = out[:, doubtful] - mean[doubtful]
            deviations[doubtful] = column_squares(own)
        size = 1.0 if scale is None else scale
        ends = (centre + size * end for end in (mean, low, high))
        middle, lowest, highest = ends
        if np.any(flat := lowest == highest):  # a constant is its own mean, without rounding
            exact = (np.where(flat, block[0], x) for x in (middle, lowest, highest))
            middle, lowest, highest = exact
        count = np.full(p, float(n))
        return cls(count, middle, deviations * size**2, lowest, highest), squares

    @classmethod
    def of_scaled(cls, block: Block, root: Array | None) -> Spread:
        """Of columns whose samples have been multiplied by the root of their weights."""
        if root is None:
            return cls.of(block)
        if not is_here(block):
            whole = space(root).ones_like(root)
            return cls.of(scale_rows(block, ratio(whole, root)), weights=root**2)
        there = root > 0
        return cls.of(scale_rows(block[there], 1 / root[there]), weights=root[there] ** 2)

    @classmethod
    def _of_sparse(cls, columns: Any, w: Array) -> Spread:
        each = w[columns.indices]
        stored = np.add.reduceat(np.append(each, 0.0), columns.indptr[:-1])
        stored = np.where(np.diff(columns.indptr) > 0, stored, 0.0)
        whole = float(w.sum())
        mean = np.asarray(columns.T @ w) / max(whole, 1e-300)
        ends = [
            getattr(columns, end)(axis=0).toarray().ravel().astype(float) for end in ("min", "max")
        ]
        columns.data = each * (columns.data - np.repeat(mean, np.diff(columns.indptr))) ** 2
        deviations = np.asarray(columns.sum(axis=0)).ravel() + (whole - stored) * mean**2
        return cls(np.full(len(mean), whole), mean, deviations, *ends)

    @classmethod
    def _plain(cls, block: Array) -> Spread:
        n, p = block.shape
        low, high = block.min(axis=0), block.max(axis=0)
        # a constant is its own mean, without rounding: centred it is zero, and not next to it
        mean = np.where(low == high, low, block.mean(axis=0, dtype=np.float64))
        centred = block - mean.astype(block.dtype)
        return cls(np.full(p, float(n)), mean, column_squares(centred), low, high)

    @classmethod
    def _weighed(cls, block: Array, gaps: bool, w: Array) -> Spread:
        present = (w > 0)[:, None] & (~np.isnan(block) if gaps else np.ones(block.shape, bool))
        count = w @ present
        values = np.where(present, block, 0).astype(float)
        mean = (w @ values) / np.where(count > 0, count, 1.0)
        squares = w @ np.where(present, values - mean, 0.0) ** 2
        ends = (
            np.where(present, values, np.inf).min(axis=0),
            np.where(present, values, -np.inf).max(axis=0),
        )
        return cls(count, mean, squares, *(np.where(count > 0, end, 0.0) for end in ends))

    @classmethod
    def _elsewhere(cls, block: Array, gaps: bool, weights: Array | None) -> Spread:
        """Of a block on a device, with one look at each of its numbers for each of five."""
        xp, values = space(block), in_double(block)
        if weights is None and not gaps:
            count, mean = xp.zeros_like(values[0, :]) + values.shape[0], xp.mean(values, axis=0)
            squares = xp.sum((values - mean) ** 2, axis=0)
            ends = xp.min(values, axis=0), xp.max(values, axis=0)
        else:
            w = xp.ones_like(values[:, :1]) if weights is None else in_double(weights)[:, None]
            present = (w > 0) & ~xp.isnan(values) if gaps else (w > 0) & (values == values)
            w = xp.where(present, w, xp.zeros_like(w))
            count, values = xp.sum(w, axis=0), xp.where(present, values, xp.zeros_like(values))
            seen = xp.where(count > 0, count, xp.ones_like(count))
            mean = xp.sum(w * values, axis=0) / seen
            squares = xp.sum(w * (values - mean) ** 2, axis=0)
            far = xp.full_like(values, xp.inf)
            low = xp.min(xp.where(present, values, far), axis=0)
            high = xp.max(xp.where(present, values, -far), axis=0)
            ends = tuple(xp.where(count > 0, end, xp.zeros_like(end)) for end in (low, high))
        return cls(*here(xp.stack([count, mean, squares, *ends])))

    @classmethod
    def from_array(cls, rows: Array) -> Spread:
        """Back from `to_array`."""
        return cls(*rows)

    def to_array(self) -> Array:
        """Five rows: counts, means, deviations, lowest and highest values."""
        return np.array([self.count, self.mean, self.deviations, self.lowest, self.highest])

    def joined(self, other: Spread) -> Spread:
        """Of both samples together."""
        count = self.count + other.count
        share = other.count / np.where(count > 0, count, 1.0)
        gap = np.where(other.count > 0, other.mean - self.mean, 0.0)
        deviations = self.deviations + other.deviations + gap**2 * self.count * share
        low, high = np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest)
        for known, unknown in ((self, other), (other, self)):  # who has seen nothing has no ends
            low = np.where(unknown.count > 0, low, known.lowest)
            high = np.where(unknown.count > 0, high, known.highest)
        return Spread(count, self.mean + gap * share, deviations, low, high)

    def moved(self, centre: Array, by: Array) -> Spread:
        """Of the same columns less ``centre``, multiplied ``by`` numbers."""
        middle, low, high = ((x - centre) * by for x in (self.mean, self.lowest, self.highest))
        return Spread(self.count, middle, self.deviations * by**2, low, high)

    def with_ones(self, n: float) -> Spread:
        """And of a constant column, the last, of so many samples."""
        return Spread(*np.hstack([self.to_array(), [[n], [1.0], [0.0], [1.0], [1.0]]]))

    def some(self, which: Array) -> Spread:
        """Of some columns."""
        return Spread(*self.to_array()[:, which])

    def rescaled(self, ratio: Array) -> Spread:
        """Of the same columns divided by ``ratio``."""
        ends = self.lowest / ratio, self.highest / ratio
        return Spread(self.count, self.mean / ratio, self.deviations / ratio**2, *ends)

    @cached_property
    def settled(self) -> Array:
        """Which columns have samples enough to tell their variation from their level."""
        return np.asarray(self.count >= ENOUGH)

    @cached_property
    def varies(self) -> Array:
        """Which columns are more than a constant and its rounding."""
        return np.asarray(self.deviations > 1e-20 * self.count * self.mean**2)

    @cached_property
    def constant(self) -> Array:
        """Which columns are one number, but for the last digits of it."""
        size = np.maximum(np.abs(self.lowest), np.abs(self.highest))
        return np.asarray(self.highest - self.lowest <= 8 * np.finfo(float).eps * size)

    @cached_property
    def variance(self) -> Array:
        """The variance of every column."""
        return np.asarray(self.deviations / np.where(self.count > 0, self.count, 1.0))

    @cached_property
    def scales(self) -> Array:
        """The variance per column; the mean square where it does not vary or samples are few."""
        return np.where(self.settled & self.varies, self.variance, self.variance + self.mean**2)

    @cached_property
    def sizes(self) -> Array:
        """As `scales`, but of a column that hardly ever leaves its mean at least what `RARE` says.

        In a pixel that is nearly always black, or a word that is nearly never there, one sample is
        all that is known: by its variance alone it would be as large as any other column's all
        samples together, and free to take a weight that fits that one. Ordinary columns are not
        touched: a normal one reaches 4 standard deviations once in 16,000 samples.
        """
        far = np.maximum(self.highest - self.mean, self.mean - self.lowest)
        least = np.where(self.settled & self.varies, (RARE * far) ** 2, 0.0)
        return np.maximum(self.scales, least)


class Look:
    """A task's columns, looked at no more than once: by several, if at all."""

    def __init__(self, block: Block, root: Array | None, known: Callable[[], Spread] | None = None):
        self.block, self.root, self._known = block, root, known

    @cached_property
    def spread(self) -> Spread:
        """Of the columns, whose samples may have been multiplied by the ``root`` of weights."""
        if self._known is not None:
            return self._known()
        return Spread.of_scaled(self.block, self.root)

    @cached_property
    def mean_squares(self) -> Array:
        """Of the columns, which is sooner seen."""
        if self._known is not None:
            return np.asarray(self.spread.variance + self.spread.mean**2)
        weight = self.block.shape[0] if self.root is None else float(here(self.root @ self.root))
        return np.asarray(here(column_squares(self.block))) / weight
