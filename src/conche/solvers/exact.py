"""The update of Algorithm 1: minimum norm."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Block, Context, Memory, Solver, Subproblem
from .factor import Iterative, Spectral, factorise


@dataclass(frozen=True)
class Exact(Solver):
    """z = tau A_k^+ g, the minimum-norm solution of the local subproblem (Algorithm 1, line 7)."""

    projects = True
    scalars = ("cut",)

    def prepare(self, block: Block, memory: Memory, context: Context) -> Subproblem:
        sub = factorise(block, scale=context.smoothness)
        sub.tells = context.n_nodes == 1 and isinstance(sub, Spectral | Iterative)
        return sub

    def ridge(self, context: Context) -> float:
        return 0.0
