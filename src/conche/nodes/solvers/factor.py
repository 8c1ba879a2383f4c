"""Factor once, apply many times:  z = tau (A^T A + ridge I)^+ A^T g  for every shape of A.

The ridge may be zero; then z = tau A^+ g is the minimum-norm solution of Algorithm 1, line 7.

Two paths, chosen by the numbers and not by the caller:

* *Cholesky* of the Gram matrix on the smaller side, taken where its reciprocal condition number
  (LAPACK's estimate) is at least eps**(3/8): 1.4e-6 in double precision, so that squaring the
  block's condition costs at most six of sixteen digits;
* *singular values* otherwise, in double precision; a block in single whose Gram matrix is too ill
  conditioned for single is tried in double first. Singular values below
  max(n, p_k) * eps * (the largest) count as zero: the rank cut-off of LAPACK-based pseudoinverses.

Sparse blocks never become dense: where the smaller side exceeds `SPARSE_GRAM_SIDE`, or the Gram
matrix is too ill conditioned, LSMR iterates to the same minimum-norm solution.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import lsmr

from ...common.arrays import Array, Block, by_columns, gram
from ...errors import DataError
from ..scalars import CutProjection, Projection, Scalars
from .base import Proposing, Solution

SPARSE_GRAM_SIDE = 2000
TOO_LARGE = "the features are too large: their squares overflow; scale them"


def factorise(
    block: Block, ridge: float = 0.0, scale: float = 1.0, alone: bool = False
) -> Factored:
    """The cheapest factorisation of the block that is accurate.

    Parameters
    ----------
    block : n x p_k, dense or sparse.
    ridge, scale : as in z = scale (A^T A + ridge I)^+ A^T g.
    alone : one node has all the columns (and no ridge): what it proposes is then a projection,
        and its scalars say so.
    """
    n, p = block.shape
    is_sparse = sparse.issparse(block)
    if n >= p:
        block = by_columns(block)
    if not is_sparse or min(n, p) <= SPARSE_GRAM_SIDE:
        with np.errstate(over="ignore", invalid="ignore"):  # Cholesky.of refuses what overflowed
            G = gram(block, wide=p > n)
            factor = Cholesky.of(G, ridge)
        if factor is not None:
            scalars = Projection() if alone else Scalars()
            if p > n:
                return Wide(block, G, factor, scale, scalars)
            return Tall(block, factor, scale, scalars)
    if is_sparse:
        return Iterative(block, ridge, scale, alone)
    if block.dtype != np.float64:  # single has too few digits for this block: double
        return factorise(block.astype(np.float64), ridge, scale, alone)
    return Spectral(block, ridge, scale, alone)


class Cholesky:
    """G + ridge I = L L^T, or nothing where that would lose too many digits."""

    def __init__(self, L: Array):
        self.L = L

    @classmethod
    def of(cls, G: Array, ridge: float = 0.0, worst: float | None = None) -> Cholesky | None:
        """Factorise, unless the reciprocal condition number is below ``worst``."""
        potrf, pocon, _ = _lapack(G.dtype.char)
        M = np.array(G, order="F")
        M.flat[:: len(M) + 1] += ridge
        one_norm = np.abs(M).sum(axis=0).max(initial=0.0)
        precise = np.finfo(G.dtype)
        if not precise.tiny / precise.eps < one_norm < np.inf:  # squares over- or underflowed
            return None
        L, info = potrf(M, lower=1, overwrite_a=1, clean=0)
        if info != 0:
            return None
        rcond, _ = pocon(L, one_norm, uplo="L")
        limit = precise.eps**0.375 if worst is None else worst
        return cls(L) if rcond >= limit else None

    @property
    def size(self) -> int:
        """Of what it solves for."""
        return len(self.L)

    def solve(self, b: Array) -> Array:
        _, _, potrs = _lapack(self.L.dtype.char)
        x, _ = potrs(self.L, b, lower=1)
        return np.asarray(x)

    def half(self, b: Array) -> Array:
        """L^-1 b, whose squared length is b^T G^-1 b."""
        return np.asarray(
            linalg.solve_triangular(self.L, b, lower=True, check_finite=False), order="F"
        )


class Bordered:
    """I + G + b b^T, with b so large that G would drown in the sum: solved as one more unknown.

    ``solve`` takes and answers vectors with one entry more than b: for right-hand sides (c, rho) of
    (I + G) t - b zeta = c and b.t + zeta = rho.
    """

    def __init__(self, G: Array, b: Array):
        self.inner, self.b = robust_cholesky(np.eye(len(G)) + G), b
        self.solved = self.inner.solve(b)
        self.whole = 1 + float(b @ self.solved)
        self.size = len(b) + 1

    def solve(self, right: Array) -> Array:
        t = self.inner.solve(right[:-1])
        zeta = (right[-1] - self.b @ t) / self.whole
        return np.concatenate([t + np.outer(self.solved, zeta), zeta[None]])

    def inverse_diagonal(self, some: Array) -> Array:
        """Some of the diagonal of (I + G + b b^T)^-1."""
        units = np.zeros((len(self.b), len(some)), order="F")
        units[some, np.arange(len(some))] = 1.0
        half = self.inner.half(units)
        return np.asarray(np.sum(half**2, axis=0) - self.solved[some] ** 2 / self.whole)


@dataclass(frozen=True)
class Diagonal:
    """A diagonal matrix that is solved with."""

    entries: Array

    def solve(self, b: Array) -> Array:
        return np.asarray(b / self.entries)

    def half(self, b: Array) -> Array:
        return np.asarray(b / np.sqrt(self.entries))


def robust_cholesky(M: Array) -> Cholesky:
    """Cholesky of M; a semidefinite M gets the least jitter that makes it definite.

    The factor only preconditions, so the jitter changes the path and not the solution.
    """
    too_large = DataError(TOO_LARGE)
    if not np.isfinite(np.abs(M).sum(axis=0).max(initial=0.0)):
        raise too_large
    limit = len(M) * float(np.finfo(M.dtype).eps)
    jitter = limit * float(np.max(np.diag(M), initial=0.0)) or 1.0
    factor = Cholesky.of(M, worst=limit)
    while factor is None:
        if not np.isfinite(jitter):
            raise too_large
        factor = Cholesky.of(M, jitter, worst=0.0)
        jitter *= 10
    return factor


class Factored(Proposing):
    """A block that is ready for any direction; its proposals depend on g alone."""


class Tall(Factored):
    """n >= p_k: normal equations, coordinates are the block's weights."""

    def __init__(self, block: Block, factor: Cholesky, scale: float, scalars: Scalars):
        self.block, self.factor, self.scale, self.scalars = block, factor, scale, scalars
        self.size = block.shape[1]

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        return Solution(self.scale * self.factor.solve(self.block.T @ g), self.scalars)

    def image(self, z: Array) -> Array:
        return np.asarray(self.block @ z)

    def lift(self, d: Array) -> Array:
        return d


class Wide(Factored):
    """p_k > n: A^T (A A^T + ridge)^-1 g, coordinates are the samples. A round costs O(n^2)."""

    def __init__(self, block: Block, G: Array, factor: Cholesky, scale: float, scalars: Scalars):
        self.block, self.G, self.factor, self.scale = block, G, factor, scale
        self.scalars = scalars
        self.size = block.shape[0]

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        return Solution(self.scale * self.factor.solve(g), self.scalars)

    def image(self, z: Array) -> Array:
        return np.asarray(self.G @ z)

    def lift(self, d: Array) -> Array:
        return np.asarray(self.block.T @ d)

    def reach(self, d: Array) -> Array:
        """The samples' lengths times their coordinates', which may cancel in A^T d."""
        lengths = np.sqrt(np.diag(self.G).astype(float))
        return np.asarray(np.linalg.norm(lengths) * (lengths @ np.abs(d)))


class Spectral(Factored):
    """Rank-revealing: A = U S V^T with the small singular values cut; coordinates V^T w."""

    def __init__(self, block: Array, ridge: float, scale: float, alone: bool = False):
        self.alone = alone
        U, s, Vt = _svd(block)
        cut = max(block.shape) * np.finfo(s.dtype).eps * s.max(initial=0.0)
        rank = int(np.sum(s > cut))
        self.U, self.s, self.Vt = U[:, :rank], s[:rank, None], Vt[:rank]
        self.rest = U[:, rank:][:, s[rank:] > 0]
        self.filter = scale / (self.s + ridge / self.s)  # s / (s^2 + ridge), without squaring s
        self.size = rank

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        """Alone, it also says how much of g was lost with what was cut: the bound stays valid."""
        lost = CutProjection(np.sum((self.rest.T @ g) ** 2, axis=0)) if self.alone else Scalars()
        return Solution(np.asarray(self.filter * (self.U.T @ g)), lost)

    def image(self, z: Array) -> Array:
        return np.asarray(self.U @ (self.s * z))

    def lift(self, d: Array) -> Array:
        return np.asarray(self.Vt.T @ d)


class Iterative(Factored):
    """Sparse blocks: LSMR to (nearly) machine precision; coordinates are the block's weights."""

    def __init__(self, block: Block, ridge: float, scale: float, alone: bool = False):
        self.block, self.ridge, self.scale, self.alone = block.tocsc(), ridge, scale, alone
        self.size = block.shape[1]

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        """Alone, it must count all of g as lost: LSMR may have stopped anywhere."""
        columns = [self._solve_one(g[:, j]) for j in range(g.shape[1])]
        lost = CutProjection(np.sum(g**2, axis=0)) if self.alone else Scalars()
        return Solution(self.scale * np.column_stack(columns).astype(g.dtype, copy=False), lost)

    def _solve_one(self, g: Array) -> Array:
        g = g.astype(np.float64)
        tol = 100 * np.finfo(np.float64).eps
        limit = 10 * min(self.block.shape) + 100
        damp = float(np.sqrt(self.ridge))
        z, stop, *_ = lsmr(self.block, g, damp=damp, atol=tol, btol=tol, conlim=0, maxiter=limit)
        if stop == 7:
            from sklearn.exceptions import ConvergenceWarning  # late: it takes long

            warnings.warn(
                f"a sparse block of {self.block.shape[1]} columns was not solved to full accuracy "
                f"in {limit} LSMR steps: it is ill conditioned; try solver='damped'",
                ConvergenceWarning,
                stacklevel=2,
            )
        return np.asarray(z)

    def image(self, z: Array) -> Array:
        return np.asarray(self.block @ z)

    def lift(self, d: Array) -> Array:
        return d


def _svd(block: Array) -> tuple[Array, Array, Array]:
    try:
        return linalg.svd(block, full_matrices=False, check_finite=False)
    except linalg.LinAlgError:  # the divide-and-conquer driver can fail where QR iteration does not
        return linalg.svd(block, full_matrices=False, check_finite=False, lapack_driver="gesvd")


@cache
def _lapack(char: str) -> Any:
    return linalg.get_lapack_funcs(("potrf", "pocon", "potrs"), dtype=np.dtype(char))
