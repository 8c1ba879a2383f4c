"""Damping that chooses itself: several strengths learn side by side, the next task is the judge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .base import Array, Block, Context, Memory, Solver, Subproblem

STRENGTHS = (1.0, 0.01, 0.1, 10.0, 100.0)  # of the default damping, which ties go to


@dataclass(frozen=True)
class Auto(Solver):
    """``base`` with every strength of its damping at once: one group of outputs each.

    Nothing is kept beyond the groups' weights. Which group is the model's is decided before each
    task is learnt, by the errors that the groups made on the tasks as they came in.
    """

    base: Solver
    strengths: tuple[float, ...] = STRENGTHS

    @property
    def scalars(self) -> tuple[str, ...]:  # type: ignore[override]  # the base's, not the class's
        return self.base.scalars

    def sketch_rows(self, task: int) -> int:
        return self.base.sketch_rows(task)

    def report(self, block: Block, memory: Memory) -> Array:
        return self.base.report(block, memory)

    def agree(self, report: Array, context: Context) -> Context:
        return self.base.agree(report, context)

    def prepare(self, block: Block, memory: Memory, context: Context) -> Subproblem:
        parts = [
            self.base.prepare(block, memory, replace(context, strength=strength))
            for strength in self.strengths
        ]
        return Several(parts)

    def remember(
        self,
        block: Block,
        memory: Memory,
        context: Context,
        sub: Subproblem,
        curvature: Array | None,
    ) -> Memory:
        """The past does not depend on the damping: one memory serves all groups."""
        assert isinstance(sub, Several)
        return self.base.remember(block, memory, context, sub.parts[0], curvature)

    def rescaled(self, memory: Memory, ratio: Array) -> Memory:
        return self.base.rescaled(memory, ratio)


class Several(Subproblem):
    """Subproblems side by side, each for its own group of outputs; coordinates are stacked to the
    longest of them."""

    def __init__(self, parts: list[Subproblem]):
        self.parts = parts
        self.size = max(part.size for part in parts)

    def solve(self, g: Array, d: Array) -> Array:
        return np.hstack(
            [
                self._pad(part.solve(gi, di[: part.size]))
                for part, gi, di in zip(self.parts, self._groups(g), self._groups(d), strict=True)
            ]
        )

    def image(self, z: Array) -> Array:
        return self._each("image", z)

    def lift(self, d: Array) -> Array:
        return self._each("lift", d)

    def scalars(self, z: Array, q: Array, d: Array) -> Array | None:
        groups = zip(self.parts, *map(self._groups, (z, q, d)), strict=True)
        said = [part.scalars(*(x[: part.size] for x in own)) for part, *own in groups]
        return None if said[0] is None else np.hstack([one for one in said if one is not None])

    def _groups(self, x: Array) -> list[Array]:
        return np.split(x, len(self.parts), axis=1)

    def _each(self, name: str, x: Array) -> Array:
        pairs = zip(self.parts, self._groups(x), strict=True)
        return np.hstack([getattr(part, name)(xi[: part.size]) for part, xi in pairs])

    def _pad(self, z: Array) -> Array:
        missing = self.size - len(z)
        return np.pad(z, ((0, missing), (0, 0))) if missing else z
