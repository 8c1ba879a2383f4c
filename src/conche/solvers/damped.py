"""Algorithm 1 with a brake: the local subproblem plus a proximal term."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .base import Array, Block, Context, Memory, Solver, Subproblem, squared_norm
from .factor import factorise

DEFAULT_DAMPING = 10.0  # in units of the task's mean squared feature


@dataclass(frozen=True)
class Damped(Solver):
    """(K/tau A_k^T A_k + mu n I) Delta_k = A_k^T g:  rounds move cautiously, the limit is the same.

    ``damping`` is mu. None means ten times the mean square of the task's features (over all
    nodes), so that rescaling the data changes nothing.
    """

    damping: float | None = None

    def report(self, block: Block, memory: Memory) -> Array:
        return np.array([squared_norm(block), block.shape[0] * block.shape[1]])

    def agree(self, report: Array, context: Context) -> Context:
        energy, entries = report
        mu = DEFAULT_DAMPING * energy / entries if self.damping is None else self.damping
        return replace(context, damping=float(mu))

    def prepare(self, block: Block, memory: Memory, context: Context) -> Subproblem:
        tau, K = context.smoothness, context.n_nodes
        return factorise(block, ridge=context.damping * context.n_samples * tau / K, scale=tau)
