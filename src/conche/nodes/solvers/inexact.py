"""A few conjugate-gradient steps where a block is too large to factorise.

CoCoA asks of a node no more than some progress on its own subproblem: fewer steps are less work on
the node and more rounds. Nothing is stored beyond the block itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...common.arrays import (
    Array,
    Block,
    as_type,
    by_columns,
    column_dots,
    epsilon,
    ratio,
    space,
    summed,
)
from ...common.linear import transposed
from ..scalars import InexactScalars
from ..scaling import Kept
from .base import Context, Proposing, Solution, Wrapper
from .damped import DampedSolver
from .exact import ExactSolver

if TYPE_CHECKING:
    from ..stack import Stack

CLOSE = 1e-6  # what is left of the gradient where nobody says how many steps: then it is enough
MOST = 1000  # steps there, or as many as a node has columns


@dataclass(frozen=True)
class InexactSolver(Wrapper["LocalSteps"]):
    """``base`` with its local solution replaced by ``steps`` steps towards it, from zero; None: as
    many as it takes to come `CLOSE`."""

    base: ExactSolver | DampedSolver
    steps: int | None

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> LocalSteps:
        """Nothing is factorised: the block is all that it takes."""
        ridge, stack = self.base.ridge(context), context.stack
        return LocalSteps(block, ridge, context.smoothness, self.steps, stack)


class LocalSteps(Proposing):
    """(A^T A + ridge) z = tau A^T g by conjugate gradients; coordinates are the block's weights."""

    def __init__(
        self,
        block: Block,
        ridge: float,
        scale: float,
        steps: int | None,
        stack: Stack | None = None,
    ):
        self.block = by_columns(block) if stack is None else stack.columns(block)
        self.ridge, self.scale, self.stack = ridge, scale, stack
        *nodes, _, self.size = self.block.shape
        self.steps = max(MOST, self.size) if steps is None else steps
        self.ends = steps is None
        self.stacked = tuple(nodes)

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        turned = self.block.T if self.stack is None else transposed(self.block)
        r = turned @ g
        xp = space(r)
        z, p = xp.zeros_like(r), r
        left = asked = column_dots(r, r)
        exact = (16 * epsilon(r)) ** 2 * left  # below it, steps divide noise
        close = xp.maximum(CLOSE**2 * left, exact)
        for _ in range(self.steps):
            if self.ends and not bool(xp.any(left > close)):
                break
            Ap = self.block @ p
            bend = column_dots(Ap, Ap) + self.ridge * column_dots(p, p)
            a = xp.where(left > exact, ratio(left, bend), xp.zeros_like(left))
            a = as_type(a, r.dtype)[..., None, :]
            z = z + a * p
            r = r - a * (turned @ Ap + self.ridge * p)
            last, left = left, column_dots(r, r)
            p = r + as_type(ratio(left, last), r.dtype)[..., None, :] * p
        if self.stack is not None:
            left, asked = xp.sum(left, axis=0), xp.sum(asked, axis=0)
        return Solution(self.scale * z, InexactScalars(left, asked))

    def image(self, z: Array) -> Array:
        return self.block @ z if self.stack is None else summed(self.block @ z)

    def lift(self, d: Array) -> Array:
        return d if self.stack is None else self.stack.join(d)
