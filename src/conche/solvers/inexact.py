"""A few conjugate-gradient steps where a block is too large to factorise.

CoCoA asks of a node no more than some progress on its own subproblem: fewer steps are less work on
the node and more rounds. Nothing is stored beyond the block itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import Array, Block, Context, Memory, Solver, Subproblem, by_columns
from .damped import Damped
from .exact import Exact


@dataclass(frozen=True)
class Inexact(Solver):
    """``base`` with its local solution replaced by ``steps`` steps towards it, from zero."""

    scalars = ("left", "asked")

    base: Exact | Damped
    steps: int

    def report(self, block: Block, memory: Memory) -> Array:
        return self.base.report(block, memory)

    def agree(self, report: Array, context: Context) -> Context:
        return self.base.agree(report, context)

    def prepare(self, block: Block, memory: Memory, context: Context) -> Subproblem:
        return Steps(block, self.base.ridge(context), context.smoothness, self.steps)


class Steps(Subproblem):
    """(A^T A + ridge) z = tau A^T g by conjugate gradients; coordinates are the block's weights."""

    def __init__(self, block: Block, ridge: float, scale: float, steps: int):
        self.block = by_columns(block)
        self.ridge, self.scale, self.steps = ridge, scale, steps
        self.size = block.shape[1]

    def solve(self, g: Array, d: Array) -> Array:
        r = np.asarray(self.block.T @ g)
        z, q = np.zeros_like(r), r
        rr = self.asked = _squares(r)
        exact = (16 * float(np.finfo(r.dtype).eps)) ** 2 * rr  # below it, steps divide noise
        for _ in range(self.steps):
            Aq = np.asarray(self.block @ q)
            bend = _squares(Aq) + self.ridge * _squares(q)
            go = (bend > 0) & (rr > exact)
            a = np.divide(rr, bend, out=np.zeros_like(rr), where=go).astype(r.dtype)
            z = z + a * q
            r = r - a * (np.asarray(self.block.T @ Aq) + r.dtype.type(self.ridge) * q)
            last, rr = rr, _squares(r)
            b = np.divide(rr, last, out=np.zeros_like(rr), where=last > 0).astype(r.dtype)
            q = r + b * q
        self.left = rr
        return np.asarray(self.scale * z)

    def scalars(self, z: Array, q: Array, d: Array) -> Array:
        """The squared gradients of the node's own problem: what is left, and what there was."""
        return np.array([self.left, self.asked])

    def image(self, z: Array) -> Array:
        return np.asarray(self.block @ z)

    def lift(self, d: Array) -> Array:
        return d


def _squares(x: Array) -> Array:
    return np.einsum("ij,ij->j", x, x, dtype=np.float64)
