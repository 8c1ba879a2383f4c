"""What a node does to its columns before it learns from them: standardise, fill what is missing.

Nothing of it needs another node, and nothing looks at a target. A node's numbers (count, mean,
squared deviations; the centre and scale in force) are part of its state, so a saved model treats
new data as it treated the old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ..common.arrays import (
    Array,
    Block,
    column_squares,
    in_double,
    is_here,
    joined,
    like,
    space,
    with_ones,
    zeros,
)
from ..common.checks import one_of
from ..errors import DataError
from .spread import Spread

SCALINGS = (None, "first", "running")
MISSING = ("refuse", "mean")
GROWN = 1.5  # a column that varies so many times as much as it did gets another scale
Kept = Mapping[str, Array]  # what a node keeps between tasks, by name
ON_HOST = ("ridge", "fresh", "new", "seen", "late", "rotation")  # of it, what is always NumPy's


class Scaled(NamedTuple):
    """A task's columns as the solver sees them."""

    block: Block
    numbers: Kept  # the node's new numbers
    rescaled: Array | None  # new scale over old, per column, where one of them has changed
    squares: Array | None = None  # of the block's columns, without a constant one, where known
    spread: Callable[[], Spread] | None = None  # of the block's columns, where known
    by: Array | None = None  # what the columns are still to be multiplied by


@dataclass(frozen=True)
class Scaling:
    """How columns are standardised and filled.

    Parameters
    ----------
    scaling : None; "first": scaled by the first task(s), once ten samples have been seen of a
        column and it has varied, and fixed from then on, unless it turns out to vary 1.5 times as
        much; "running": by all tasks so far. Sparse columns are left as they are.
    missing : "refuse", or "mean": filled with the column's mean so far.
    centred : the mean of the first task is taken off as well. It never moves: another origin would
        change what the weights and the memory mean, and the intercept follows the stream. Without
        an intercept to take it up there is no centring. Sparse columns are not centred.
    """

    scaling: str | None = None
    missing: str = "refuse"
    centred: bool = False

    def __post_init__(self) -> None:
        one_of("scaling", self.scaling, SCALINGS)
        one_of("missing", self.missing, MISSING)

    @property
    def idle(self) -> bool:
        """Whether columns are left as they come."""
        return self.scaling is None and self.missing == "refuse" and not self.centred

    def apply(
        self,
        block: Block,
        numbers: Kept,
        weights: Array | None = None,
        ones: bool = False,
        stretched: bool = False,
    ) -> Scaled:
        """Standardise and fill a task's block; the new numbers include this task's samples, with
        their ``weights``. With ``ones`` a constant column is its last. If it may be ``stretched``,
        columns may keep their units, and are still to be multiplied ``by`` numbers."""
        if self.idle:
            return Scaled(with_ones(block) if ones else block, {}, None)
        if sparse.issparse(block):
            new = self._of_sparse(block, numbers, weights)
            return Scaled(with_ones(block) if ones else block, new, None)
        if self.centred and self.missing == "refuse" and weights is None and is_here(block):
            return self._in_one_pass(block, numbers, ones, stretched)
        now = Spread.of(block, self.missing == "mean", weights)
        new = self._updated(numbers, now, now.mean)
        return Scaled(self._transform(block, new, ones), new, _ratio(new, numbers))

    def _in_one_pass(self, block: Array, numbers: Kept, ones: bool, stretched: bool) -> Scaled:
        """The same for the usual case, where columns are looked at while they are near the
        processor. They are scaled as before, and once more where that turns out to be another; or
        not at all, where what they are multiplied by may go with them."""
        n, p = block.shape
        whole = np.empty((n, p + ones), block.dtype)
        whole[:, p:] = 1.0
        known = numbers["seen"][0] > 0 if numbers else np.zeros(p, dtype=bool)
        centre, before = np.zeros(p), np.ones(p)
        if numbers:
            centre, before = numbers["centre"], numbers["scale"]
        if not np.all(known):
            means = np.add.reduce(block, axis=0, dtype=np.float64) / n
            centre = np.where(known, centre, means)
        own = None if stretched else before
        now, squares = Spread.centred(block, centre, whole[:, :p], own)
        if not np.all(known):  # of a constant, whose mean has been rounded: the constant itself
            centre = np.where(~known & (now.lowest == now.highest), now.mean, centre)
        new = self._updated(numbers, now, centre)
        by = 1 / new["scale"]
        if (varies := _unless_constant(new)) is not None:
            by = by * varies
        more = by if stretched else before * by  # than they have been multiplied by already
        if not stretched and np.any(more != 1.0):
            whole[:, :p] *= more.astype(block.dtype)

        def spread() -> Spread:
            ready = now.moved(centre, by)
            return ready.with_ones(n) if ones else ready

        ratio, left = _ratio(new, numbers), None
        if stretched:
            left = np.append(by, 1.0) if ones else by
        return Scaled(whole, new, ratio, squares * more**2, spread, left)

    def _transform(self, block: Array, numbers: Kept, ones: bool) -> Array:
        if self.missing == "mean":
            xp = space(block)
            block = xp.where(xp.isnan(block), like(block, numbers["seen"][1]), block)
        p = block.shape[1]
        # a large array is dear to make: one copy, with room for the constant column
        whole = zeros(block, block.shape[0], p + 1) if ones else zeros(block, *block.shape)
        ready = whole[:, :p]
        ready[...] = block
        if self.centred:
            ready -= like(ready, numbers["centre"])
            if (varies := _unless_constant(numbers)) is not None:
                ready *= like(ready, varies)
        if self.scaling is not None:
            ready /= like(ready, numbers["scale"])
        whole[:, p:] = 1.0
        return whole

    def _of_sparse(self, block: Block, numbers: Kept, weights: Array | None) -> Kept:
        """Neither centred nor scaled, which would make them dense; nor are later tasks then."""
        if self.missing == "mean":
            raise DataError("missing='mean' needs dense columns: these are sparse")
        p = block.shape[1]
        old = Spread.from_array(numbers["seen"]) if numbers else Spread.nothing(p)
        plain = {"centre": np.zeros(p), "scale": np.ones(p)}
        if numbers and any(not np.array_equal(numbers[key], plain[key]) for key in plain):
            raise DataError("sparse columns, but the stream began with dense ones and scaled them")
        return {"seen": old.joined(Spread.of(block, weights=weights)).to_array(), **plain}

    def outward(self, weights: Array, numbers: Kept) -> tuple[Array, Array]:
        """The weights for columns as they come, and what centring adds to the intercept."""
        if not numbers:
            return weights, np.zeros(weights.shape[1])
        p = len(numbers["scale"])  # a last row, if there is one, is the intercept's
        own = weights[:p, :] / like(weights, numbers["scale"])[:, None]
        double = in_double(own)
        return joined([own, weights[p:, :]]), -(like(double, numbers["centre"]) @ double)

    def reach(
        self, block: Block, weights: Array, numbers: Kept, squares: Array | None = None
    ) -> Array:
        """The lengths of the columns as they come times their weights', summed: one per output;
        ``squares`` are those of the block's columns, where they are known."""
        lengths = (column_squares(block) if squares is None else squares) ** 0.5
        if numbers:
            p = len(numbers["scale"])
            apart = block.shape[0] ** 0.5 * np.abs(numbers["centre"]) / numbers["scale"]
            lengths[:p] += like(lengths, apart)
        return lengths @ in_double(space(weights).abs(weights))

    def means(self, numbers: Kept) -> Array | None:
        """The columns' means that missing values are filled with; None where none may be."""
        return numbers["seen"][1] if self.missing == "mean" and numbers else None

    def _updated(self, numbers: Kept, now: Spread, origin: Array) -> Kept:
        """With the spread of this task's columns; those that are new are taken from ``origin``."""
        p = len(now.count)
        old = Spread.from_array(numbers["seen"]) if numbers else Spread.nothing(p)
        centre = numbers["centre"] if numbers else np.zeros(p)
        scale = numbers["scale"] if numbers else np.ones(p)
        seen = old.joined(now)
        if self.scaling is not None:
            # constant columns keep scale 1: centred they are zero, and harmless; so do those of few
            # samples, whose own spread would make the smallest entries as large as any
            fixed = old.settled & old.varies if self.scaling == "first" else np.zeros(p, dtype=bool)
            fixed &= seen.sizes <= (GROWN * scale) ** 2
            ready = seen.settled & seen.varies
            scale = np.where(fixed, scale, np.where(ready, np.sqrt(seen.sizes), 1.0))
        if self.centred:
            # a column without a sample so far has weight zero, and may still be given its origin
            centre = np.where(old.count > 0, centre, origin)
        return {"seen": seen.to_array(), "centre": centre, "scale": scale}


def _unless_constant(numbers: Kept) -> Array | None:
    """0 for columns that are one number but for its last digits, and 1 for others; None without
    any. What the mean's rounding leaves of such a column is nothing to learn from."""
    constant = Spread.from_array(numbers["seen"]).constant
    return np.where(constant, 0.0, 1.0) if np.any(constant) else None


def _ratio(new: Kept, old: Kept) -> Array | None:
    """The new scale over the old one, where there was one and it has changed."""
    if not old or np.array_equal(new["scale"], old["scale"]):
        return None
    return np.asarray(new["scale"] / old["scale"])
