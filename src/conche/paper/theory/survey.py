"""One pass over a stream: what planning needs to know of it, and no more memory than a model takes.

Of every task its sums are kept (O(p)); of all together one p x p matrix where a model would have
one as well, else a sample of rows. Nothing is standardised before the end, when the stream's means
and deviations are known: sums of products can be moved and scaled afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...common.arrays import Array, as_dense
from ...errors import DataError, ParameterError
from ...nodes.solvers.options import LOSSLESS_OTHERWISE
from ...tasks import Task

MOST_COLUMNS = LOSSLESS_OTHERWISE  # whose products are all kept, as a model would keep them
SAMPLED = 256  # rows of the first task that are kept of more columns than that; fewer later
LOOKED_AT = 1000  # rows of a task, for the products of different rows
ENOUGH = 10  # rows before deviations say something; and rows beyond the unknowns for least squares
LARGEST = 1e140  # of a target
FEW = 0.1  # columns to a row, up to which a sample's eigenvalues are taken as they are


class Fit(NamedTuple):
    """Least squares of one task: weights, residual variance, and samples beyond the unknowns."""

    weights: Array
    noise_var: float
    left: int


class Seen(NamedTuple):
    """The stream in standardised columns and centred targets."""

    n_samples: Array
    back: Array  # A_t^T y_t: tasks x columns
    squares: Array  # |y_t|^2
    fits: list[Fit | None]
    pooled_residual: float  # residual variance of least squares on all tasks; nan where N <= p
    correlation: float
    pairs: int  # of rows that it was estimated from, each counted twice
    spectrum: Array
    tails: float


class Survey:
    """`add` every task, in order; then ask for the `result`."""

    def __init__(self) -> None:
        self.origin: Array = np.zeros(0)
        self.level = 0.0
        self.n: list[int] = []
        self.x: list[Array] = []  # sums over rows, of columns less the origin
        self.y: list[float] = []
        self.xy: list[Array] = []
        self.yy: list[float] = []
        self.fits: list[Fit | None] = []  # in units as they come
        self.xx: Array = np.zeros(0)  # squares of columns
        self.products: Array | None = None  # of all pairs of columns
        self.rows: list[Array] = []
        self.pairs, self.counted = 0.0, 0  # squared products of different rows, standardised
        self.fourth, self.entries = 0.0, 0

    def add(self, task: Task) -> None:
        """Look at a task, and keep its sums."""
        t = len(self.n) + 1
        X, y = np.asarray(as_dense(task.X), dtype=float), np.asarray(task.y, dtype=float)
        if y.ndim != 1:
            raise DataError(f"task {t}: y must have one dimension to be planned for")
        if not (np.all(np.isfinite(X)) and np.all(np.isfinite(y))):
            raise DataError(f"task {t} has missing or infinite values")
        if not np.all(np.abs(y) < LARGEST):
            raise DataError(f"task {t}: the targets are too large: their squares overflow")
        if not self.n:
            self._begin(X, y)
        elif X.shape[1] != len(self.origin):
            sizes = sorted({len(self.origin), X.shape[1]})
            raise DataError(f"tasks have different numbers of columns: {sizes}")
        X, y = X - self.origin, y - self.level
        G = X.T @ X if self.products is not None else None
        self.n.append(len(X))
        self.x.append(X.sum(axis=0))
        self.y.append(float(y.sum()))
        self.xy.append(X.T @ y)
        self.yy.append(float(y @ y))
        self.xx = self.xx + (np.einsum("ij,ij->j", X, X) if G is None else np.diag(G))
        if self.products is not None:
            self.products += G
        else:
            some = np.linspace(0, len(X) - 1, max(SAMPLED // t, 1)).astype(int)
            self.rows.append(X[np.unique(some)])
        self.fits.append(None if G is None else least_squares(X, y, G))
        self._vary(X)

    def _begin(self, X: Array, y: Array) -> None:
        self.origin, self.level = X.mean(axis=0), float(y.mean())
        p = X.shape[1]
        self.xx = np.zeros(p)
        self.products = np.zeros((p, p)) if p <= MOST_COLUMNS else None

    def _vary(self, X: Array) -> None:
        """Products of different rows, and fourth moments, in the units so far."""
        N = sum(self.n)
        if (len(self.n) > 1 and N < ENOUGH) or len(X) < 2:
            return
        mean = np.sum(self.x, axis=0) / N
        var = self.xx / N - mean**2
        varies = var > 1e-20 * (mean + self.origin) ** 2
        Z = (X[:LOOKED_AT] - mean) / np.sqrt(np.where(varies, var, np.inf))
        P = Z @ Z.T
        squares = float(np.sum(P**2) - np.sum(np.diag(P) ** 2))
        if np.isfinite(squares):
            self.pairs += squares
            self.counted += len(Z) * (len(Z) - 1)
        self.fourth += float(np.sum(Z[:, varies] ** 4))
        self.entries += len(Z) * int(varies.sum())

    def result(self) -> Seen:
        """Everything in the units of the whole stream."""
        if not self.n:
            raise ParameterError("there are no tasks")
        n, N = np.array(self.n), sum(self.n)
        x, y = np.array(self.x), np.array(self.y)
        mean, level = x.sum(axis=0) / N, float(y.sum()) / N
        var = self.xx / N - mean**2
        varies = var > 1e-20 * (mean + self.origin) ** 2  # a constant column becomes zero
        if not np.any(varies):
            raise DataError("no column varies: there is nothing to plan from")
        if not np.all(np.isfinite(var)):
            raise DataError("the features are too large: their squares overflow; scale them")
        scale = np.sqrt(np.where(varies, var, np.inf))
        back = np.array(self.xy) - np.outer(y, mean) - level * x + np.outer(n, mean) * level
        squares = np.array(self.yy) - 2 * level * y + n * level**2
        size = np.where(varies, scale, 0.0)
        fits = [fit and fit._replace(weights=fit.weights * size) for fit in self.fits]
        correlation = self.pairs / self.counted / len(mean) if self.counted else float("nan")
        return Seen(
            n,
            back / scale,
            np.maximum(squares, 0.0),
            fits,
            self._pooled(mean, scale, back.sum(axis=0) / scale, float(squares.sum())),
            correlation,
            self.counted,
            self._spectrum(mean, scale),
            self.fourth / self.entries if self.entries else 3.0,
        )

    def _covariance(self, mean: Array, scale: Array) -> Array:
        assert self.products is not None
        N = sum(self.n)
        return (self.products - N * np.outer(mean, mean)) / scale / scale[:, None] / N

    def _pooled(self, mean: Array, scale: Array, b: Array, squares: float) -> float:
        """The residual variance of one least-squares fit to all tasks."""
        N, p = sum(self.n), len(mean)
        if self.products is None or p + ENOUGH > N:
            return float("nan")
        w = _solved(N * self._covariance(mean, scale), b)
        return max(squares - float(b @ w), 0.0) / (N - p)

    def _spectrum(self, mean: Array, scale: Array) -> Array:
        """Eigenvalues of the standardised columns' covariance, smallest first.

        A sample of few rows spreads them. Those above what independent columns would show are
        drawn back (the inverse of lambda -> lambda + gamma lambda / (lambda - 1), gamma columns to
        a row); the others share what is left.
        """
        p = len(mean)
        if self.products is not None:
            rows, found = sum(self.n), _eigenvalues(self._covariance(mean, scale))
        else:
            Z = (np.concatenate(self.rows) - mean) / scale
            rows, found = len(Z), _eigenvalues(Z @ Z.T / len(Z))
        gamma = p / max(rows, 1)
        if gamma <= FEW:
            return np.maximum(found, 0.0)
        above = found[found > (1 + gamma**0.5) ** 2]
        middle = above + 1 - gamma
        spikes = (middle + np.sqrt(np.maximum(middle**2 - 4 * above, 0.0))) / 2
        rest = p - len(spikes)
        left = max(float(np.sum(np.isfinite(scale))) - float(spikes.sum()), 0.0) / max(rest, 1)
        return np.asarray(np.concatenate([np.full(rest, left), spikes]))


def least_squares(X: Array, y: Array, G: Array) -> Fit | None:
    """One task's least squares with an intercept, where there are rows enough; G is X^T X."""
    n, p = X.shape
    left = n - 1 - p
    if left < ENOUGH:
        return None
    x, mean = X.mean(axis=0), float(y.mean())
    w = _solved(G - n * np.outer(x, x), X.T @ y - n * mean * x)
    off = y - mean - (X - x) @ w
    return Fit(w, float(off @ off) / left, left)


def _solved(C: Array, b: Array) -> Array:
    """C^-1 b, or the solution of least norm (in the columns' own units) where C has none."""
    size = np.sqrt(np.maximum(np.diag(C), 0.0))
    size = np.where(size > 0, size, 1.0)
    C, b = C / size / size[:, None], b / size
    try:
        factor = np.linalg.cholesky(C)
        if np.min(np.diag(factor)) > 1e-5:
            return np.asarray(np.linalg.solve(C, b) / size)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(C, b, rcond=None)[0] / size)


def _eigenvalues(M: Array) -> Array:
    return np.asarray(np.linalg.eigvalsh(M), dtype=float)
