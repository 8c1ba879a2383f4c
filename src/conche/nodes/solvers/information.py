"""All past tasks of one place as the matrix H = sum_t A_t^T A_t, or as a square root of it.

The Gram matrix is cheap to add to and to factorise, and squares the condition number. Where that
would cost too many digits, a root V with V^T V = H is kept instead, updated by orthogonal
transformations alone, which lose none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...common.arrays import Array, is_here, space
from ...common.linear import diagonal, triangle_of, with_diagonal
from ...common.words import TOO_LARGE
from ...errors import DataError
from ..layout import Layout
from ..scaling import Kept
from .cholesky import Cholesky

WELL_CONDITIONED = 3e-8  # reciprocal condition, after equilibration: eight digits are left


class Information(NamedTuple):
    """H as a Gram matrix, or as rows of a root of it."""

    matrix: Array
    is_root: bool = False

    @classmethod
    def known(cls, kept: Kept) -> Information | None:
        """What a node has kept; None before the first task."""
        if "root" in kept:
            return cls(kept["root"], True)
        return cls(kept["gram"]) if "gram" in kept else None

    def to_keep(self) -> dict[str, Array]:
        """By name."""
        return {"root" if self.is_root else "gram": self.matrix}

    def times(self, d: Array) -> Array:
        """H d."""
        M = self.matrix
        return M.T @ (M @ d) if self.is_root else M @ d

    def weighed(self, share: float) -> Information:
        """share H."""
        if share == 1.0:
            return self
        return self._replace(matrix=(share**0.5 if self.is_root else share) * self.matrix)

    def moved(self, T: Array) -> Information:
        """T^T H T: the same for coordinates u with d = T u."""
        if self.is_root:
            return Information(self.matrix @ T, True)
        H = T.T @ self.matrix @ T
        return Information(0.5 * (H + H.T))

    def stretched(self, t: Array) -> Information:
        """The same for T = diag(t), t a column."""
        M = self.matrix * t.T
        return self._replace(matrix=M if self.is_root else t * M)

    def laid_out(self, layout: Layout) -> Information:
        """The same of more columns, or fewer; nothing is known of new ones."""
        M = layout.along(self.matrix, 1) if self.is_root else layout.both(self.matrix)
        return self._replace(matrix=M)

    def as_root(self) -> Information:
        """Rows V with V^T V = H; of a Gram matrix, as far as it has them."""
        if self.is_root:
            return self
        xp = space(self.matrix)
        size = diagonal(self.matrix) ** 0.5
        size = xp.where(size > 0, size, xp.ones_like(size))
        squares, U = xp.linalg.eigh(self.matrix / size / size[:, None])
        squares = xp.where(squares > 0, squares, xp.zeros_like(squares))
        return Information((squares**0.5)[:, None] * U.T * size, True)


def triangle(rows: Array) -> Array:
    """R of the rows' QR factorisation: R^T R = rows^T rows."""
    if not np.isfinite(float(space(rows).sum(space(rows).abs(rows)))):
        raise DataError(TOO_LARGE)
    return triangle_of(rows)


class Equilibrated(NamedTuple):
    """M = diag(size) (L L^T) diag(size), where L L^T has a diagonal of ones."""

    size: Array
    inner: Cholesky

    @classmethod
    def of(cls, M: Array, ridge: float) -> Equilibrated | None:
        """Of M + ridge I; None where its condition would cost too many digits."""
        size = (diagonal(M) + ridge) ** 0.5
        if not np.isfinite(float(space(M).sum(size))):  # no entry is larger than the diagonal
            raise DataError(TOO_LARGE)
        scaled = M / size
        scaled /= size[:, None]
        if is_here(M):
            scaled.flat[:: len(M) + 1] = 1.0
        else:
            scaled = with_diagonal(scaled, 1.0 - diagonal(scaled))
        # what is estimated is that of the 1-norm, about root p times as bad as lengths have it
        inner = Cholesky.within(scaled, WELL_CONDITIONED / M.shape[0] ** 0.5)
        return None if inner is None else cls(size[:, None], inner)

    def solve(self, b: Array) -> Array:
        return self.inner.solve(b / self.size) / self.size
