"""From sums to ridge, weights and variance: the ridge in force is decided here, and only here.

Everything is solved on correlations. With sd_j a column's standard deviation over all rows,
u = 1/sd (0 for a column that never varied), H = u S_XX u / n, b = u S_XY / (n sd_y),

    w = (H + r)^-1 b,     r = ridge / n,

and weights in the users' units are u w sd_y. The marginal likelihood of a ridge (restricted: the
mean is free; nu is the number of rows less one, p the columns that vary, M the targets that share
r), minus twice its logarithm:

    f(r) = M (log det(H + r) - p log r) + nu M log sum_j g_j (1 - b_j^T (H + r)^-1 b_j) + prior

The least f is the ridge. Every target has its own; classes share one. Without an intercept moments
are about zero: one more row, (sqrt(n) mean, sqrt(n) mean_y), which has its own place in the
formulas, so that means of 10^7 standard deviations cost no digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.linalg import blas, lapack

from ..common.arrays import Array, here, is_here, like, space
from ..common.linear import (
    cholesky,
    diagonal,
    estimated_condition,
    inverse_of_lower,
    reciprocal_condition,
    solve_upper,
    transposed,
    with_diagonal,
)
from ..errors import ParameterError
from .sums import Sums, some_of

WEAKEST, STRONGEST = -10, 2  # log10 of the ridge on correlations
STEPS = 4  # of the grid, a decade
PRIOR = 0.1  # weight of a prior on the signal's share, which makes the least unique
FLOOR = 1e-14  # of a target's variance: what the sums cannot see below
DEAD = 1e-13  # of its mean: a standard deviation that is rounding
FEW = 4.0  # rows less one, below which the ridge is at least 1
SURE = 100.0  # by which plain least squares must be the likelier
SINGULAR = 1e-10  # reciprocal condition, below which a ridge that is given leaves too few digits
AT_ONCE = 512  # columns of rows whose products are taken together
REDUCED = 2048  # columns up to which one tridiagonal form serves all ridges
START = -2.0  # log10 of the ridge that a search by factors begins with


@dataclass(frozen=True, eq=False)
class Solution:
    """What is learnt: weights in the users' own units, and the ridge that they were found with."""

    weights: Array  # p x m
    offset: Array  # m
    ridge: Array  # m: on correlations; nan where it was given; inf: only the mean is known
    penalty: Array  # p x m: what is added per squared weight, in the users' own units
    variance: Array  # m: of targets around the model; nan where it is not known
    final: bool = True  # whether the ridge was found by evidence of all rows


@dataclass(frozen=True)
class Wish:
    """What is asked of a solution."""

    intercept: bool = True
    ridge: float | None = None  # as users give it; None: by evidence
    unit: Array | None = None  # p: a column's unit, where a ridge is given; None: its deviation
    shared: bool = False  # one ridge for all targets
    common: bool = False  # columns share one unit: their own deviations mean nothing


def solve(sums: Sums, wish: Wish, begin: Array | None = None, keep: bool = False) -> Solution:
    """The ridge solution of these sums.

    Parameters
    ----------
    sums : of all rows.
    wish : which ridge, and whether there is an intercept.
    begin : the last ridge on correlations, where a search begins; with ``keep`` it stays in force.
    """
    case = _Case.of(sums, wish)
    if wish.ridge is not None:
        return _given(sums, case, wish)
    return _by_evidence(sums, case, wish, begin, keep)


@dataclass(frozen=True, eq=False)
class _Case:
    """Sums on correlations: which columns and targets vary, and their units."""

    n: float
    nu: float
    alive: Array  # numbers of the columns that vary
    u: Array  # of those: one over their deviation
    live: Array  # numbers of the targets that vary
    uy: Array  # of all targets: their deviation, or root mean square without an intercept
    share: Array  # of the targets' squares that is variance: one, but without an intercept
    mean: Array | None  # of those columns, in units: without an intercept
    mean_y: Array  # of all targets, likewise
    constant: Array  # of all columns: their mean, where they never varied

    @classmethod
    def of(cls, sums: Sums, wish: Wish) -> _Case:
        p, n, centre = sums.p, sums.n, sums.centre
        var, var_y = sums.diagonal / n, sums.YY / n
        alive = np.flatnonzero((var > (DEAD * np.abs(centre[:p])) ** 2) & (var > 0))
        u = 1 / np.sqrt(var[alive])
        if wish.common:
            u = np.full(len(alive), var[alive].mean() ** -0.5 if len(alive) else 1.0)
        constant = centre[:p].copy()
        constant[alive] = 0.0
        free = wish.intercept or (wish.ridge is None and bool(np.any(constant)))
        size = var_y if free else var_y + centre[p:] ** 2
        live = np.flatnonzero((var_y > (DEAD * centre[p:]) ** 2) & (var_y > 0))
        if not free:
            live = np.flatnonzero(size > 0)
        uy = np.sqrt(np.where(size > 0, size, 1.0))
        mean = None if free else centre[alive] * u
        nu = sums.count - free
        return cls(n, nu, alive, u, live, uy, var_y / uy**2, mean, centre[p:] / uy, constant)

    @property
    def p(self) -> int:
        """Columns that vary."""
        return len(self.alive)

    def correlations(self, sums: Sums) -> Array:
        """H, its lower triangle; may be written to."""
        assert sums.XX is not None
        H = some_of(sums.XX, self.alive)
        u = like(H[:1, :1], self.u)
        H = H * (u * (1 / self.n))
        if not is_here(H):
            return H * u[:, None]
        H *= u[:, None]
        return np.asfortranarray(H)

    def slopes(self, sums: Sums) -> Array:
        """b, of the targets that vary."""
        XY = np.asarray(here(sums.XY), dtype=float)[np.ix_(self.alive, self.live)]
        return np.asfortranarray(XY * self.u[:, None] / (self.n * self.uy[self.live]))


# Three ways to have H + r for every ridge r. ``at`` returns log det(H + r) and what the columns
# leave of every target, or None where digits are lost; ``weights`` those of some targets.


class Tridiagonal:
    """H = Q T Q^T, T tridiagonal: all ridges from one reduction (LAPACK's sytrd)."""

    def __init__(self, H: Array, b: Array, case: _Case):
        self.case, self.m, p = case, b.shape[1], len(H)
        right = b if case.mean is None else np.column_stack([b, case.mean])
        self.right, self.a = right, None
        self.d, self.e, self.t = np.array(H.diagonal()), np.zeros(0), np.asfortranarray(right)
        if p > 1:
            self.a, self.d, self.e, self.tau, _ = lapack.dsytrd(
                H, lower=1, lwork=64 * p, overwrite_a=1
            )
            self.t = self._turned(right, "T")

    def _turned(self, x: Array, how: str) -> Array:
        """Q^T x ("T") or Q x ("N")."""
        x = np.array(x, order="F")
        if self.a is not None:
            width = max(1, 64 * x.shape[1])
            x[1:] = lapack.dormqr(
                "L", how, self.a[1:, :-1], self.tau, np.asfortranarray(x[1:]), width
            )[0]
        return x

    def solved(self, r: float, t: Array) -> tuple[Array, Array] | None:
        """The pivots of T + r, and what it is to be multiplied with to give t."""
        if self.a is None:
            return self.d + r, t / (self.d + r)
        d, e, info = lapack.dpttrf(self.d + r, self.e.copy())
        return None if info else (d, lapack.dpttrs(d, e, t)[0])

    def at(self, r: float) -> tuple[float, Array] | None:
        found = self.solved(r, self.t)
        if found is None:
            return None
        d, x = found
        return _left(float(np.log(d).sum()), self.t, x, self.case, self.m)

    def weights(self, r: float, which: Array) -> Array:
        """(H + r)^-1 b; None of it depends on which other targets there are."""
        columns = which if self.case.mean is None else np.append(which, self.m)
        found = self.solved(r, np.asfortranarray(self.t[:, columns]))
        assert found is not None
        w = self._turned(found[1], "N")
        return _about_zero(w, self.right[:, columns], self.case, which)

    def rank(self) -> int:
        """Directions of H that are more than rounding."""
        values = self.d if self.a is None else linalg.eigvalsh_tridiagonal(self.d, self.e)
        return int(np.sum(values > 1e-12 * len(values)))


class Factor:
    """H + r = L L^T, wherever H is."""

    def __init__(self, L: Array):
        self.L = L

    @classmethod
    def of(cls, H: Array, r: float) -> Factor | None:
        """None where it is not positive definite."""
        L = cholesky(with_diagonal(H, r))
        return None if L is None else cls(L)

    def half(self, b: Array) -> Array:
        """L^-1 b."""
        if is_here(self.L):
            return lapack.dtrtrs(self.L, b, lower=1)[0]
        return here(solve_upper(transposed(self.L), like(self.L, b), turned=True))

    def back(self, b: Array) -> Array:
        """L^-T b."""
        if is_here(self.L):
            return lapack.dtrtrs(self.L, b, lower=1, trans=1)[0]
        return here(solve_upper(transposed(self.L), like(self.L, b)))

    def logdet(self) -> float:
        return 2 * float(np.log(here(diagonal(self.L))).sum())


class Factors:
    """A Cholesky factor for every ridge that is tried: on a GPU, or where reducing H is slower."""

    def __init__(self, H: Array, b: Array, case: _Case):
        self.H, self.case, self.m = H, case, b.shape[1]
        self.right = b if case.mean is None else np.column_stack([b, case.mean])
        self.count = 0  # of factors
        self.last: tuple[float, Factor, Array] | None = None

    def _factor(self, r: float) -> tuple[Factor, Array] | None:
        """The factor, and what half of it makes of the right-hand sides."""
        if self.last is None or self.last[0] != r:
            self.last, self.count = None, self.count + 1  # room for one factor, not for two
            factor = Factor.of(self.H, r)
            if factor is None:
                return None
            self.last = r, factor, factor.half(self.right)
        return self.last[1], self.last[2]

    def at(self, r: float) -> tuple[float, Array] | None:
        found = self._factor(r)
        if found is None:
            return None
        factor, half = found
        return _left(factor.logdet(), half, half, self.case, self.m)

    def weights(self, r: float, which: Array) -> Array:
        found = self._factor(r)
        assert found is not None
        columns = which if self.case.mean is None else np.append(which, self.m)
        w = found[0].back(np.asfortranarray(found[1][:, columns]))
        return _about_zero(w, self.right[:, columns], self.case, which)


class Dual:
    """Few rows, k: H = Z^T Z, Z = B u / sqrt(n), so all is told by K = Z Z^T, rows x rows.

    log det(H + r) = log det(K + r) + (p - k) log r,   1 - b^T (H + r)^-1 b = r y^T (K + r)^-1 y.
    """

    def __init__(self, sums: Sums, case: _Case):
        assert sums.B is not None
        n, B = case.n, sums.B
        self.B, self.case = B[:, : sums.p], case
        y = B[:, sums.p + case.live] / (case.uy[case.live] * n**0.5)
        if case.mean is not None:  # one more row
            mean = np.zeros(sums.p)
            mean[case.alive] = case.mean * n**0.5 / case.u
            self.B = np.vstack([self.B, mean])
            y = np.vstack([y, case.mean_y[case.live]])
        self.u = np.zeros(sums.p)
        self.u[case.alive] = case.u / n**0.5
        self.more = case.p - len(self.B)
        self.inner = Tridiagonal(self._products(), y, _plain(case))

    def _products(self) -> Array:
        """K, a few columns at a time, which stay near the processor."""
        K = np.zeros((len(self.B), len(self.B)), order="F")
        for first in range(0, self.B.shape[1], AT_ONCE):
            some = slice(first, first + AT_ONCE)
            part = self.B[:, some] * self.u[some]
            K = blas.dsyrk(1.0, part.T, beta=1.0, c=K, trans=1, lower=1, overwrite_c=1)
        return K

    def at(self, r: float) -> tuple[float, Array] | None:
        found = self.inner.solved(r, self.inner.t)
        if found is None:
            return None
        d, x = found
        left = r * np.einsum("ij,ij->j", self.inner.t, x)
        return float(np.log(d).sum()) + self.more * np.log(r), np.maximum(left, FLOOR)

    def weights(self, r: float, which: Array) -> Array:
        w = self.u[:, None] * (self.B.T @ self.inner.weights(r, which))
        return w[self.case.alive]


def _plain(case: _Case) -> _Case:
    """The same with nothing to be said of means."""
    return _Case(**{**vars(case), "mean": None})


def _left(logdet: float, t: Array, x: Array, case: _Case, m: int) -> tuple[float, Array]:
    """What columns leave of every target, as a share of its squares, from t and x with t.x the
    products of (H + r)^-1."""
    share = case.share[case.live]
    if case.mean is None:
        return logdet, np.maximum(share - np.einsum("ij,ij->j", t, x), FLOOR)
    left = share - np.einsum("ij,ij->j", t[:, :m], x[:, :m])
    z, along = 1.0 + float(t[:, m] @ x[:, m]), t[:, m] @ x[:, :m]
    off = case.mean_y[case.live] - along
    return logdet + np.log(z), np.maximum(left + off**2 / z, FLOOR)


def _about_zero(w: Array, right: Array, case: _Case, which: Array) -> Array:
    """Without an intercept: the same with the row of the means (Sherman and Morrison)."""
    if case.mean is None:
        return w
    A_b, A_z, z = w[:, :-1], w[:, -1], right[:, -1]
    off = case.mean_y[case.live[which]] - z @ A_b
    return A_b + np.outer(A_z, off / (1.0 + z @ A_z))


def correlations(sums: Sums) -> Array:
    """The eigenvalues of the correlations of all columns that vary."""
    case = _Case.of(sums, Wish())
    if sums.B is not None:
        Z = sums.B[:, case.alive] * (case.u / case.n**0.5)
        return np.linalg.eigvalsh(Z @ Z.T)
    H = here(case.correlations(sums))
    return np.linalg.eigvalsh(H, UPLO="L")


def _by_evidence(sums: Sums, case: _Case, wish: Wish, begin: Array | None, keep: bool) -> Solution:
    m = len(sums.YY)
    r, left, w = np.full(m, np.inf), case.share.copy(), np.zeros((case.p, m))
    if case.p and len(case.live) and case.nu > 0:
        solver = _solver(sums, case)
        kept: dict[float, tuple[float, Array] | None] = {}
        every = np.arange(len(case.live))
        for group in [every] if wish.shared else every[:, None]:
            own = case.live[group]
            start = (
                None if begin is None or not np.isfinite(begin[own[0]]) else float(begin[own[0]])
            )
            if keep and start is not None:
                chosen = start
            else:
                score = _Score(solver, case, group, kept)
                chosen = _chosen(score, start, isinstance(solver, Factors))
            r[own], w[:, own] = chosen, solver.weights(chosen, group)
            found = kept.get(chosen) or solver.at(chosen)
            if found is not None:
                left[own] = found[1][group]
    return _finished(sums, case, wish, w, r, left, keep)


def _solver(sums: Sums, case: _Case) -> Tridiagonal | Factors | Dual:
    """By what is soonest done."""
    if sums.B is not None:
        return Dual(sums, case)
    H, b = case.correlations(sums), case.slopes(sums)
    return Tridiagonal(H, b, case) if is_here(H) and case.p <= REDUCED else Factors(H, b, case)


@dataclass
class _Score:
    """f of these targets, minus twice the log evidence."""

    solver: Tridiagonal | Factors | Dual
    case: _Case
    group: Array  # of the targets that vary
    kept: dict[float, tuple[float, Array] | None]

    def __call__(self, r: float) -> float:
        if r not in self.kept:
            self.kept[r] = self.solver.at(r)
        found = self.kept[r]
        if found is None:
            return np.inf
        case, M = self.case, len(self.group)
        size = case.uy[case.live[self.group]] ** 2
        rest = float(found[1][self.group] @ size / size.sum())
        return M * (found[0] - case.p * np.log(r)) + case.nu * M * np.log(rest) + _prior(case, r)

    def least_squares(self, below: float) -> float:
        """The same of plain least squares with a prior of its own unit, of strength g, for the best
        g; infinite where it cannot be ``below``."""
        found = self.kept.get(10.0**WEAKEST)
        if found is None or len(self.group) > 1 or not isinstance(self.solver, Tridiagonal):
            return np.inf
        rest = float(found[1][self.group[0]])
        if self.case.nu * np.log(rest) > below:  # whatever the rank is
            return np.inf
        g = 10.0 ** np.arange(-16, 4.1, 0.25)
        q = self.solver.rank()
        return float(np.min(q * np.log((1 + g) / g) + self.case.nu * np.log((g + rest) / (1 + g))))


def _prior(case: _Case, r: float) -> float:
    share = case.p / (case.p + (case.nu + 1) * r)
    return float(-PRIOR * np.log(share * (1 - share))) if 0 < share < 1 else np.inf


def _chosen(score: _Score, begin: float | None, dear: bool) -> float:
    """The likeliest ridge."""
    least = 1.0 if score.case.nu < FEW else 0.0
    if dear:
        return max(_descent(score, START if begin is None else float(np.log10(begin))), least)
    grid = np.arange(STEPS * WEAKEST, STEPS * STRONGEST + 1) / STEPS
    values = np.array([score(10.0**x) for x in grid])
    i = int(np.argmin(values))  # the first of equals: the weaker ridge
    if score.least_squares(values[i] - SURE) < values[i] - SURE:
        return 10.0**WEAKEST
    neighbours = values[i - 1 : i + 2] if 0 < i < len(grid) - 1 else None
    return max(float(10.0 ** (grid[i] + _lowest(neighbours, 1 / STEPS))), least)


def _descent(score: _Score, begin: float) -> float:
    """Downhill by half decades, and then to the least of the same grid as above: few factors."""
    low, high = STEPS * WEAKEST, STEPS * STRONGEST  # in steps; half a decade is two

    def f(k: int) -> float:
        return score(10.0 ** (k / STEPS))

    k = int(np.clip(2 * round(begin * STEPS / 2), low + 2, high - 2))
    while f(k) > min(f(k - 2), f(k + 2)):
        way, stride = (-2 if f(k - 2) < f(k + 2) else 2), 1
        while low <= k + way * stride <= high and f(k + way * stride) < f(k):
            k, stride = k + way * stride, min(2 * stride, 4)
        if k in (low, high):
            return float(10.0 ** (k / STEPS))
    k = min((k - 1, k, k + 1), key=f)
    return float(10.0 ** (k / STEPS + _lowest(np.array([f(k - 1), f(k), f(k + 1)]), 1 / STEPS)))


def _lowest(values: Array | None, step: float) -> float:
    """Of a parabola through three points, from the middle one."""
    if values is None or not np.all(np.isfinite(values)):
        return 0.0
    bend = values[0] - 2 * values[1] + values[2]
    if bend <= 1e-9 * abs(values[1]):
        return 0.0
    return float(step * np.clip(0.5 * (values[0] - values[2]) / bend, -0.5, 0.5))


def _finished(
    sums: Sums, case: _Case, wish: Wish, w: Array, r: Array, left: Array, keep: bool
) -> Solution:
    """In the users' own units."""
    p, m, n = sums.p, len(r), sums.n
    weights = np.zeros((p, m))
    weights[case.alive] = case.u[:, None] * w * case.uy
    penalty = np.zeros((p, m))
    with np.errstate(invalid="ignore"):
        penalty[case.alive] = np.outer(n / case.u**2, r)
    penalty[:, np.isinf(r)] = np.inf
    variance = left * case.uy**2 * n / (n - 1) if n > 1 else np.full(m, np.nan)
    offset = _offset(sums, case, wish, weights)
    return Solution(weights, offset, r, penalty, variance, not keep)


def _offset(sums: Sums, case: _Case, wish: Wish, weights: Array) -> Array:
    """The intercept; without one, columns that never varied take its place where they are free."""
    p, centre = sums.p, sums.centre
    offset = np.asarray(centre[p:] - centre[:p] @ weights)
    if wish.intercept:
        return offset
    if case.mean is None:
        weights += np.outer(case.constant, offset / float(case.constant @ case.constant))
    return np.zeros(len(offset))


def _given(sums: Sums, case: _Case, wish: Wish) -> Solution:
    """For a ridge that the user gives: as it is, or not at all."""
    assert wish.ridge is not None
    p, m = sums.p, len(sums.YY)
    unit = wish.unit
    if unit is None:
        unit = np.ones(p)
        unit[case.alive] = 1 / case.u
    each = wish.ridge * unit**2
    which = case.alive
    if not wish.intercept:  # then a column that never varied is one like any other
        which = np.flatnonzero((sums.diagonal > 0) | (sums.centre[:p] != 0))
    weights, penalty = np.zeros((p, m)), np.zeros((p, m))
    if len(which):
        weights[which] = _penalised(sums, which, each[which], wish)
    penalty[which] = each[which][:, None]
    dead = np.setdiff1d(np.arange(m), case.live)
    penalty[:, dead], weights[:, dead] = np.inf, 0.0
    offset = sums.centre[p:] - sums.centre[:p] @ weights if wish.intercept else np.zeros(m)
    unknown = np.full(m, np.nan)
    return Solution(weights, offset, unknown, penalty, unknown)


def _penalised(sums: Sums, which: Array, each: Array, wish: Wish) -> Array:
    """(S + penalty)^-1 S_XY; without an intercept S + n mean mean^T in place of S."""
    if sums.B is not None:
        return _penalised_rows(sums, which, each, wish)
    mean, mean_y = sums.centre[which], sums.centre[sums.p :]
    squares = sums.diagonal[which]
    size = np.sqrt(squares + each)
    factor = None
    if np.all(size > 0):
        M = some_of(sums.XX, which)
        s = like(M[:1, :1], 1 / size)
        factor = _well_conditioned(M * s * s[:, None], 1.0 - squares / size**2)
    if factor is None:
        raise ParameterError(
            f"ridge={wish.ridge:g} is too weak for these columns, some of which are nearly sums of "
            f"others: their weights would be rounding; give a larger one, or leave it out"
        )
    right = np.asarray(here(sums.XY), dtype=float)[which]
    if not wish.intercept:
        right = np.column_stack([right, mean])
    x = factor.back(factor.half(np.asfortranarray(right / size[:, None]))) / size[:, None]
    if wish.intercept:
        return np.asarray(x)
    A_b, A_m = x[:, :-1], x[:, -1]
    return A_b + np.outer(A_m, sums.n * (mean_y - mean @ A_b) / (1 + sums.n * float(mean @ A_m)))


def _well_conditioned(M: Array, added: Array) -> Factor | None:
    """The factor of M with more on its diagonal; None where too few digits would be left."""
    M = with_diagonal(M, like(M, added))
    norm = float(space(M).max(space(M).sum(space(M).abs(M), axis=0)))
    L = cholesky(M)
    if L is None:
        return None
    if is_here(L):
        return Factor(L) if reciprocal_condition(L, norm) >= SINGULAR else None
    inverse = inverse_of_lower(L)
    return Factor(L) if estimated_condition(inverse, like(L, np.array(norm))) >= SINGULAR else None


def _penalised_rows(sums: Sums, which: Array, each: Array, wish: Wish) -> Array:
    """The same from few rows: P^-1 B^T (B P^-1 B^T + 1)^-1 y."""
    assert sums.B is not None
    B, y = sums.B[:, which], sums.B[:, sums.p :]
    if not wish.intercept:
        root = sums.n**0.5
        B = np.vstack([B, root * sums.centre[which]])
        y = np.vstack([y, root * sums.centre[sums.p :]])
    factor = None
    if np.all(each > 0):
        Z = B / np.sqrt(each)
        factor = _well_conditioned(Z @ Z.T, np.ones(len(Z)))
    if factor is None:
        raise ParameterError(
            f"ridge={wish.ridge:g} is too weak for fewer rows than columns: their weights would be "
            f"rounding; give a larger one, or leave it out"
        )
    return Z.T @ factor.back(factor.half(np.asfortranarray(y))) / np.sqrt(each)[:, None]
