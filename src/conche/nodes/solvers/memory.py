"""The Conche method: every past task as curvature, none of its samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...common.arrays import Array, Block, as_dense, gram, scale_rows, squared_norm
from ...errors import DataError
from ..scaling import Kept
from ..spread import ENOUGH, Spread
from .base import Context, Solver
from .past import Past, TallPast, WidePast
from .sketch import cross_norm, probes, shrinkage, sketch_matrix

ONE_NODE_EXACT = 4096
SKETCH_ROWS = (256, 600)  # at least, at most
DEFAULT_DAMPING = 4.0  # samples that the ridge counts for
CONSTANT_DAMPING = 1e-3  # the same for constant columns: an intercept should be free
LEAST_DAMPING = 1e-12  # relative: what damping=0 means


def default_rank(n_features: int, n_nodes: int) -> int:
    """The rule behind ``rank=None``: twice the columns, at least 256, at most 600.

    One node has no cross blocks: up to 4096 columns it keeps its exact curvature and no sketch.
    """
    if n_nodes == 1 and n_features <= ONE_NODE_EXACT:
        return 0
    return int(np.clip(2 * n_features, *SKETCH_ROWS))


@dataclass(frozen=True)
class MemorySolver(Solver[Past]):
    """``Memory``: block curvature H_k, a shared sketch Abar_k, and shrinkage.

    H_k = sum_t A_{t,k}^T A_{t,k} (p_k x p_k) is kept where p_k is at most ``sketch_size``; wider
    blocks keep the m x p_k sketch alone. ``discount`` weighs the past per task.

    ``damping`` is the ridge lambda that the stream starts with, so that one node is recursive
    least squares: the minimiser of sum_t |y_t - A_t w|^2 + lambda |w|^2 after every task. None
    gives every column its own lambda_j, four times its variance over the first ten samples or
    more, so that the unit and the origin a column is measured with do not matter (`column_ridge`).
    """

    sketch_size: int
    damping: float | None = None
    discount: float = 1.0
    seed: int = 0

    def report(self, block: Block, kept: Kept) -> Array:
        """Scale (until it is settled), traces, and the probed sketch: what all must agree on."""
        trace = kept["trace"][0] if kept else 0.0
        numbers = np.array([0.0, block.shape[1], trace, trace**2, 0.0])
        if "ridge" not in kept:
            numbers[0] = self._spread(block, kept).scales.sum()
        if "sketch" not in kept:
            return numbers
        sketch = kept["sketch"]
        x = probes(self.seed, len(sketch)).astype(sketch.dtype)
        Mx = np.asarray(sketch @ (sketch.T @ x), dtype=np.float64)
        numbers[4] = np.sum(Mx**2)
        return np.concatenate([numbers, Mx.ravel()])

    def agree(self, report: Array, context: Context) -> Context:
        if not np.all(np.isfinite(report)):
            raise DataError("the features are too large: their squares overflow; scale them")
        scales, columns, trace, traces_squared, own = report[:5]
        damping = context.damping
        if scales > 0:  # not settled before this task
            scale = scales / columns
            damping = scale if self.damping is None else max(self.damping, LEAST_DAMPING * scale)
        theta = 1.0
        if len(report) > 5 and context.n_nodes > 1:
            observed = cross_norm(report[5:], own)
            theta = shrinkage(observed, trace**2 - traces_squared, self.sketch_size)
        rows = self.sketch_size if context.task else 0  # the first task has no past
        return replace(context, damping=float(damping), shrinkage=float(theta), sketch_rows=rows)

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> Past:
        """The task's rows, the sketch's, and the penalty, on their smaller side."""
        n, p = block.shape
        ridge = kept["ridge"] if "ridge" in kept else self._new_ridge(block, kept, context)
        ridge = ridge * ridge.dtype.type(context.strength)
        sketch = kept.get("sketch")
        rows = n + (0 if sketch is None else len(sketch))
        if self._is_wide(p) and p > rows:
            return WidePast(block, sketch, ridge, context)
        return TallPast(block, kept.get("curvature"), sketch, ridge, context)

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: Past, curvature: Array | None
    ) -> Kept:
        """The past's curvature and this task's; ``discount`` weighs the past."""
        n, p = block.shape
        share = float(self.discount)
        rows = block if curvature is None else scale_rows(block, np.sqrt(curvature))
        trace = squared_norm(rows) + share * (kept["trace"][0] if kept else 0.0)
        new: dict[str, Array] = {"trace": np.array([trace])}
        new |= self._settle(block, kept, context, sub)
        if not self._is_wide(p):
            H = sub.task_gram() if curvature is None else None
            H = gram(rows, wide=False) if H is None else H
            new["curvature"] = H + share * kept["curvature"] if kept else H
        if self.sketch_size:
            dtype = np.dtype(block.dtype).name
            S = sketch_matrix(self.seed, context.task, n, self.sketch_size, dtype)
            SA = as_dense(S @ rows)
            new["sketch"] = SA + share**0.5 * kept["sketch"] if kept else SA
        return new

    def rescaled(self, kept: Kept, ratio: Array) -> Kept:
        """A^T A, the sketch, the ridge and what was seen of the columns, in the new units."""
        new = dict(kept)
        r = ratio.astype(float)
        if "curvature" in kept:
            new["curvature"] = kept["curvature"] / np.outer(r, r)
        if "sketch" in kept:
            new["sketch"] = kept["sketch"] / r
        if "ridge" in kept:
            new["ridge"] = kept["ridge"] / r**2
        if "seen" in kept:
            new["seen"] = Spread.from_array(kept["seen"]).rescaled(r).to_array()
        return {k: v.astype(kept[k].dtype) for k, v in new.items()}

    def _new_ridge(self, block: Block, kept: Kept, context: Context) -> Array:
        if self.damping is None and context.damping > 0:
            ridge = column_ridge(self._spread(block, kept), context.damping)
        else:  # given; or all nodes' blocks are zero, and any ridge serves
            ridge = np.full(block.shape[1], context.damping or 1.0)
        return np.maximum(ridge, np.finfo(block.dtype).tiny).astype(block.dtype)

    def _settle(self, block: Block, kept: Kept, context: Context, sub: Past) -> dict[str, Array]:
        """The ridge, once it is given or ten samples have shown the columns' scale; else those."""
        seen = None if "ridge" in kept else self._spread(block, kept)
        given = self.damping is not None and context.damping > 0
        if seen is None or given or (np.all(seen.settled) and context.damping > 0):
            return {"ridge": sub.ridge[:, 0]}
        return {"seen": seen.to_array()}

    @staticmethod
    def _spread(block: Block, kept: Kept) -> Spread:
        """Of this task's columns and those of the tasks before, as long as the scale is open."""
        now = Spread.of(block)
        return Spread.from_array(kept["seen"]).joined(now) if "seen" in kept else now

    def _is_wide(self, p: int) -> bool:
        """Whether H_k would outgrow the sketch; without a sketch there is nothing but H_k."""
        return 0 < self.sketch_size < p


def column_ridge(seen: Spread, scale: float) -> Array:
    """lambda_j: as if four more samples of the column's own scale had been seen.

    While fewer than ten have been, the column's scale is drawn to the overall one (a geometric
    mean with weights n : 10) and counts for one sample: few samples say little of a scale, and a
    ridge proportional to it would give the smallest entries the largest weights. Columns that are
    still zero take the overall scale; constant ones, such as an intercept's, are left nearly free.
    """
    own = np.where(seen.scales > 0, seen.scales, scale)
    free = ~seen.varies & (seen.scales > 0)
    n = seen.count
    few = np.exp((n * np.log(own) + ENOUGH * np.log(scale)) / (n + ENOUGH))
    return np.where(seen.settled, np.where(free, CONSTANT_DAMPING, DEFAULT_DAMPING) * own, few)
