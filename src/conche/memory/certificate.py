"""How far a solution is from the ridge solution of all rows: rounding, and nothing else."""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from ..common.arrays import Array, here, is_here, like
from .evidence import SINGULAR, Solution, Wish
from .sums import Sums, symmetric


def gap(sums: Sums, found: Solution, about_zero: bool, eps: float) -> tuple[float, float]:
    """The objective of all rows, and how far it is above its minimum at most; summed over targets.

    With A = S + penalty and r what the normal equations leave, the objective is r^T A^-1 r / 2
    above its minimum, and A is at least its penalty. To that comes what rounding hides: weights of
    precision ``eps`` move a prediction by eps times the sum of |x_j w_j|.
    """
    live = np.isfinite(found.penalty).all(axis=0)
    w, penalty = found.weights[:, live], found.penalty[:, live]
    XY = np.asarray(here(sums.XY), dtype=float)[:, live]
    mean, mean_y = sums.centre[: sums.p], sums.centre[sums.p :][live]
    squares, Sw = sums.diagonal, _times(sums, w)
    r = XY - Sw - penalty * w
    residual = sums.YY[live] - 2 * np.einsum("ij,ij->j", XY, w) + np.einsum("ij,ij->j", w, Sw)
    if about_zero:
        off = mean_y - mean @ w
        r += sums.n * np.outer(mean, off)
        residual = residual + sums.n * off**2
    residual = np.maximum(residual, 0.0)
    least = penalty  # of A, column by column; products are not solved where they are singular
    if sums.B is None:
        least = np.maximum(penalty, SINGULAR * squares[:, None])
    left = 0.5 * np.sum(np.divide(r**2, least, out=np.zeros_like(r), where=least > 0), axis=0)
    objective = 0.5 * (residual + np.einsum("ij,ij->j", w, penalty * w))
    size = sums.YY[live] + sums.n * mean_y**2
    lengths = np.sqrt(squares + sums.n * mean**2)
    reach = lengths @ np.abs(w) + sums.n**0.5 * np.abs(found.offset[live])
    moved = eps * (8 + sums.p**0.5) * (np.sqrt(size) + reach)
    hidden = moved * np.sqrt(residual) + 0.5 * moved**2 + eps * objective
    return float(objective.sum()), float(np.sum(left + hidden))


def _times(sums: Sums, w: Array) -> Array:
    """S w."""
    if sums.B is not None:
        X = sums.B[:, : sums.p]
        return X.T @ (X @ w)
    if is_here(sums.XX):
        return blas.dsymm(1.0, sums.XX, np.asfortranarray(w), lower=1)
    assert sums.XX is not None
    return np.asarray(here(sums.XX @ like(sums.XX, w)), dtype=float)


def noise(sums: Sums, found: Solution, wish: Wish) -> Array:
    """The variance of targets around the model. For a ridge that was given: what is left of their
    squares, over the rows less the degrees of freedom; nan where that is less than one."""
    if wish.ridge is None:
        return found.variance
    p, count = sums.p, sums.count - wish.intercept
    live = np.isfinite(found.penalty).all(axis=0)
    unknown = np.full(len(live), np.nan)
    each = found.penalty[:, live][:, :1]
    if not each.size or sums.n <= 0:
        return unknown
    S = symmetric(sums.as_products().XX)
    S = np.asarray(here(S), dtype=float)
    if not wish.intercept:
        S = S + sums.n * np.outer(sums.centre[:p], sums.centre[:p])
    size = np.sqrt(np.diagonal(S) + each[:, 0])
    alive = size > 0
    M = S[np.ix_(alive, alive)] / size[alive] / size[alive, None]
    A = M + np.diag(each[alive, 0] / size[alive] ** 2)
    free = float(np.trace(np.linalg.solve(A, M)))  # the degrees of freedom
    left = count - free
    w = found.weights[:, live]
    XY = np.asarray(here(sums.XY), dtype=float)[:, live]
    rest = (
        sums.YY[live] - 2 * np.einsum("ij,ij->j", XY, w) + np.einsum("ij,ij->j", w, _times(sums, w))
    )
    if not wish.intercept:
        rest = rest + sums.n * (sums.centre[p:][live] - sums.centre[:p] @ w) ** 2
    known = unknown.copy()
    if left >= 1:
        known[live] = np.maximum(rest, 0.0) / left
    return known
