"""A few conjugate-gradient steps where a block is too large to factorise.

CoCoA asks of a node no more than some progress on its own subproblem: fewer steps are less work on
the node and more rounds. Nothing is stored beyond the block itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.arrays import Array, Block, by_columns, column_dots, ratio
from ..scalars import InexactScalars
from ..scaling import Kept
from .base import Context, Proposing, Solution, Wrapper
from .damped import DampedSolver
from .exact import ExactSolver


@dataclass(frozen=True)
class InexactSolver(Wrapper["LocalSteps"]):
    """``base`` with its local solution replaced by ``steps`` steps towards it, from zero."""

    base: ExactSolver | DampedSolver
    steps: int

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> LocalSteps:
        """Nothing is factorised: the block is all that it takes."""
        return LocalSteps(block, self.base.ridge(context), context.smoothness, self.steps)


class LocalSteps(Proposing):
    """(A^T A + ridge) z = tau A^T g by conjugate gradients; coordinates are the block's weights."""

    def __init__(self, block: Block, ridge: float, scale: float, steps: int):
        self.block = by_columns(block)
        self.ridge, self.scale, self.steps = ridge, scale, steps
        self.size = block.shape[1]

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        r = np.asarray(self.block.T @ g)
        z, p = np.zeros_like(r), r
        left = asked = column_dots(r, r)
        exact = (16 * float(np.finfo(r.dtype).eps)) ** 2 * left  # below it, steps divide noise
        for _ in range(self.steps):
            Ap = np.asarray(self.block @ p)
            bend = column_dots(Ap, Ap) + self.ridge * column_dots(p, p)
            a = np.where(left > exact, ratio(left, bend), 0.0).astype(r.dtype)
            z = z + a * p
            r = r - a * (np.asarray(self.block.T @ Ap) + r.dtype.type(self.ridge) * p)
            last, left = left, column_dots(r, r)
            p = r + ratio(left, last).astype(r.dtype) * p
        return Solution(np.asarray(self.scale * z), InexactScalars(left, asked))

    def image(self, z: Array) -> Array:
        return np.asarray(self.block @ z)

    def lift(self, d: Array) -> Array:
        return d
