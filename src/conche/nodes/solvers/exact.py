"""The update of Algorithm 1: minimum norm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...common.arrays import Array, Block
from ..scaling import Kept
from .base import Context, Solver
from .factor import Factored, factorise


@dataclass(frozen=True)
class ExactSolver(Solver[Factored]):
    """z = tau A_k^+ g, the minimum-norm solution of the local subproblem (Algorithm 1, line 7)."""

    def nearly_square(self, n_samples: int, sizes: Sequence[int]) -> list[int]:
        """Where |n - p_k| <= 1, Theorem 1's error is infinite."""
        return [k for k, size in enumerate(sizes) if abs(n_samples - size) <= 1]

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> Factored:
        """One node alone also says how much of g its columns can explain."""
        return factorise(
            block, scale=context.smoothness, alone=context.n_nodes == 1, stack=context.stack
        )

    def ridge(self, context: Context) -> float:
        """No brake."""
        return 0.0
