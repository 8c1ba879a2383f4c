"""Algorithm 1's own steps: every node moves by 1/K of its solution."""

from __future__ import annotations

from ...common.arrays import Array
from ...nodes.scalars import Scalars
from .base import CentralSteps, Move, Problem, Standing


class Safe(CentralSteps[None]):
    """Lines 5 to 9 of Algorithm 1."""

    def move(self, problem: Problem, now: Standing[None], Az: Array, scalars: Scalars) -> Move:
        K = problem.n_nodes
        v = Az / K
        v += now.point.v  # in place: at this size a fresh array costs as much as the sum
        zPz, _, dPz = scalars.products()
        return Move(v, now.point.penalty + dPz / K + 0.5 * zPz / K**2)
