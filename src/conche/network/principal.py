"""Principal directions over nodes: merged once a task, and used to correct every proposal.

The rows B = [V; A] of all nodes together, V the directions so far and A the task's, become the
``rank`` best directions V' that stand for them (`conche.network.cut`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from ..common.arrays import Array, ratio
from ..nodes import Proposal
from ..nodes.scalars import PenaltyScalars, SpectralScalars
from ..nodes.solvers import Context
from ..nodes.solvers.factor import Cholesky, robust_cholesky
from ..nodes.solvers.principal import PrincipalMemory
from .base import CentralNetwork, Coefficients, Each, Lost, Placed, total_array
from .cut import OVERSAMPLING, Gathered, exact_cut, range_cut
from .wrapper import Wrapped


class PrincipalNetwork(Wrapped):
    """A central network whose nodes keep directions of the past together."""

    def __init__(self, inner: CentralNetwork):
        super().__init__(inner)
        self._coarse: list[Cholesky] = []
        self._cut = 0.0
        self._least = np.zeros(1)
        self._context: Context | None = None

    def factorise(self, context: Context) -> None:
        """Merge the directions, and factorise what they say of all nodes together."""
        self._context, self.overhead = context, 0
        self.inner.factorise(context)
        self._merge()

    def _merge(self) -> None:
        assert self._context is not None and self.setup is not None
        rank, counts = self._solver().rank, self.setup.partition.weight_counts()
        rows = self._context.past_rows + self._context.n_samples
        if rows <= rank:
            self._cut, self._least = 0.0, np.ones(len(self._context.each))
            inner = self._sum("stack")
            coarse = [inner / s for s in self._context.each]
        else:
            if max(counts) <= (rows if rows <= 2 * rank else rank + OVERSAMPLING):
                self._cut = self._merge_here(rows, rank)
            else:
                self._cut = self._merge_there(rows, rank, sum(counts))
            coarse = np.split(self._sum("coarse"), len(self._context.each))
        self._coarse = [robust_cholesky(np.eye(len(M)) + M) for M in coarse]

    def _merge_here(self, rows: int, rank: int) -> float:
        """Narrow blocks come here, rotated, and their directions go back: that is less than what
        would be asked about them. Answers the norm of what is cut."""
        parts = self.inner.ask("shown")
        rng = np.random.default_rng([self._solver().seed, rows])
        V, norm = Gathered(np.hstack(parts), rng).directions(rank)
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]
        answers = self.inner.ask("told", Each(np.split(V, ends, axis=1)))
        self._least = np.min(answers, axis=0)
        self.overhead += V.nbytes + sum(part.nbytes for part in parts)
        return norm

    def _merge_there(self, rows: int, rank: int, columns: int) -> float:
        """Wide blocks stay: sums over them say which combinations of rows are best."""
        if rows <= 2 * rank:
            cut = exact_cut(self._sum("gram"), rank, columns)
        else:
            cut = range_cut(self, rank, columns)
        self._count(cut.W)
        self._least = np.min(self.inner.ask("merge", cut.W), axis=0)
        return cut.norm

    def sketch(self, width: int) -> Array:
        """B times random columns, of all nodes together."""
        return self._sum("sketch", width)

    def power(self, Q: Array) -> Array:
        """B B^T Q."""
        self._count(Q)
        return self._sum("power", Q)

    def project(self, Q: Array) -> Array:
        """C C^T for C = Q^T B, and the squared norm of B below."""
        self._count(Q)
        return self._sum("project", Q)

    def propose(self, g: Array) -> Proposal:
        """The nodes' proposals, corrected by what they have in common."""
        t = self._correct(self.inner.total("residual", g))
        image, scalars = self.inner.propose(np.concatenate([g, t]))
        return Proposal(image, SpectralScalars.of(cast(PenaltyScalars, scalars), self._least))

    def cost(self, arrays: Sequence[Array | None]) -> int:
        """Also a vector as long as the rank each way, for every output."""
        assert self._context is not None
        g = arrays[0]
        assert g is not None
        correction = 2 * 8 * len(self._coarse[0].L) * g.shape[1]
        return super().cost(arrays) + self._context.n_nodes * correction

    def conclude(self, curvature: Array | None) -> Lost | None:
        """What the directions that were cut before this task have cost in it. Rows that are
        remembered with other weights than they were learnt with are merged again."""
        if curvature is not None:
            self.inner.ask("weigh", curvature)
            self._merge()
        if not self._context or not self._context.quadratic:
            return None
        seen = self._sum("probe")
        answers = self.inner.ask("witness", seen)
        growth = max(float(answer[-1, 0]) for answer in answers)
        told = total_array(answers)
        t = self._correct(self._sum("cut", np.zeros((0, 0))))
        self._count(seen, told, t)
        lengths, bent = self._sum("cut", t)
        pairs = np.split(self._sum("bent"), 2)
        return Lost(self._cut, told[-2], growth, told[:-2], ratio(bent, lengths), tuple(pairs))

    def end(self, curvature: Array | None = None) -> tuple[Coefficients, Placed]:
        self._coarse = []
        return self.inner.end(curvature)

    def leverage(self, rows: Array) -> Array:
        t = self._correct(self._sum("leverage", rows, np.zeros((0, 0))))
        self._count(t)
        return self._sum("leverage", rows, t)

    def _correct(self, s: Array) -> Array:
        parts = zip(self._coarse, np.split(s, len(self._coarse), axis=1), strict=True)
        return np.hstack([factor.solve(part) for factor, part in parts])

    def _sum(self, question: str, *about: object) -> Array:
        answer = self.inner.total(question, *about)
        self._count(answer)
        return answer

    def _count(self, *arrays: Array) -> None:
        assert self._context is not None
        self.overhead += self._context.n_nodes * sum(array.nbytes for array in arrays)

    def _solver(self) -> PrincipalMemory:
        assert self.setup is not None
        return cast(PrincipalMemory, self.setup.solver)
