"""The Conche method: every past task as curvature, none of its samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .base import (
    ENOUGH,
    Array,
    Block,
    Context,
    Memory,
    Solver,
    Spread,
    Subproblem,
    as_dense,
    gram,
    scale_rows,
    squared_norm,
)
from .past import TallPast, WidePast
from .sketch import cross_norm, probes, shrinkage, sketch_matrix

ONE_NODE_EXACT = 4096
SKETCH_ROWS = (256, 600)  # at least, at most
DEFAULT_DAMPING = 4.0  # samples that the ridge counts for
CONSTANT_DAMPING = 1e-3  # the same for constant columns: an intercept should be free
LEAST_DAMPING = 1e-12  # relative: what damping=0 means


def default_sketch_size(n_features: int, n_nodes: int) -> int:
    """The rule behind ``sketch_size=None``: twice the columns, at least 256, at most 600.

    One node has no cross blocks: up to 4096 columns it keeps its exact curvature and no sketch.
    """
    if n_nodes == 1 and n_features <= ONE_NODE_EXACT:
        return 0
    return int(np.clip(2 * n_features, *SKETCH_ROWS))


@dataclass(frozen=True)
class Curvature(Solver):
    """``solver="memory"``: block curvature H_k, a shared sketch Abar_k, and shrinkage.

    H_k = sum_t A_{t,k}^T A_{t,k} (p_k x p_k) is kept where p_k is at most ``sketch_size``; wider
    blocks keep the m x p_k sketch alone. ``discount`` weighs the past per task.

    ``damping`` is the ridge lambda that the stream starts with, so that one node is recursive
    least squares: the minimiser of sum_t |y_t - A_t w|^2 + lambda |w|^2 after every task. None
    gives every column its own lambda_j, four times its variance over the first ten samples or
    more, so that the unit and the origin a column is measured with do not matter (`column_ridge`).
    """

    scalars = ("zPz", "qPz", "dPz", "slack")

    sketch_size: int
    damping: float | None = None
    discount: float = 1.0
    seed: int = 0

    def sketch_rows(self, task: int) -> int:
        return self.sketch_size if task else 0

    def report(self, block: Block, memory: Memory) -> Array:
        """Scale (until it is settled), traces, and the probed sketch: what all must agree on."""
        trace = memory["trace"][0] if memory else 0.0
        numbers = np.array([0.0, block.shape[1], trace, trace**2, 0.0])
        if "ridge" not in memory:
            numbers[0] = self._spread(block, memory).scales.sum()
        if "sketch" not in memory:
            return numbers
        sketch = memory["sketch"]
        x = probes(self.seed, len(sketch)).astype(sketch.dtype)
        Mx = np.asarray(sketch @ (sketch.T @ x), dtype=np.float64)
        numbers[4] = np.sum(Mx**2)
        return np.concatenate([numbers, Mx.ravel()])

    def agree(self, report: Array, context: Context) -> Context:
        if not np.all(np.isfinite(report)):
            raise ValueError("the features are too large: their squares overflow; scale them")
        scales, columns, trace, traces_squared, own = report[:5]
        damping = context.damping
        if scales > 0:  # not settled before this task
            scale = scales / columns
            damping = scale if self.damping is None else max(self.damping, LEAST_DAMPING * scale)
        theta = 1.0
        if len(report) > 5 and context.n_nodes > 1:
            observed = cross_norm(report[5:], own)
            theta = shrinkage(observed, trace**2 - traces_squared, self.sketch_size)
        return replace(context, damping=float(damping), shrinkage=float(theta))

    def prepare(self, block: Block, memory: Memory, context: Context) -> Subproblem:
        n, p = block.shape
        ridge = memory["ridge"] if "ridge" in memory else self._new_ridge(block, memory, context)
        ridge = ridge * ridge.dtype.type(context.strength)
        sketch = memory.get("sketch")
        rows = n + (0 if sketch is None else len(sketch))
        if self._is_wide(p) and p > rows:
            return WidePast(block, sketch, ridge, context)
        return TallPast(block, memory.get("curvature"), sketch, ridge, context)

    def remember(
        self,
        block: Block,
        memory: Memory,
        context: Context,
        sub: Subproblem,
        curvature: Array | None,
    ) -> Memory:
        n, p = block.shape
        kept = float(self.discount)
        rows = block if curvature is None else scale_rows(block, np.sqrt(curvature))
        trace = squared_norm(rows) + kept * (memory["trace"][0] if memory else 0.0)
        new: dict[str, Array] = {"trace": np.array([trace])}
        new |= self._settle(block, memory, context, sub)
        if not self._is_wide(p):
            if isinstance(sub, TallPast) and curvature is None:
                H = sub.gram
            else:
                H = gram(rows, wide=False)
            new["curvature"] = H + kept * memory["curvature"] if memory else H
        if self.sketch_size:
            dtype = np.dtype(block.dtype).name
            S = sketch_matrix(self.seed, context.task, n, self.sketch_size, dtype)
            SA = as_dense(S @ rows)
            new["sketch"] = SA + kept**0.5 * memory["sketch"] if memory else SA
        return new

    def rescaled(self, memory: Memory, ratio: Array) -> Memory:
        """A^T A, the sketch, the ridge and what was seen of the columns, in the new units."""
        new = dict(memory)
        r = ratio.astype(float)
        if "curvature" in memory:
            new["curvature"] = memory["curvature"] / np.outer(r, r)
        if "sketch" in memory:
            new["sketch"] = memory["sketch"] / r
        if "ridge" in memory:
            new["ridge"] = memory["ridge"] / r**2
        if "seen" in memory:
            count, mean, deviations = memory["seen"]
            new["seen"] = np.array([count, mean / r, deviations / r**2])
        return {k: v.astype(memory[k].dtype) for k, v in new.items()}

    def _new_ridge(self, block: Block, memory: Memory, context: Context) -> Array:
        if self.damping is None and context.damping > 0:
            ridge = column_ridge(self._spread(block, memory), context.damping)
        else:  # given; or all nodes' blocks are zero, and any ridge serves
            ridge = np.full(block.shape[1], context.damping or 1.0)
        return np.maximum(ridge, np.finfo(block.dtype).tiny).astype(block.dtype)

    def _settle(
        self, block: Block, memory: Memory, context: Context, sub: Subproblem
    ) -> dict[str, Array]:
        """The ridge, once it is given or ten samples have shown the columns' scale; else those."""
        seen = None if "ridge" in memory else self._spread(block, memory)
        given = self.damping is not None and context.damping > 0
        if seen is None or given or (seen.settled and context.damping > 0):
            assert isinstance(sub, TallPast | WidePast)
            return {"ridge": sub.ridge[:, 0]}
        count = np.full_like(seen.mean, seen.count)
        return {"seen": np.array([count, seen.mean, seen.deviations])}

    @staticmethod
    def _spread(block: Block, memory: Memory) -> Spread:
        """Of this task's columns and those of the tasks before, as long as the scale is open."""
        now = Spread.of(block)
        if "seen" not in memory:
            return now
        count, mean, deviations = memory["seen"]
        return Spread(int(count[0]), mean, deviations).joined(now)

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
    if seen.settled:
        free = ~seen.varies & (seen.scales > 0)
        return np.asarray(np.where(free, CONSTANT_DAMPING, DEFAULT_DAMPING) * own)
    n = seen.count
    return np.asarray(np.exp((n * np.log(own) + ENOUGH * np.log(scale)) / (n + ENOUGH)))
