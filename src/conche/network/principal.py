"""Principal directions over nodes: merged once a task, and used to correct every proposal.

The rows B = [V; A] of all nodes together, V the directions so far and A the task's, become the
``rank`` best directions V' that stand for them (`conche.network.merge`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from ..common.arrays import (
    Array,
    bytes_of,
    here,
    joined,
    parts_of,
    ratio,
)
from ..common.linear import with_diagonal
from ..nodes import Proposal
from ..nodes.scalars import PenaltyScalars, SpectralScalars
from ..nodes.solvers import Context
from ..nodes.solvers.cholesky import Bordered, Cholesky, robust_cholesky
from ..nodes.solvers.principal import PrincipalMemory
from .base import CentralNetwork, Coefficients, Lost, Placed
from .cut import Directions, volume
from .merge import Merge
from .wrapper import Wrapped

ROUNDING = 1e-13  # relative: of products of directions
MOST_ROWS = 2048  # of sparse columns, whose products the coordinator factorises as they are


class PrincipalNetwork(Wrapped):
    """A central network whose nodes keep directions of the past together."""

    def __init__(self, inner: CentralNetwork):
        super().__init__(inner)
        self._coarse: list[Cholesky | Bordered] = []
        self._cut, self._whole = 0.0, False
        self._squares = np.zeros(0)  # of the directions' lengths
        self._least = np.zeros(1)
        self._merged: Directions | None = None
        self._volume: Array | None = None
        self._context: Context | None = None

    def factorise(self, context: Context) -> None:
        """Merge the directions, and factorise what they say of all nodes together."""
        self._context, self.overhead = context, 0
        self.inner.factorise(context)
        rows = context.past_rows + context.n_samples
        self._whole = self._solver().sparse and self._solver().rank < rows <= MOST_ROWS
        if self._whole:
            self._least = np.ones(len(context.each))
            answer = self._sum("whole")
            if context.past_rows:
                parts = np.split(answer, len(context.each))
                self._coarse = [Bordered(part[:-1], part[-1]) for part in parts]
            else:
                products, border = answer[:-1], answer[-1]
                self._coarse = [Bordered(products / s, border / s**0.5) for s in context.each]
        else:
            self._merge()
        self._volume = self._volumes(rows)

    def _volumes(self, rows: int) -> Array | None:
        """log det (I + B B^T / s), for every strength: exactly where all rows are known, and nearly
        in the first task, in which nothing can have been lost. None elsewhere."""
        assert self._context is not None and self.setup is not None
        if rows <= self._solver().rank or (self._whole and not self._context.past_rows):
            return np.array([factor.log_det for factor in self._coarse])
        if self._context.past_rows or self._merged is None:
            return None
        columns = sum(self.setup.partition.weight_counts())
        return np.array([volume(self._merged, rows, columns, s) for s in self._context.each])

    def _merge(self) -> None:
        assert self._context is not None and self.setup is not None
        solver, widths = self._solver(), self.setup.partition.weight_counts()
        rows = self._context.past_rows + self._context.n_samples
        if rows <= solver.rank:
            self._cut, self._squares = 0.0, np.zeros(rows)
            self._least = np.ones(len(self._context.each))
            inner = self._sum("unmerged")
            coarse = [inner / s for s in self._context.each]
        else:
            known = (solver.rank, solver.seed, self._whole, solver.sums)
            merge = Merge(self.inner, widths, rows, *known)
            self._merged, norm = merge.run()
            self._squares, self._cut = self._merged.squares, self._merged.norm
            self._least = np.array([s / (s + norm) for s in self._context.each])
            self.overhead += merge.sent
            coarse = parts_of(self._sum("coarse"), len(self._context.each), axis=0)
        self._coarse = [robust_cholesky(with_diagonal(M, 1.0)) for M in coarse]

    def propose(self, g: Array) -> Proposal:
        """The nodes' proposals, corrected by what they have in common."""
        t = self._correct(self.inner.total("residual", g))
        image, scalars = self.inner.propose(joined([g, t]))
        return Proposal(image, SpectralScalars.of(cast(PenaltyScalars, scalars), self._least))

    def cost(self, arrays: Sequence[Array | None]) -> int:
        """Also a vector as long as the rank each way, for every output."""
        assert self._context is not None
        g = arrays[0]
        assert g is not None
        correction = 2 * 8 * self._coarse[0].size * g.shape[1]
        return super().cost(arrays) + self.hosts() * correction

    def conclude(self, curvature: Array | None, g: Array) -> Lost | None:
        """What the directions that were cut before this task have cost in it. Rows that are
        remembered with other weights than they were learnt with are merged again."""
        if curvature is not None:
            self.inner.total("weigh", curvature)
        if curvature is not None or self._whole:
            self._merge()
        if not self._context or not self._context.quadratic:
            return None
        seen = self._sum("probe")
        told = here(self.inner.total("witness", seen))
        growth = float(here(self.inner.largest("growth"))[0])
        probed, rest = np.split(told, [seen.shape[1]])
        moved, spread, owed, constant, along = *rest[:4], rest[4:]
        t = self._correct(self._sum("cut", np.zeros((0, 0))))
        self._count(seen, told, t)
        lengths, bent = here(self._sum("cut", t))
        pairs = np.split(here(self._sum("bent")), 2)
        owed = self._beyond(owed, along)
        ease = ratio(bent, lengths)
        lost = Lost(self._cut, moved, spread, owed, growth, probed, ease, tuple(pairs))
        return lost._replace(volume=self._volume, constant=constant)

    def _beyond(self, squares: Array, along: Array) -> Array:
        """b.(V'^T V' + s)^-1 b from |b|^2 and V' b: Woodbury, with orthogonal directions (up to
        rounding, for which their lengths are taken a little larger)."""
        assert self._context is not None
        s = np.repeat(self._context.each, len(squares) // len(self._context.each))
        large = self._squares + ROUNDING * np.max(self._squares, initial=0.0)
        held = np.sum(along**2 / (s + large[:, None]), axis=0)
        return np.maximum(squares - held, ROUNDING * squares) / s

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        self._coarse = []
        return self.inner.end(curvature)

    def _correct(self, s: Array) -> Array:
        parts = zip(self._coarse, parts_of(s, len(self._coarse)), strict=True)
        return joined([factor.solve(part) for factor, part in parts], -1)

    def _sum(self, question: str, *about: object) -> Array:
        answer = self.inner.total(question, *about)
        self._count(answer)
        return answer

    def _count(self, *arrays: Array) -> None:
        self.overhead += self.hosts() * sum(bytes_of(array) for array in arrays)

    def _solver(self) -> PrincipalMemory:
        assert self.setup is not None
        return cast(PrincipalMemory, self.setup.solver)
