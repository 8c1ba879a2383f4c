"""Damping that chooses itself: several strengths learn side by side.

What the nodes see of it: every output is there once for each strength. Which strength is the
model's is decided outside, before each task is learnt (`conche.estimators.judge`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...common.arrays import Array, Block, joined, parts_of, zeros
from ..scaling import Kept
from .base import Context, Proposing, Solution, Solver, Wrapper

STRENGTHS = (1.0, 0.01, 0.1, 10.0, 100.0)  # of the default damping, which ties go to


@dataclass(frozen=True)
class Strengths(Wrapper["SideBySide"]):
    """``base`` with every strength of its damping at once. Nothing is kept beyond the weights."""

    base: Solver[Any]
    each: tuple[float, ...] = STRENGTHS

    def strengths(self) -> tuple[float, ...]:
        """All of them."""
        return self.each

    def factorise(self, block: Block, weights: Array, kept: Kept, context: Context) -> SideBySide:
        """One subproblem for each strength."""
        each = parts_of(weights, len(self.each))
        return SideBySide(
            [
                self.base.factorise(block, own, kept, replace(context, strength=strength))
                for own, strength in zip(each, self.each, strict=True)
            ]
        )

    def remember(
        self, block: Block, kept: Kept, context: Context, sub: SideBySide, curvature: Array | None
    ) -> Kept:
        """The past does not depend on the damping: one memory serves all strengths."""
        return self.base.remember(block, kept, context, sub.parts[0], curvature)

    def rescaled(self, kept: Kept, ratio: Array) -> Kept:
        """The base's."""
        return self.base.rescaled(kept, ratio)


class SideBySide(Proposing):
    """Subproblems side by side, each for its own outputs; coordinates are padded to the longest."""

    def __init__(self, parts: list[Proposing]):
        self.parts, self.stacked = parts, parts[0].stacked
        self.size = max(part.size for part in parts)

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        shares = zip(
            self.parts, parts_of(g, len(self.parts)), self._own(d), self._own(q), strict=True
        )
        found = [part.solve(gi, di, qi) for part, gi, di, qi in shares]
        each = zip(*(solution.scalars.values() for solution in found), strict=True)
        scalars = type(found[0].scalars)(*(joined(values) for values in each))
        return Solution(joined([self._pad(solution.z) for solution in found], -1), scalars)

    def image(self, z: Array) -> Array:
        pairs = zip(self.parts, self._own(z), strict=True)
        return joined([part.image(zi) for part, zi in pairs], -1)

    def lift(self, d: Array) -> Array:
        pairs = zip(self.parts, self._own(d), strict=True)
        return joined([part.lift(di) for part, di in pairs], -1)

    def _own(self, x: Array) -> list[Array]:
        """Every part's coordinates."""
        pairs = zip(self.parts, parts_of(x, len(self.parts)), strict=True)
        return [own[..., : part.size, :] for part, own in pairs]

    def _pad(self, z: Array) -> Array:
        missing = self.size - z.shape[-2]
        return joined([z, zeros(z, *self.stacked, missing, z.shape[-1])], -2) if missing else z
