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
from scipy import linalg, sparse

from ..common.arrays import Array
from ..nodes.solvers.factor import Cholesky

OVERSAMPLING = 20  # random columns beyond the rank
SHORTENING = 0.5  # of the mean of what is cut


class Cut(NamedTuple):
    """How rows B become directions: V' = W^T B."""

    W: Array
    squares: Array  # of the lengths of V', whose rows are orthogonal
    norm: float  # of B^T B - V'^T V', at most


class Directions(NamedTuple):
    """The directions themselves."""

    V: Array
    squares: Array
    norm: float


class Rows(Protocol):
    """Rows B that can be multiplied with, wherever their columns are."""

    def sketch(self, width: int) -> Array:
        """B times random columns."""

    def power(self, Q: Array) -> Array:
        """B B^T Q."""

    def project(self, Q: Array) -> Array:
        """C C^T for C = Q^T B, and the squared norm of B below."""


class Gathered:
    """Rows that are all here. However their columns are turned, they get the same directions."""

    def __init__(self, B: Array, rng: np.random.Generator):
        self.B, self.rng = B, rng

    def directions(self, rank: int) -> Directions:
        """The best ``rank`` of them."""
        rows, columns = self.B.shape
        if columns <= min(rows, 2 * rank):
            return self._by_columns(rank)
        few = rows <= 2 * rank
        cut = exact_cut(self.B @ self.B.T, rank, columns) if few else range_cut(self, rank, columns)
        return Directions(cut.W.T @ self.B, cut.squares, cut.norm)

    def _by_columns(self, rank: int) -> Directions:
        squares, U = np.linalg.eigh(self.B.T @ self.B)
        share, norm = shortened(squares, rank, len(U))
        some = self.rng.standard_normal(len(self.B)) @ self.B
        best = U[:, -rank:]
        left = np.maximum(squares[-rank:], 0.0) * (1 - share)
        return Directions((best * (np.sqrt(left) * np.sign(some @ best))).T, left, norm)

    def sketch(self, width: int) -> Array:
        """B B^T times random signs, one a row: adding rows up is cheaper than a product."""
        rows = len(self.B)
        where = (self.rng.integers(width, size=rows), np.arange(rows))
        signs = sparse.csr_array((self.rng.choice([-1.0, 1.0], rows), where), (width, rows))
        return np.asarray(self.B @ (signs @ self.B).T)

    def power(self, Q: Array) -> Array:
        return np.asarray(self.B @ (self.B.T @ Q))

    def project(self, Q: Array) -> Array:
        C = Q.T @ self.B
        norm = np.zeros((1, len(C)))
        norm[0, 0] = np.einsum("ij,ij->", self.B, self.B)
        return np.concatenate([C @ C.T, norm])


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
    beyond = max(seen[-1, 0] - np.trace(seen[:-1]), 0.0)
    cut = exact_cut(seen[:-1], rank, n_columns, beyond)
    return Cut(Q @ cut.W, cut.squares, cut.norm)


def exact_cut(G: Array, rank: int, n_columns: int, beyond: float = 0.0) -> Cut:
    """The best ``rank`` directions of rows whose inner products are G.

    Parameters
    ----------
    G : R x R for R rows (or for R directions that hold nearly all of them).
    rank : directions to keep.
    n_columns : of all rows; what is cut is shared out among so many directions less ``rank``.
    beyond : squared norm of what G does not show.
    """
    squares, U = np.linalg.eigh(G)
    U = U * np.sign(U[np.argmax(np.abs(U), axis=0), np.arange(len(U))])  # the same on all networks
    share, norm = shortened(squares, rank, n_columns, beyond)
    left = np.maximum(squares[-len(share) :], 0.0) * (1 - share)
    return Cut(U[:, -len(share) :] * np.sqrt(1 - share), left, norm)


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
