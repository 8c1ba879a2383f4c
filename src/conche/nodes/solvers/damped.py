"""Algorithm 1 with a brake: the local subproblem plus a proximal term."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...common.arrays import Array, Block
from ..scaling import Kept
from ..spread import Look
from .base import Context, Solver
from .factor import Factored, factorise

DEFAULT_DAMPING = 10.0  # in units of the columns' mean variance


@dataclass(frozen=True)
class DampedSolver(Solver[Factored]):
    """(K/tau A_k^T A_k + mu n I) Delta_k = A_k^T g:  rounds move cautiously, the limit is the same.

    ``damping`` is mu. None means ten times the mean variance of the task's columns (over all
    nodes), so that rescaling the data changes nothing.
    """

    damping: float | None = None

    def report(self, block: Block, kept: Kept, look: Look) -> Array:
        """The sum of the columns' variances, and their number."""
        if self.damping is not None:
            return np.zeros(2)
        return np.array([look.spread.scales.sum(), block.shape[1]])

    def agree(self, report: Array, context: Context) -> Context:
        """mu: as given, or ten times the mean variance."""
        if self.damping is not None:
            return replace(context, damping=float(self.damping))
        scales, columns = report.tolist()
        return replace(context, damping=DEFAULT_DAMPING * scales / columns)

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> Factored:
        """A_k^T A_k + (mu n tau / K) I, on its smaller side."""
        return factorise(block, self.ridge(context), context.smoothness, stack=context.stack)

    def ridge(self, context: Context) -> float:
        """mu n tau / K."""
        tau, K = context.smoothness, context.n_nodes
        return context.damping * context.weight * tau / K
