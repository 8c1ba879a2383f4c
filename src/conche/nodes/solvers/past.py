"""Subproblems that carry the past: the task's rows, the sketch's rows, and a penalty.

The objective over the update d of all blocks is

    loss(A (w + d)) + 1/2 |sqrt(1 - theta) Abar d|^2 + 1/2 sum_k d_k^T (theta H_k + R_k) d_k:

past tasks enter as a quadratic around their own minimiser w (anchoring), so the sketch's rows have
the target zero and no old label is needed; R_k is the diagonal ridge that the stream started with.
``solve`` inverts the node's own diagonal block of the Hessian's bound,
A_k^T A_k / tau + (1 - theta) Abar_k^T Abar_k + theta H_k + R_k.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ...common.arrays import Array, Block, by_columns, column_dots, gram, scale_columns
from ...errors import DataError
from ..scalars import PenaltyScalars
from .base import Context, Solution, Subproblem
from .factor import Cholesky


def robust_cholesky(M: Array) -> Cholesky:
    """Cholesky of M; a semidefinite M gets the least jitter that makes it definite.

    The factor only preconditions, so the jitter changes the path and not the solution.
    """
    too_large = DataError("the features are too large: their squares overflow; scale them")
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


class Past(Subproblem):
    """What both shapes have in common: the penalty P = theta H_k + R_k."""

    ridge: Array  # the diagonal of R_k, as a column
    factor: Cholesky

    @abstractmethod
    def penalty(self, z: Array) -> Array:
        """P z, where x . P z is the inner product of the penalty."""

    @abstractmethod
    def residual(self, g: Array, d: Array) -> tuple[Array, Array]:
        """r = A^T g - P d in coordinates, and r.R^-1 r, which is no less than r.P^-1 r."""

    def task_gram(self) -> Array | None:
        """A_k^T A_k, where factorising has computed it anyway."""
        return None

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        r, slack = self.residual(g, d)
        z = self.factor.solve(r)
        Pz = self.penalty(z)
        zPz, qPz, dPz = (column_dots(x, Pz) for x in (z, q, d))
        return Solution(z, PenaltyScalars(zPz, qPz, dPz, slack))


class TallPast(Past):
    """Coordinates are the block's weights; the Hessian is p_k x p_k."""

    def __init__(
        self, block: Block, H: Array | None, sketch: Array | None, ridge: Array, context: Context
    ):
        self.block, self.H, self.sketch = by_columns(block), H, sketch
        self.ridge = ridge[:, None]
        self.n, self.size = block.shape
        self.theta = context.shrinkage
        self.keep = float(np.sqrt(1 - self.theta))
        self.gram = gram(self.block, wide=False)
        M = self.gram / context.smoothness
        if H is not None:
            M += self.theta * H
        if sketch is not None:
            M += (1.0 if H is None else 1 - self.theta) * gram(sketch, wide=False)
        M.flat[:: self.size + 1] += ridge
        self.factor = robust_cholesky(M)

    def task_gram(self) -> Array:
        return self.gram

    def residual(self, g: Array, d: Array) -> tuple[Array, Array]:
        r = self.block.T @ g[: self.n] - self.penalty(d)
        if self.sketch is not None:
            r += self.keep * (self.sketch.T @ g[self.n :])
        return r, np.sum(np.square(r, dtype=np.float64) / self.ridge, axis=0)

    def image(self, z: Array) -> Array:
        top = np.asarray(self.block @ z)
        if self.sketch is None:
            return top
        return np.concatenate([top, self.keep * (self.sketch @ z)])

    def penalty(self, z: Array) -> Array:
        Pz = self.ridge * z
        if self.H is not None:
            Pz += self.theta * (self.H @ z)
        elif self.sketch is not None:  # the block's own curvature, too, is in the sketch
            Pz += self.theta * (self.sketch.T @ (self.sketch @ z))
        return Pz

    def lift(self, d: Array) -> Array:
        return d


class WidePast(Past):
    """p_k beyond the rows C = [A / sqrt(tau); Abar]: dual coordinates, d = R^-1 C^T delta.

    With Gamma = C R^-1 C^T a round costs O((n + m)^2), whatever p_k is, and the inverse is that of
    Gamma + I, which no damping is too small for.
    """

    def __init__(self, block: Block, sketch: Array | None, ridge: Array, context: Context):
        self.block, self.sketch, self.ridge = block, sketch, ridge[:, None]
        self.n = block.shape[0]
        self.theta = context.shrinkage
        self.keep = float(np.sqrt(1 - self.theta))
        self.root = float(np.sqrt(context.smoothness))
        scaled = scale_columns(block, 1 / np.sqrt(ridge))
        gamma = gram(scaled, wide=True) / context.smoothness
        if sketch is not None:
            below = scale_columns(sketch, 1 / np.sqrt(ridge))
            cross = np.asarray(scaled @ below.T) / self.root
            gamma = np.block([[gamma, cross], [cross.T, gram(below, wide=True)]])
        self.gamma = gamma
        self.size = len(gamma)
        self.factor = robust_cholesky(gamma + np.eye(self.size, dtype=gamma.dtype))

    def residual(self, g: Array, d: Array) -> tuple[Array, Array]:
        rho = np.concatenate([self.root * g[: self.n], self.keep * g[self.n :]]) - d
        rho[self.n :] -= self.theta * (self.gamma[self.n :] @ d)
        return rho, column_dots(rho, self.gamma @ rho)

    def image(self, z: Array) -> Array:
        Cz = self.gamma @ z
        return np.concatenate([self.root * Cz[: self.n], self.keep * Cz[self.n :]])

    def penalty(self, z: Array) -> Array:
        Cz = self.gamma @ z
        return np.asarray(Cz + self.theta * (self.gamma[:, self.n :] @ Cz[self.n :]))

    def lift(self, d: Array) -> Array:
        w = np.asarray(self.block.T @ (d[: self.n] / self.root))
        if self.sketch is not None:
            w += self.sketch.T @ d[self.n :]
        return w / self.ridge
