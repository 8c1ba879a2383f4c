"""Damping that chooses itself: several strengths learn side by side.

What the nodes see of it: every output is there once for each strength. Which strength is the
model's is decided outside, before each task is learnt (`conche.estimators.judge`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...common.arrays import Array, Block
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
        each = np.split(weights, len(self.each), axis=1)
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
        self.parts = parts
        self.size = max(part.size for part in parts)

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        shares = zip(self.parts, *(self._shares(x) for x in (g, d, q)), strict=True)
        found = [part.solve(gi, di[: part.size], qi[: part.size]) for part, gi, di, qi in shares]
        each = zip(*(solution.scalars.values() for solution in found), strict=True)
        scalars = type(found[0].scalars)(*(np.concatenate(values) for values in each))
        return Solution(np.hstack([self._pad(solution.z) for solution in found]), scalars)

    def image(self, z: Array) -> Array:
        pairs = zip(self.parts, self._shares(z), strict=True)
        return np.hstack([part.image(zi[: part.size]) for part, zi in pairs])

    def lift(self, d: Array) -> Array:
        pairs = zip(self.parts, self._shares(d), strict=True)
        return np.hstack([part.lift(di[: part.size]) for part, di in pairs])

    def _shares(self, x: Array) -> list[Array]:
        return np.split(x, len(self.parts), axis=1)

    def _pad(self, z: Array) -> Array:
        missing = self.size - len(z)
        return np.pad(z, ((0, missing), (0, 0))) if missing else z
