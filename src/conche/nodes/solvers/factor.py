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
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsmr

from ...common.arrays import (
    Array,
    Block,
    by_columns,
    epsilon,
    gram,
    in_double,
    is_double,
    like,
    space,
    summed,
)
from ...common.linear import diagonal, svd, transposed, with_diagonal
from ..scalars import CutProjection, Projection, Scalars
from .base import Proposing, Solution
from .cholesky import Cholesky

if TYPE_CHECKING:
    from ..stack import Stack

SPARSE_GRAM_SIDE = 2000


def factorise(
    block: Block,
    ridge: float = 0.0,
    scale: float = 1.0,
    alone: bool = False,
    stack: Stack | None = None,
) -> Factored:
    """The cheapest factorisation of the block that is accurate.

    Parameters
    ----------
    block : n x p_k, dense or sparse.
    ridge, scale : as in z = scale (A^T A + ridge I)^+ A^T g.
    alone : one node has all the columns (and no ridge): what it proposes is then a projection,
        and its scalars say so.
    stack : the block holds several nodes' columns, each of which has a factor of its own.
    """
    if stack is not None:
        return _stacked(block, ridge, scale, alone, stack)
    n, p = block.shape
    is_sparse = sparse.issparse(block)
    if n >= p:
        block = by_columns(block)
    if not is_sparse or min(n, p) <= SPARSE_GRAM_SIDE:
        with np.errstate(over="ignore", invalid="ignore"):  # Cholesky.of refuses what overflowed
            G = gram(block, wide=p > n)
            # with a ridge, half of the digits are enough: a brake is no exact thing
            factor = Cholesky.of(G, ridge, worst=epsilon(G) ** 0.5 if ridge else None)
        if factor is not None:
            scalars = Projection() if alone else Scalars()
            if p > n:
                return Wide(block, G, factor, scale, scalars)
            return Tall(block, factor, scale, scalars)
    if is_sparse:
        return Iterative(block, ridge, scale, alone)
    if not is_double(block):  # single has too few digits for this block: double
        return factorise(in_double(block), ridge, scale, alone)
    return Spectral(block, ridge, scale, alone)


def _stacked(block: Array, ridge: float, scale: float, alone: bool, stack: Stack) -> Factored:
    """The same for several nodes at once; where one of them is ill conditioned, all are treated
    so."""
    wide = stack.width > block.shape[0]
    blocks = stack.columns(block)
    turned = transposed(blocks)
    G = blocks @ turned if wide else turned @ blocks
    filled = ridge if wide else like(G, ridge + stack.missing)
    factor = Cholesky.of(with_diagonal(G, filled))
    if factor is not None:
        scalars = Projection() if alone else Scalars()
        if wide:
            return Wide(block, G, factor, scale, scalars, stack)
        return Tall(block, factor, scale, scalars, stack)
    if not is_double(block):
        return _stacked(in_double(block), ridge, scale, alone, stack)
    return Spectral(blocks, ridge, scale, alone, stack)


class Factored(Proposing):
    """A block that is ready for any direction; its proposals depend on g alone."""


class Tall(Factored):
    """n >= p_k: normal equations, coordinates are the block's weights."""

    def __init__(
        self,
        block: Block,
        factor: Cholesky,
        scale: float,
        scalars: Scalars,
        stack: Stack | None = None,
    ):
        self.block, self.factor, self.scale, self.scalars = block, factor, scale, scalars
        self.stack, self.size = stack, factor.size
        self.stacked = () if stack is None else (stack.count,)

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        r = self.block.T @ g
        r = r if self.stack is None else self.stack.split(r)
        return Solution(self.scale * self.factor.solve(r), self.scalars)

    def image(self, z: Array) -> Array:
        return self.block @ self.lift(z)

    def lift(self, d: Array) -> Array:
        return d if self.stack is None else self.stack.join(d)


class Wide(Factored):
    """p_k > n: A^T (A A^T + ridge)^-1 g, coordinates are the samples. A round costs O(n^2)."""

    def __init__(
        self,
        block: Block,
        G: Array,
        factor: Cholesky,
        scale: float,
        scalars: Scalars,
        stack: Stack | None = None,
    ):
        self.block, self.G, self.factor, self.scale = block, G, factor, scale
        self.scalars, self.stack = scalars, stack
        self.size = block.shape[0]
        self.stacked = () if stack is None else (stack.count,)

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        if self.stack is not None:
            g = space(g).broadcast_to(g, (self.stack.count, *g.shape))
        return Solution(self.scale * self.factor.solve(g), self.scalars)

    def image(self, z: Array) -> Array:
        return self.G @ z if self.stack is None else summed(self.G @ z)

    def lift(self, d: Array) -> Array:
        if self.stack is None:
            return self.block.T @ d
        return self.stack.join(transposed(self.stack.columns(self.block)) @ d)

    def reach(self, d: Array) -> Array:
        """The samples' lengths times their coordinates', which may cancel in A^T d."""
        lengths = in_double(diagonal(self.G)) ** 0.5
        sizes = space(d).sum(lengths**2, axis=-1, keepdims=True) ** 0.5
        each = sizes * (lengths[..., None, :] @ in_double(space(d).abs(d)))[..., 0, :]
        return each if self.stack is None else summed(each)


class Spectral(Factored):
    """Rank-revealing: A = U S V^T with the small singular values cut; coordinates V^T w."""

    def __init__(
        self,
        block: Array,
        ridge: float,
        scale: float,
        alone: bool = False,
        stack: Stack | None = None,
    ):
        self.alone, self.stack = alone, stack
        self.U, s, self.Vt = svd(block)
        xp, self.s = space(s), s[..., None]
        largest = xp.max(s, axis=-1, keepdims=True) if s.shape[-1] else xp.zeros_like(s)
        cut = max(block.shape[-2:]) * epsilon(s) * largest[..., None]
        kept, zero = self.s > cut, xp.zeros_like(self.s)
        safe = xp.where(kept, self.s, xp.ones_like(self.s))
        # s / (s^2 + ridge), without squaring s
        self.filter = xp.where(kept, scale / (safe + ridge / safe), zero)
        self.rest = xp.where(~kept & (self.s > 0), xp.ones_like(self.s), zero)
        *nodes, self.size = s.shape
        self.stacked = tuple(nodes)

    @property
    def rank(self) -> int:
        """How many singular values count, of all nodes."""
        return int(space(self.filter).count_nonzero(self.filter))

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        """Alone, it also says how much of g was lost with what was cut: the bound stays valid."""
        seen = transposed(self.U) @ g
        scalars = Scalars()
        if self.alone:
            lost = space(g).sum((self.rest * seen) ** 2, axis=-2)
            scalars = CutProjection(lost if self.stack is None else summed(lost))
        return Solution(self.filter * seen, scalars)

    def image(self, z: Array) -> Array:
        each = self.U @ (self.s * z)
        return each if self.stack is None else summed(each)

    def lift(self, d: Array) -> Array:
        each = transposed(self.Vt) @ d
        return each if self.stack is None else self.stack.join(each)


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
        return self.block @ z

    def lift(self, d: Array) -> Array:
        return d
