"""Factors of positive definite matrices, that are solved with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...common.arrays import Array, epsilon, is_here, space
from ...common.linear import (
    cholesky,
    diagonal,
    estimated_condition,
    inverse_of_lower,
    one_norms,
    reciprocal_condition,
    solve_factored,
    solve_lower,
    transposed,
    with_diagonal,
)
from ...common.words import TOO_LARGE
from ...errors import DataError

if TYPE_CHECKING:
    from ..stack import Stack


class Cholesky:
    """G + ridge I = L L^T, or nothing where that would lose too many digits.

    On a device G may be a stack, and what is kept is L^-1.
    """

    def __init__(self, L: Array):
        self.L = L if is_here(L) else None
        self.inverse = None if is_here(L) else inverse_of_lower(L)
        self.size = int(L.shape[-1])

    @classmethod
    def of(cls, G: Array, ridge: float = 0.0, worst: float | None = None) -> Cholesky | None:
        """Factorise, unless the reciprocal condition number is below ``worst``."""
        return cls.within(with_diagonal(G, ridge), worst)

    @classmethod
    def within(cls, M: Array, worst: float | None = None) -> Cholesky | None:
        """The same of a symmetric M that may be written to; ``worst=0`` looks at no condition."""
        precise = space(M).finfo(M.dtype)
        norms, tiny = one_norms(M), precise.smallest_normal / precise.eps
        if not bool(space(M).all((norms > tiny) & (norms < np.inf))):  # over- or underflowed
            return None
        L = cholesky(M.T if is_here(M) and M.flags.c_contiguous else M)
        if L is None:
            return None
        limit = float(precise.eps) ** 0.375 if worst is None else worst
        factor = cls(L)
        return factor if limit <= 0 or factor.condition(norms) >= limit else None

    def condition(self, norms: Array) -> float:
        """The reciprocal condition number, of a stack the worst; estimated."""
        if self.inverse is None:
            return reciprocal_condition(self.L, norms)
        return estimated_condition(self.inverse, norms)

    @property
    def log_det(self) -> float:
        """Of L L^T."""
        sign, L = (-1, self.inverse) if self.L is None else (1, self.L)
        return 2 * sign * float(space(L).sum(space(L).log(diagonal(L))))

    def solve(self, b: Array) -> Array:
        if self.inverse is None:
            return solve_factored(self.L, b)
        return transposed(self.inverse) @ (self.inverse @ b)

    def half(self, b: Array) -> Array:
        """L^-1 b, whose squared length is b^T G^-1 b."""
        return solve_lower(self.L, b) if self.inverse is None else self.inverse @ b


class Apart:
    """A factor for every node of a stack, for rows of all of their columns."""

    def __init__(self, stack: Stack, factors: Cholesky):
        self.stack, self.factors = stack, factors

    def solve(self, b: Array) -> Array:
        return self.stack.join(self.factors.solve(self.stack.split(b)))

    def half(self, b: Array) -> Array:
        """Rows whose squares, over all of them, are b^T G^-1 b."""
        return self.stack.join(self.factors.half(self.stack.split(b)))


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

    @property
    def log_det(self) -> float:
        return self.inner.log_det + float(np.log(self.whole))

    def solve(self, right: Array) -> Array:
        t = self.inner.solve(right[:-1])
        zeta = (right[-1] - self.b @ t) / self.whole
        return np.concatenate([t + np.outer(self.solved, zeta), zeta[None]])


@dataclass(frozen=True)
class Diagonal:
    """A diagonal matrix that is solved with."""

    entries: Array | float

    def solve(self, b: Array) -> Array:
        return b / self.entries

    def half(self, b: Array) -> Array:
        return b / self.entries**0.5


def robust_cholesky(M: Array) -> Cholesky:
    """Cholesky of M; a semidefinite M gets the least jitter that makes it definite.

    The factor only preconditions, so the jitter changes the path and not the solution.
    """
    too_large = DataError(TOO_LARGE)
    if not bool(space(M).all(space(M).isfinite(one_norms(M)))):
        raise too_large
    limit = M.shape[-1] * epsilon(M)
    jitter = (limit * float(space(M).max(diagonal(M))) if M.shape[-1] else 0.0) or 1.0
    factor = Cholesky.of(M, worst=limit)
    while factor is None:
        if not np.isfinite(jitter):
            raise too_large
        factor = Cholesky.of(M, jitter, worst=0.0)
        jitter *= 10
    return factor
