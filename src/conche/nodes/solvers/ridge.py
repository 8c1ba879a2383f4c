"""The ridge that a stream starts with, and the units that make it the identity.

Memory works in units of the ridge: with lambda_j a column's ridge, A_j / sqrt(lambda_j) and
sqrt(lambda_j) w_j. There the penalty is |w|^2, whatever units the columns came in, and a column's
length says how much more is known of it than the ridge does.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from ...common.arrays import Array, Block
from ...common.words import TOO_LARGE
from ...errors import DataError
from ..layout import Layout
from ..scaling import GROWN, Kept
from ..spread import ENOUGH, Look, Spread
from .base import Context, Solver, Subproblem
from .stretched import Stretched

DEFAULT_DAMPING = 4.0  # samples that the ridge counts for, at least
WEIGHTS_TO_A_SAMPLE = 32.0  # and one for so many columns: a signal 32 times its noise
CONSTANT_DAMPING = 1e-3  # the same for constant columns
FREE = 1e-10  # the intercept's ridge: next to none
LEAST_DAMPING = 1e-12  # relative: what damping=0 means

S = TypeVar("S", bound=Subproblem)


class Units(NamedTuple):
    """A task's columns in units of its ridge."""

    columns: Stretched  # A_j / sqrt(lambda_j)
    size: Array  # sqrt(lambda_j): what a weight is multiplied with
    change: Array | None  # the last task's sizes over these, where they have changed


@dataclass(frozen=True)
class Ridged(Solver[S], ABC):
    """A solver whose penalty is a ridge that the nodes agree on in the first task.

    ``damping`` is lambda for all columns alike. None gives every column its own lambda_j
    (`column_ridge`), from the first ten samples or more.
    """

    remembers: ClassVar[bool] = True
    free: ClassVar[float] = FREE  # the intercept's ridge, where the loss is quadratic

    damping: float | None = None
    discounts: tuple[float, ...] = (1.0,)
    seed: int = 0

    def share(self, context: Context) -> float:
        """The samples that the ridge counts for."""
        return default_share(context.n_columns)

    def precision(self, dtype: str) -> str:
        """Double, whatever the data are: sums over a whole stream lose what single has."""
        return "float64"

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """The columns' scales (until the ridge is settled), their number, and how many of them have
        too few samples yet."""
        if not _is_open(kept):
            return np.array([0.0, block.shape[1], 0.0])
        scales = self._at_most(kept, look)
        if scales is not None:
            return np.array([scales.sum(), block.shape[1], 0.0])
        seen = self._spread(kept, look)
        return np.array([seen.scales.sum(), block.shape[1], np.sum(~seen.settled)])

    def _at_most(self, kept: Kept, look: Look) -> Array | None:
        """What columns' scales are no larger than, their mean squares, where nobody needs to know
        more: a ridge that was given is used as it is, unless it is next to nothing beside them."""
        if not self.damping or "seen" in kept:
            return None
        scales = look.mean_squares
        return scales if self.damping > LEAST_DAMPING * np.max(scales, initial=0.0) else None

    def agree(self, report: Array, context: Context) -> Context:
        """The overall scale of the ridge: as given, or the columns' mean."""
        if not np.all(np.isfinite(report)):
            raise DataError(TOO_LARGE)
        scales, columns, unsettled = report
        damping = context.damping
        if scales > 0:  # not settled before this task; and not all columns are zero so far
            scale = scales / columns
            damping = scale if self.damping is None else max(self.damping, LEAST_DAMPING * scale)
        return replace(
            context, n_columns=int(columns), open_ridge=bool(unsettled), damping=float(damping)
        )

    def units(self, block: Block, kept: Kept, context: Context) -> Units:
        """The block in units of this task's ridge."""
        size = np.sqrt(self._ridge(block, kept, context))
        change = None
        if kept and may_change(kept):
            change = np.sqrt(kept["ridge"]) / size
            if "new" in kept:  # of no past, in any unit
                change = np.where(kept["new"], 1.0, change)
            if np.all(change == 1.0):
                change = None
        return Units(Stretched.of(block).further(1 / size), size, change)

    def settled(self, block: Block, kept: Kept, context: Context, size: Array) -> dict[str, Array]:
        """What to keep of the ridge: also the columns' scales, while too few samples were seen of
        some column on any node, so that it does not matter which node has which."""
        new = {"ridge": size**2}
        if _is_open(kept):
            if context.damping == 0 or (self.damping is None and context.open_ridge):
                new["seen"] = self._spread(kept, context.look).to_array()
        elif "late" in kept:
            late, seen = self._late(kept, context)
            if not np.all(seen.settled):
                new["late"] = kept["late"].copy()
                new["late"][:, late] = seen.to_array()
                # each for itself, so that it does not matter which others share its node
                new["late"][0, np.flatnonzero(late)[seen.settled]] = -1.0
        return new

    def _late(self, kept: Kept, context: Context) -> tuple[Array, Spread]:
        """Columns that came later than the others and whose ridge is still open."""
        late = kept["late"][0] >= 0
        assert context.look is not None
        now = context.look.spread.some(late)
        return late, Spread.from_array(kept["late"][:, late]).joined(now)

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        """New columns get a ridge of their own once they show how far they vary ("late", where a
        count below zero marks columns whose ridge is settled)."""
        new = {key: layout.along(kept[key], 0, 1.0) for key in ("ridge", "fresh") if key in kept}
        if kept and np.any(layout.is_new):
            new["new"] = layout.is_new.astype(float)  # until the task is learnt
        if "seen" in kept:
            new["seen"] = layout.along(kept["seen"], 1)
        elif "late" in kept:
            new["late"] = layout.along(kept["late"], 1)
        elif kept and np.any(layout.is_new):
            new["late"] = np.zeros((5, layout.size))
            new["late"][0] = np.where(layout.is_new, 0.0, -1.0)
        return new

    def alike(self, every: Sequence[Kept]) -> list[Kept]:
        names = {name for kept in every for name in kept}
        return [dict(kept) | _nothing_open(kept, names - set(kept)) for kept in every]

    def rescaled(self, kept: Kept, ratio: Array) -> Kept:
        """In units of the ridge nothing changes: the ridge itself takes up the new scale. But for a
        column that turns out to vary far more than it did: what was a ridge for next to nothing
        would leave it free, so it gets what columns of its new scale have."""
        new = dict(kept)
        if "ridge" in kept:
            new["ridge"] = kept["ridge"] / ratio**2
            if self.damping is None and np.any(ratio > GROWN):
                new["fresh"] = np.where(ratio > GROWN, kept["ridge"], new["ridge"])
        if "seen" in kept:
            new["seen"] = Spread.from_array(kept["seen"]).rescaled(ratio).to_array()
        if "late" in kept:
            new["late"] = Spread.from_array(kept["late"]).rescaled(ratio).to_array()
        return new

    def _ridge(self, block: Block, kept: Kept, context: Context) -> Array:
        share = self.share(context)
        if not _is_open(kept):
            ridge = kept.get("fresh", kept["ridge"])
            if "late" in kept:
                late, seen = self._late(kept, context)
                given = self.damping is not None
                own = context.damping if given else column_ridge(seen, context.damping, share)
                ridge = ridge.copy()
                ridge[late] = own
            return ridge
        if self.damping is None and context.damping > 0:
            seen = self._spread(kept, context.look)
            if sparse.issparse(block):
                ridge = np.full(block.shape[1], share * context.damping)
            else:
                ridge = column_ridge(seen, context.damping, share)
        else:  # given; or all nodes' blocks are zero, and any ridge serves
            ridge = np.full(block.shape[1], context.damping or 1.0)
        if context.holds_intercept:  # rounds that only approach the solution need a little of it
            ridge[-1] = self.free if context.quadratic else CONSTANT_DAMPING
        return np.maximum(ridge, np.finfo(float).tiny)

    @staticmethod
    def _spread(kept: Kept, look: Look | None) -> Spread:
        """Of this task's columns and those of the tasks before, as long as the scale is open."""
        assert look is not None
        now = look.spread
        return Spread.from_array(kept["seen"]).joined(now) if "seen" in kept else now


def _is_open(kept: Kept) -> bool:
    """Whether the ridge may still change: before the first task, and while samples are few."""
    return not kept or "seen" in kept


def _nothing_open(kept: Kept, names: set[str]) -> dict[str, Array]:
    """What other nodes keep of columns whose ridge is open, for one that has none of those."""
    nothing: dict[str, Array] = {}
    if "new" in names:
        nothing["new"] = np.zeros(len(kept["ridge"]))
    if "fresh" in names:
        nothing["fresh"] = kept["ridge"]
    if "late" in names:
        nothing["late"] = np.zeros((5, len(kept["ridge"])))
        nothing["late"][0] = -1.0
    return nothing


def may_change(kept: Kept) -> bool:
    """Whether this task's ridge may be another than the last task's."""
    return _is_open(kept) or "fresh" in kept or "late" in kept


def default_share(n_columns: int) -> float:
    """The samples that a ridge counts for which nobody has chosen."""
    return max(DEFAULT_DAMPING, n_columns / WEIGHTS_TO_A_SAMPLE)


def column_ridge(seen: Spread, scale: float, share: float = DEFAULT_DAMPING) -> Array:
    """lambda_j: as if ``share`` more samples of the column's own scale had been seen.

    While fewer than ten have been, the column's scale is drawn to the overall one (a geometric
    mean with weights n : 10) and counts for one sample: few samples say little of a scale, and a
    ridge proportional to it would give the smallest entries the largest weights. Columns that are
    still zero take the overall scale; constant ones, such as an intercept's, are left nearly free.
    """
    own = np.where(seen.scales > 0, seen.sizes, scale)
    free = ~seen.varies & (seen.scales > 0)
    n = seen.count
    few = np.exp((n * np.log(own) + ENOUGH * np.log(scale)) / (n + ENOUGH))
    return np.where(seen.settled, np.where(free, CONSTANT_DAMPING, share) * own, few)
