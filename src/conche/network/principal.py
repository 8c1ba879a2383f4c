"""Principal directions over nodes: merged once a task, and used to correct every proposal.

The rows B = [V; A] of all nodes together, V the directions so far and A the task's, become the
``rank`` best rows V' that stand for them:

* few rows (at most twice the rank): the eigenvectors of B B^T, exactly;
* many: those within the range of B times random columns, after one power step.

Every direction is shortened by the mean of what is cut, over all directions that are left, as in
probabilistic principal components: what strong directions alone would say of cross blocks, the many
weak ones cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np
from scipy import linalg

from ..common.arrays import Array, ratio
from ..nodes import Proposal
from ..nodes.scalars import PenaltyScalars, SpectralScalars
from ..nodes.solvers import Context
from ..nodes.solvers.factor import Cholesky, robust_cholesky
from ..nodes.solvers.principal import PrincipalMemory
from .base import CentralNetwork, Coefficients, Lost, Placed, total_array
from .wrapper import Wrapped

OVERSAMPLING = 20  # random columns beyond the rank


class Cut(NamedTuple):
    """How rows B become directions: V' = W^T B."""

    W: Array
    norm: float  # of B^T B - V'^T V', at most


class Rows(Protocol):
    """Rows B that can be multiplied with, wherever their columns are."""

    def sketch(self, width: int) -> Array:
        """B times random columns."""

    def power(self, Q: Array) -> Array:
        """B B^T Q."""

    def project(self, Q: Array) -> Array:
        """C C^T for C = Q^T B, and the squared norm of B below."""


class Gathered:
    """Rows that are all here."""

    def __init__(self, B: Array, rng: np.random.Generator):
        self.B, self.rng = B, rng

    def sketch(self, width: int) -> Array:
        """B B^T times random columns: the same however the columns of B are turned."""
        return self.power(self.rng.standard_normal((len(self.B), width)))

    def power(self, Q: Array) -> Array:
        return np.asarray(self.B @ (self.B.T @ Q))

    def project(self, Q: Array) -> Array:
        C = Q.T @ self.B
        norm = np.zeros((1, len(C)))
        norm[0, 0] = np.einsum("ij,ij->", self.B, self.B)
        return np.concatenate([C @ C.T, norm])


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
        context, solver = self._context, self._solver()
        assert context is not None and self.setup is not None
        rows = context.past_rows + context.n_samples
        self._cut = 0.0
        if rows <= solver.rank:
            self.inner.ask("stack")
        else:
            cut = self._cut_rows(rows, solver.rank)
            self._cut = cut.norm
            self._count(cut.W)
            self.inner.ask("merge", cut.W)
        self._least = np.min(self.inner.ask("least"), axis=0)
        coarse = np.split(self._sum("coarse"), len(context.each))
        self._coarse = [robust_cholesky(np.eye(len(M)) + M) for M in coarse]

    def _cut_rows(self, rows: int, rank: int) -> Cut:
        """Narrow blocks come here, rotated: that is less than what would be asked about them."""
        assert self.setup is not None
        counts = self.setup.partition.weight_counts()
        columns, width = sum(counts), rank + OVERSAMPLING
        few = rows <= 2 * rank
        if max(counts) <= (rows if few else width):
            parts = self.inner.ask("shown")
            self.overhead += sum(part.nbytes for part in parts)
            B = np.hstack(parts)
            if few:
                return exact_cut(B @ B.T, rank, columns)
            rng = np.random.default_rng([self._solver().seed, rows])
            return self._range_cut(rank, columns, Gathered(B, rng))
        if few:
            return exact_cut(self._sum("gram"), rank, columns)
        return self._range_cut(rank, columns, self)

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

    @staticmethod
    def _range_cut(rank: int, columns: int, rows: Rows) -> Cut:
        Q = orthonormal(rows.sketch(rank + OVERSAMPLING))
        Q = orthonormal(rows.power(Q))
        seen = rows.project(Q)
        beyond = max(seen[-1, 0] - np.trace(seen[:-1]), 0.0)
        cut = exact_cut(seen[:-1], rank, columns, beyond)
        return Cut(Q @ cut.W, cut.norm)

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


def exact_cut(G: Array, rank: int, n_columns: int, beyond: float = 0.0) -> Cut:
    """The best ``rank`` directions of rows whose inner products are G.

    Parameters
    ----------
    G : R x R for R rows (or for R directions that hold nearly all of them).
    rank : directions to keep.
    n_columns : of all rows; what is cut is shared out among so many directions less ``rank``.
    beyond : squared norm of what G does not show.
    """
    squares, U = linalg.eigh(G, check_finite=False)
    U = U * np.sign(U[np.argmax(np.abs(U), axis=0), np.arange(len(U))])  # the same on all networks
    first = max(len(squares) - rank, 0)
    kept, rest = np.maximum(squares[first:], 0.0), np.maximum(squares[:first], 0.0)
    level = (float(np.sum(rest)) + beyond) / max(n_columns - rank, 1)
    share = np.divide(level, kept, out=np.ones_like(kept), where=kept > level)  # off each square
    norm = (float(rest[-1]) if first else 0.0) + beyond
    return Cut(U[:, first:] * np.sqrt(1 - share), max(norm, min(level, float(np.max(kept)))))


def orthonormal(Y: Array) -> Array:
    """An orthonormal basis of the columns' span: Cholesky of Y^T Y twice, which is quick, or
    Householder's way where Y is too ill conditioned for it."""
    for _ in range(2):
        size = np.sqrt(np.einsum("ij,ij->j", Y, Y))
        Y = Y / np.maximum(size, np.finfo(float).tiny)
        factor = Cholesky.of(Y.T @ Y, worst=1e-10)
        if factor is None:
            return np.linalg.qr(Y)[0]
        Y = linalg.solve_triangular(factor.L, Y.T, lower=True, check_finite=False).T
    return np.asarray(Y)
