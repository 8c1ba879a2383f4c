"""The update of Algorithm 1: minimum norm."""

from __future__ import annotations

from dataclasses import dataclass

from .base import Block, Context, Memory, Solver, Subproblem
from .factor import factorise


@dataclass(frozen=True)
class Exact(Solver):
    """z = tau A_k^+ g, the minimum-norm solution of the local subproblem (Algorithm 1, line 7)."""

    projects = True

    def prepare(self, block: Block, memory: Memory, context: Context) -> Subproblem:
        return factorise(block, scale=context.smoothness)

    def ridge(self, context: Context) -> float:
        return 0.0
