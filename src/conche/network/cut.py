"""The best few directions of many rows: what a merge of principal memories keeps.

Rows B become ``rank`` directions V' that stand for them: V'^T V' is never more than B^T B.

* few rows, or few columns (at most twice the rank): by eigenvectors, exactly;
* many of both: those within the range of B times random columns, after one power step.

Every direction is shortened by half the mean of what is cut, over all directions that are left.
What strong directions alone would say of cross blocks, the many weak ones cancel: in probabilistic
principal components by all of that mean, in the sample itself by none of it (docs/method.md).

Eigenvectors are numpy's and not scipy's: each brings BLAS threads of its own, which wait for more
work for a while, and scipy's would have to share the cores with those of numpy's last product.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ..common.arrays import Array, column_dots, here, joined, like, positive, space, zeros
from ..nodes.solvers.cholesky import Cholesky
from ..nodes.solvers.rows import Sums

OVERSAMPLING = 20  # random columns beyond the rank
SHORTENING = 0.5  # of the mean of what is cut


class Cut(NamedTuple):
    """How rows B become directions: V' = W^T B."""

    W: Array
    squares: Array  # of the lengths of V', whose rows are orthogonal
    norm: float  # of B^T B - V'^T V', at most
    found: Array  # squares of all directions that were found, as long as they were
    beyond: float  # and of all others, together


class Directions(NamedTuple):
    """The directions themselves."""

    V: Array  # None where nobody has them all
    squares: Array
    norm: float
    found: Array
    beyond: float = 0.0


class Rows(Protocol):
    """Rows B that can be multiplied with, wherever their columns are."""

    def sketch(self, width: int) -> Array:
        """B B^T times random signs, one a row."""

    def power(self, Q: Array) -> Array:
        """B B^T Q."""

    def project(self, Q: Array) -> Array:
        """C C^T for C = Q^T B, and the squared norm of B below."""


class Gathered:
    """Rows that are all here. However their columns are turned, they get the same directions."""

    def __init__(self, B: Array, seed: int):
        self.B, self.seed = B, seed

    def directions(self, rank: int) -> Directions:
        """The best ``rank`` of them."""
        rows, columns = self.B.shape
        if columns <= min(rows, 2 * rank):
            return self._by_columns(rank)
        few = rows <= 2 * rank
        cut = exact_cut(self.gram(), rank, columns) if few else range_cut(self, rank, columns)
        return Directions(cut.W.T @ self.B, *cut[1:])

    def _by_columns(self, rank: int) -> Directions:
        xp = space(self.B)
        squares, U = xp.linalg.eigh(self.B.T @ self.B)
        share, norm = shortened(here(squares), rank, U.shape[0])
        rows = self.B.shape[0]
        some = like(self.B, np.random.default_rng([self.seed, rows]).standard_normal(rows)) @ self.B
        best = U[:, -rank:]
        left = positive(squares[-rank:]) * like(squares, 1 - share)
        V = (best * (left**0.5 * xp.sign(some @ best))).T
        return Directions(V, here(left), norm, here(squares))

    def sketch(self, width: int) -> Array:
        """Adding rows up is cheaper than a product."""
        return self.B @ Sums.drawn(self.seed, self.B.shape[0], width).of(self.B).T

    def gram(self) -> Array:
        """B B^T."""
        return self.B @ self.B.T

    def power(self, Q: Array) -> Array:
        return self.B @ (self.B.T @ Q)

    def project(self, Q: Array) -> Array:
        C = Q.T @ self.B
        norm = zeros(C, 1, C.shape[0])
        norm[0, 0] = space(C).sum(column_dots(self.B, self.B))
        return joined([C @ C.T, norm])


class Known:
    """Rows of which all inner products are known."""

    def __init__(self, products: Array, seed: int):
        self.products, self.seed = products, seed

    def sketch(self, width: int) -> Array:
        rng = np.random.default_rng([self.seed, len(self.products)])
        some = self.products @ rng.standard_normal((len(self.products), width))
        return self.power(orthonormal(some))  # another step costs next to nothing here

    def power(self, Q: Array) -> Array:
        return np.asarray(self.products @ Q)

    def project(self, Q: Array) -> Array:
        norm = np.zeros((1, Q.shape[1]))
        norm[0, 0] = np.trace(self.products)
        return np.concatenate([Q.T @ self.products @ Q, norm])


def range_cut(rows: Rows, rank: int, n_columns: int) -> Cut:
    """Nearly the best ``rank`` directions of many rows: randomised subspace iteration."""
    Q = orthonormal(rows.sketch(rank + OVERSAMPLING))
    Q = orthonormal(rows.power(Q))
    seen = rows.project(Q)
    known = seen[:-1, :]
    beyond = max(float(seen[-1, 0] - space(seen).linalg.trace(known)), 0.0)
    cut = exact_cut(known, rank, n_columns, beyond)
    return cut._replace(W=Q @ cut.W)


def exact_cut(G: Array, rank: int, n_columns: int, beyond: float = 0.0) -> Cut:
    """The best ``rank`` directions of rows whose inner products are G.

    Parameters
    ----------
    G : R x R for R rows (or for R directions that hold nearly all of them).
    rank : directions to keep.
    n_columns : of all rows; what is cut is shared out among so many directions less ``rank``.
    beyond : squared norm of what G does not show.
    """
    xp = space(G)
    squares, U = xp.linalg.eigh(G)
    high, low = xp.max(U, axis=0), xp.min(U, axis=0)
    U = U * xp.where(high >= -low, xp.ones_like(high), -xp.ones_like(high))  # the same everywhere
    share, norm = shortened(here(squares), rank, n_columns, beyond)
    left = np.maximum(here(squares)[-len(share) :], 0.0) * (1 - share)
    W = U[:, -len(share) :] * like(U, np.sqrt(1 - share))
    return Cut(W, left, norm, here(squares), beyond)


def shortened(
    squares: Array, rank: int, n_columns: int, beyond: float = 0.0
) -> tuple[Array, float]:
    """What comes off each of the best directions' squared lengths, as a share of it; and the norm
    of all that is lost."""
    first = max(len(squares) - rank, 0)
    kept, rest = np.maximum(squares[first:], 0.0), np.maximum(squares[:first], 0.0)
    level = SHORTENING * (float(np.sum(rest)) + beyond) / max(n_columns - rank, 1)
    share = np.divide(level, kept, out=np.ones_like(kept), where=kept > level)
    norm = (float(rest[-1]) if first else 0.0) + beyond
    return share, max(norm, min(level, float(np.max(kept))))


def volume(cut: Directions, rows: int, n_columns: int, strength: float) -> float:
    """log det (I + B B^T / s), as if all directions that were not found were alike."""
    found, others = np.maximum(cut.found, 0.0), max(min(rows, n_columns) - len(cut.found), 1)
    more = others * np.log1p(cut.beyond / others / strength)
    return float(np.sum(np.log1p(found / strength)) + more)


def orthonormal(Y: Array) -> Array:
    """An orthonormal basis of the columns' span: Cholesky of Y^T Y twice, which is quick, or
    Householder's way where Y is too ill conditioned for it."""
    for _ in range(2):
        size = column_dots(Y, Y) ** 0.5
        Y = Y / space(Y).where(size > 0, size, space(Y).ones_like(size))
        factor = Cholesky.of(Y.T @ Y, worst=1e-10)
        if factor is None:
            return space(Y).linalg.qr(Y)[0]
        Y = factor.half(Y.T).T
    return Y
