"""One node that has all columns, in units of their ridge: recursive least squares."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np

from ...common.arrays import (
    Array,
    Block,
    as_dense,
    column_dots,
    eye,
    joined,
    space,
    zeros,
)
from ...common.linear import solve_upper
from ..layout import Layout
from ..scalars import PenaltyScalars
from ..scaling import Kept
from .base import Context, Proposing, Solution, Solver
from .information import Equilibrated, Information, triangle
from .stretched import Stretched


@dataclass(frozen=True)
class OneNode(Solver["Together"]):
    """The task's rows and the past.

    kept["before"] is what the last task's ridge says of the weights, R w; without it the ridge has
    not changed.
    """

    def factorise(
        self, block: Block | Stretched, weights: Array, kept: Kept, context: Context
    ) -> Together:
        """By the Gram matrix where that is accurate, by a root of it otherwise."""
        block = Stretched.of(block)
        past = Information.known(kept)
        past = None if past is None else past.weighed(context.discount)
        pull = zeros(weights, block.shape[1], 1)
        if "before" in kept:
            pull = context.discount * kept["before"] - weights
        if past is None or not past.is_root:
            by_gram = ByGram.of(block, past, pull, context)
            if by_gram is not None:
                return by_gram
        return ByRoot(Stretched(block.whole()), past, pull, context)

    def laid_out(self, kept: Kept, layout: Layout) -> Kept:
        known = Information.known(kept)
        return {} if known is None else known.laid_out(layout).to_keep()

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: Together, curvature: Array | None
    ) -> Kept:
        """The past's information and this task's."""
        rows = None if curvature is None else sub.block.weighed(curvature**0.5)
        return sub.remembered(rows).to_keep()


class Together(Proposing):
    """loss(A (w + d)) + 1/2 d^T (H + I) d - pull.d:  H the past.

    The ridge may have changed since the last task; ``pull`` is what that does to the old estimate,
    which was the minimiser for the old one. ``solve`` inverts A^T A / tau + H + I, which for the
    squared loss is the problem itself: one step ends it.
    """

    questions = ("bend",)

    def __init__(self, block: Stretched, past: Information | None, pull: Array, context: Context):
        self.block, self.past, self.pull = block, past, pull
        self.size = block.shape[1]
        self.tau, self.exact = context.smoothness, context.quadratic

    @abstractmethod
    def inverse(self, r: Array, g: Array, d: Array) -> Array:
        """z for the residual r, which is that of the direction g at the update d."""

    @abstractmethod
    def bend(self, d: Array, curvature: Array) -> Array:
        """Factorise anew with the loss's curvature as it is now, the mean over outputs."""

    @abstractmethod
    def by_factors(self, r: Array) -> Array:
        """The same without a correction, for columns of any kind."""

    @abstractmethod
    def whole(self, z: Array) -> Array:
        """(A^T A / tau + H) z."""

    @abstractmethod
    def remembered(self, rows: Stretched | None) -> Information:
        """The past and the task's rows; None: those that were factorised."""

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        Pd = self._penalty(d) - self.pull
        r = self.block.turned(g) - Pd
        z = self.inverse(r, g, d)
        Pz = self._penalty(z)
        slack = column_dots(r, r)
        if self.exact:  # r.(A^T A + H + I)^-1 r, from what z leaves of r
            left = r - self.whole(z) - z
            close = column_dots(z, r + left) + column_dots(left, left)
            slack = space(slack).minimum(slack, close)
        dots = (column_dots(z, Pz), column_dots(q, Pz), column_dots(Pd, z))
        return Solution(z, PenaltyScalars(*dots, slack))

    def corrected(self, V: Array, z: Array, g: Array, d: Array) -> Array:
        """z is what factors make of the rows' transpose times what they are to meet. Where it is
        corrected by what they do not meet yet, row by row, it is as accurate as the rows V of the
        past and those of the task themselves."""
        if not self.exact:  # then z only shows the way
            return z
        for _ in range(2):
            past = V.T @ (V @ (-d - z))
            task = self.block.turned(g - self.block.times(z) / self.tau)
            z = z + self.by_factors(past + task + (self.pull - d - z))
        return z

    def image(self, z: Array) -> Array:
        return self.block.times(z)

    def lift(self, d: Array) -> Array:
        return d

    def _penalty(self, d: Array) -> Array:
        moved = bool(space(d).any(d != 0))  # not before the first round
        return d + self.past.times(d) if moved and self.past is not None else d


class ByGram(Together):
    """Normal equations: cheap, and accurate where they are well conditioned."""

    now: Array  # A^T A
    all_of_it: Array  # A^T A / tau + H
    factor: Equilibrated

    @classmethod
    def of(
        cls, block: Stretched, past: Information | None, pull: Array, context: Context
    ) -> Self | None:
        """None where too many digits would be lost."""
        self = cls(block, past, pull, context)
        self.now = block.gram()
        weighed = self.now if self.tau == 1.0 else self.now / self.tau
        self.all_of_it = weighed if past is None else past.matrix + weighed
        factor = Equilibrated.of(self.all_of_it, 1.0)
        if factor is None:
            return None
        self.factor = factor
        return self

    def bend(self, d: Array, curvature: Array) -> Array:
        G = self.block.weighed(space(curvature).mean(curvature, axis=1) ** 0.5).gram()
        G = G if self.past is None else self.past.matrix + G
        self.factor = Equilibrated.of(G, 1.0) or self.factor
        return np.zeros(0)

    def inverse(self, r: Array, g: Array, d: Array) -> Array:
        return self.by_factors(r)

    def by_factors(self, r: Array) -> Array:
        return self.factor.solve(r)

    def whole(self, z: Array) -> Array:
        return self.all_of_it @ z

    def remembered(self, rows: Stretched | None) -> Information:
        if rows is None and self.tau == 1.0:
            return Information(self.all_of_it)
        now = self.now if rows is None else rows.gram()
        return Information(now if self.past is None else self.past.matrix + now)


class ByRoot(Together):
    """Least squares on the rows [V; A / sqrt(tau); I] by orthogonal transformations."""

    def __init__(self, block: Stretched, past: Information | None, pull: Array, context: Context):
        past = None if past is None else past.as_root()
        super().__init__(block, past, pull, context)
        rows = as_dense(block.whole())
        self.V = zeros(rows, 0, self.size) if past is None else past.matrix
        self.R = triangle(joined([self.V, rows / self.tau**0.5]))
        self._factorise(self.R)

    def _factorise(self, R: Array) -> None:
        self.factor = triangle(joined([R, eye(R, self.size)]))

    def bend(self, d: Array, curvature: Array) -> Array:
        root = space(curvature).mean(curvature, axis=1) ** 0.5
        rows = as_dense(self.block.weighed(root).whole())
        self._factorise(triangle(joined([self.V, rows])))
        return np.zeros(0)

    def inverse(self, r: Array, g: Array, d: Array) -> Array:
        return self.corrected(self.V, self.by_factors(r), g, d)

    def by_factors(self, r: Array) -> Array:
        return solve_upper(self.factor, solve_upper(self.factor, r, turned=True))

    def whole(self, z: Array) -> Array:
        return self.R.T @ (self.R @ z)

    def remembered(self, rows: Stretched | None) -> Information:
        new = self.block if rows is None else rows
        return Information(triangle(joined([self.V, as_dense(new.whole())])), True)
