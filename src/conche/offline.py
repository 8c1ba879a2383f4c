"""The benchmark: all tasks at once on one machine (the paper's Section II-E)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, lsmr

from .common.arrays import Array, as_dense, column_squares, scale_columns, scale_rows
from .common.checks import flag
from .errors import DataError, ParameterError
from .nodes.solvers.cholesky import Cholesky
from .tasks import Task

LARGEST_GRAM = 20_000
MADE_DENSE = 2000  # sparse columns of which a dense triangle is still cheap
FAINT = 1e-8  # of a column's square: less beside its mean is left to the triangle
SETTLED = 1e-10  # a step of refinement, as a share of the solution
EPS = float(np.finfo(float).eps)


def offline_solution(
    tasks: Sequence[Task], ridge: float | Array = 0.0, fit_intercept: bool = False
) -> Array:
    """Least squares of minimum norm on all tasks, or the ridge solution where ``ridge`` > 0.

    argmin_w sum_i v_i (y_i - x_i w - b)^2 + sum_j ridge_j w_j^2, where v are the sample weights of
    the tasks and b is 0 unless an intercept is asked for. Among several minimisers it is the one
    with the least |w|, in the units of the columns as they are given.

    A column counts as a sum of other columns (and of the constant, with an intercept) where less
    than 10 max(n, p) eps of its length differs from that sum. Every column is measured by its own
    length, so its unit does not matter; with a ridge, its root is part of the length.

    The tasks are visited one at a time: a Gram matrix on the smaller side, refined by residuals,
    where it is well conditioned; otherwise a triangular factor with pivoting. More than 20,000 rows
    and columns, and more than 2,000 sparse columns whose Gram matrix is singular, are left to LSMR:
    it tends to the same solution, and knows no rank.

    Parameters
    ----------
    tasks : all of them; a list, or whatever can be gone through more than once.
    ridge : a number, one per column, or an array shaped like ``coef_`` (outputs x columns), such as
        ``model.ridge_``: every output has its own. 0: least squares. Infinite: a weight of zero.
    fit_intercept : whether b is free. No ridge shrinks it, and it is not part of the norm.

    Returns
    -------
    The coefficients, shaped like ``coef_``, without the intercept.

    Examples
    --------
    >>> import conche
    >>> tasks = conche.gaussian_tasks(n_tasks=4, n_samples=50, n_features=8, n_shared=8, seed=0)
    >>> found = conche.offline_solution(tasks)
    >>> bool(abs(found - tasks[0].weights).max() < 0.05)  # one truth for all tasks
    True
    """
    if len(tasks) == 0:
        raise ParameterError("there are no tasks")
    widths = {task.n_features for task in tasks}
    if len(widths) > 1:
        raise DataError(f"tasks have different numbers of columns: {sorted(widths)}")
    kinds = {task.y.shape[1:] for task in tasks}
    if len(kinds) > 1:
        raise DataError("tasks have different numbers of outputs")
    p, kind = widths.pop(), kinds.pop()
    penalties = _penalties(ridge, p, kind)
    everything = _Everything(tasks, flag("fit_intercept", fit_intercept))
    weights = np.zeros((p, len(penalties)))
    each, output = np.unique(penalties, axis=0, return_inverse=True)
    for number, own in enumerate(each):
        outputs = np.flatnonzero(output.ravel() == number)
        weights[:, outputs] = _solve(everything, own, outputs)
    return weights[:, 0] if kind == () else weights.T


def _penalties(ridge: Any, p: int, kind: tuple[int, ...]) -> Array:
    """outputs x columns."""
    shapes = dict.fromkeys([(), (p,), (*kind, p)])
    try:
        values = np.asarray(ridge, dtype=np.float64)
    except (TypeError, ValueError):
        values = None
    if ridge is None or values is None or isinstance(ridge, bool) or values.shape not in shapes:
        what = repr(ridge) if values is None or values.ndim == 0 else f"shape {values.shape}"
        known = " or ".join(str(shape) for shape in list(shapes)[1:])
        raise ParameterError(f"ridge={what} must be a number, or numbers of shape {known}")
    if not np.all(values >= 0):
        bad = values[~(values >= 0)].flat[0]
        raise ParameterError(f"ridge={bad:g} must be at least 0, or infinite for a weight of zero")
    return np.broadcast_to(values, (kind[0] if kind else 1, p))


def _checked(task: Task, number: int) -> None:
    X = task.X.data if sparse.issparse(task.X) else np.asarray(task.X)
    for values in (X, task.y):
        if not (np.isfinite(np.sum(values)) or np.all(np.isfinite(values))):
            raise DataError(f"task {task.name or number} has missing or infinite values")
    if task.sample_weight is None:
        return
    v = np.asarray(task.sample_weight, dtype=np.float64)
    if v.shape != (task.n_samples,) or not np.all((v >= 0) & (v < np.inf)):
        raise DataError(f"task {task.name or number}: sample_weight must be one number >= 0 a row")


class _Rows(NamedTuple):
    """Rows of a task as they are solved: times the roots of their weights, less the means."""

    A: Any
    y: Array
    root: Array
    means: Array | None  # what is still to be taken from A, which is sparse

    def times(self, w: Array) -> Array:
        product = self.A @ w
        return product if self.means is None else product - np.outer(self.root, self.means @ w)

    def back(self, u: Array) -> Array:
        product = self.A.T @ u
        return product if self.means is None else product - np.outer(self.means, self.root @ u)

    def gram(self) -> Array:
        product = as_dense(self.A.T @ self.A)
        if self.means is not None:
            product -= np.outer(self.means, self.means) * (self.root @ self.root)
        return product

    def against(self, other: _Rows, squares: Array) -> Array:
        """A diag(squares) B^T."""
        scaled = scale_columns(self.A, squares)
        product = as_dense(scaled @ other.A.T)
        if self.means is None:
            return product
        m = squares * self.means
        product -= np.outer(self.A @ m, other.root) + np.outer(self.root, other.A @ m)
        return product + (m @ self.means) * np.outer(self.root, other.root)

    def pieces(self, step: int) -> Iterator[Array]:
        """Dense, beside y, no more than so many rows at once."""
        A = self.A.tocsr() if sparse.issparse(self.A) else self.A
        for i in range(0, len(self.y), step):
            dense, some = as_dense(A[i : i + step]), slice(i, i + step)
            if self.means is not None:
                dense = dense - np.outer(self.root[some], self.means)
            yield np.hstack([dense, self.y[some]])


class _Everything:
    """All tasks as they are solved: columns that vary, over their largest entries (a power of two,
    so that nothing is rounded and no square overflows), and targets likewise."""

    def __init__(self, tasks: Sequence[Task], fit_intercept: bool):
        self.data, self.fit_intercept = [], fit_intercept
        for number, task in enumerate(tasks, start=1):
            _checked(task, number)
            v = np.ones(task.n_samples) if task.sample_weight is None else task.sample_weight
            root = np.sqrt(np.asarray(v, dtype=np.float64))
            X = task.X if sparse.issparse(task.X) else np.asarray(task.X)
            y = np.asarray(task.y, dtype=np.float64).reshape(task.n_samples, -1)
            some = root > 0
            if some.any():
                X, y, root = (X, y, root) if some.all() else (X[some], y[some], root[some])
                self.data.append((X, y, root))
        if not self.data:
            raise DataError("the tasks have no rows of a weight above 0")
        self.sparse = any(sparse.issparse(X) for X, _, _ in self.data)
        self.n = sum(len(root) for _, _, root in self.data)
        self.cutoff = 10 * max(self.n, tasks[0].n_features) * EPS
        low, high = self._range()
        varies = (low < high) if fit_intercept else np.maximum(-low, high) > 0
        self.columns = np.flatnonzero(varies)
        self.unit = _power_of_two(np.maximum(-low, high)[self.columns])
        self.y_unit = _power_of_two(np.max([abs(y).max(axis=0) for _, y, _ in self.data], axis=0))
        self.squares, self.means, self.y_means = self._moments()

    def _range(self) -> tuple[Array, Array]:
        lows, highs = [], []
        for X, _, _ in self.data:
            X = _double(X)
            lows.append(as_dense(X.min(axis=0)).ravel())
            highs.append(as_dense(X.max(axis=0)).ravel())
        return np.min(lows, axis=0), np.max(highs, axis=0)

    def _scaled(self) -> Iterator[tuple[Any, Array, Array]]:
        for X, y, root in self.data:
            A = sparse.csr_array(X) if self.sparse else X
            A = _double(A if len(self.columns) == A.shape[1] else A[:, self.columns])
            A = scale_rows(scale_columns(A, 1 / self.unit), root)
            yield A, root[:, None] * (y / self.y_unit), root

    def _moments(self) -> tuple[Array, Array, Array]:
        """Every column's square with its mean, and the means, if any is taken away."""
        squares, sums, y_sums, total = np.zeros(len(self.columns)), 0.0, 0.0, 0.0
        for A, y, root in self._scaled():
            squares += column_squares(A)
            sums, y_sums, total = sums + A.T @ root, y_sums + y.T @ root, total + root @ root
        share = 1 / total if self.fit_intercept else 0.0
        return squares, sums * share, y_sums * share

    def rows(self) -> Iterator[_Rows]:
        """One task after the other."""
        for A, y, root in self._scaled():
            if not self.fit_intercept:
                yield _Rows(A, y, root, None)
                continue
            y = y - np.outer(root, self.y_means)
            if self.sparse:
                yield _Rows(A, y, root, self.means)
            else:
                yield _Rows(A - np.outer(root, self.means), y, root, None)

    def times(self, w: Array) -> Array:
        return np.concatenate([rows.times(w) for rows in self.rows()])

    def back(self, u: Array) -> Array:
        edges = np.cumsum([len(root) for _, _, root in self.data])[:-1]
        parts = zip(self.rows(), np.split(u, edges), strict=True)
        return np.asarray(sum(rows.back(part) for rows, part in parts))

    @cached_property
    def y(self) -> Array:
        return np.concatenate([rows.y for rows in self.rows()])

    @cached_property
    def root(self) -> Array:
        return np.concatenate([root for _, _, root in self.data])

    @cached_property
    def gram(self) -> Array:
        return np.asarray(sum(rows.gram() for rows in self.rows()))

    def kernel(self, squares: Array) -> Array:
        """A diag(squares) A^T, by pairs of tasks."""
        edges = np.cumsum([0, *(len(root) for _, _, root in self.data)])
        K = np.empty((self.n, self.n))
        for i, one in enumerate(self.rows()):
            for j, other in zip(range(i + 1), self.rows(), strict=False):
                product = one.against(other, squares)
                K[edges[i] : edges[i + 1], edges[j] : edges[j + 1]] = product
                K[edges[j] : edges[j + 1], edges[i] : edges[i + 1]] = product.T
        return K

    @cached_property
    def triangle(self) -> Array:
        """R and Q^T y, side by side: QR of [R; A_t], once there are as many new rows as columns. Of
        fewer rows than columns, the rows themselves."""
        k = len(self.columns)
        kept: list[Array] = []
        for rows in self.rows():
            for piece in rows.pieces(max(k, 1000)):
                kept.append(piece)
                if sum(map(len, kept)) >= 2 * k:
                    kept = [_reduced(np.vstack(kept), k)]
        return _reduced(np.vstack(kept), k)


def _double(X: Any) -> Any:
    """In double precision, one task at a time; no copy where it already is."""
    return X.astype(np.float64, copy=False)


def _power_of_two(largest: Array) -> Array:
    """The one below; 1 for zero."""
    return np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)


def _reduced(stacked: Array, k: int) -> Array:
    if len(stacked) <= k:
        return stacked
    return linalg.qr(stacked, mode="r", check_finite=False, overwrite_a=True)[0][:k]


def _solve(everything: _Everything, ridge: Array, outputs: Array) -> Array:
    """The outputs that share a ridge: all columns x outputs, in the users' units."""
    weights = np.zeros((len(ridge), len(outputs)))
    with np.errstate(over="ignore"):
        r = (np.sqrt(ridge[everything.columns]) / everything.unit) ** 2
    some = np.flatnonzero(r < np.inf)
    if len(some) == 0:
        return weights
    found = None
    if min(everything.n, len(some)) <= LARGEST_GRAM:
        quick = _by_gram if len(some) <= everything.n else _by_kernel
        found = quick(everything, r, some, outputs)
    small = min(everything.n, len(some)) <= LARGEST_GRAM
    if found is None and small and (not everything.sparse or len(some) <= MADE_DENSE):
        found = _by_triangle(everything, r[some], some, outputs)
    if found is None:
        found = _by_iteration(everything, r, some, outputs)
    weights[everything.columns[some]] = found / everything.unit[some, None]
    return weights * everything.y_unit[outputs]


def _by_gram(everything: _Everything, r: Array, some: Array, outputs: Array) -> Array | None:
    """(A^T A + diag(r)) w = A^T y."""
    every = len(some) == len(r)
    G = everything.gram.copy() if every else everything.gram[np.ix_(some, some)]
    G[np.diag_indices_from(G)] += r[some]
    if not np.all(G.diagonal() > FAINT * (everything.squares + r)[some]):
        return None
    w = np.zeros((len(r), len(outputs)))
    y = everything.y[:, outputs]

    def gap(x: Array) -> Array:
        w[some] = x
        back = everything.back(y - everything.times(w))
        return back[some] - r[some, None] * x

    return _refined(G, gap, np.zeros((len(some), len(outputs))), np.linalg.norm(y, axis=0))


def _by_kernel(everything: _Everything, r: Array, some: Array, outputs: Array) -> Array | None:
    """w = D A^T u with (A D A^T + shift I) u = y: D is 1 / r, or without a ridge every column's
    unit squared."""
    scale = _scale(everything, r, some)
    if scale is None:
        return None
    shift, squares = float(r[some[0]] > 0), scale**2
    K = everything.kernel(squares)
    K[np.diag_indices_from(K)] += shift
    if everything.fit_intercept:  # of which every column's sum is zero: K alone is singular
        root = everything.root
        K += np.outer(root, root) * (np.trace(K) / everything.n / (root @ root))
    y = everything.y[:, outputs]

    def gap(u: Array) -> Array:
        return y - everything.times(squares[:, None] * everything.back(u)) - shift * u

    u = _refined(K, gap, np.zeros_like(y), np.zeros(len(outputs)))
    return None if u is None else (squares[:, None] * everything.back(u))[some]


def _scale(everything: _Everything, r: Array, some: Array) -> Array | None:
    """Of the columns, so that what is asked for is the shortest vector or its plain ridge; None
    where some columns have a ridge and some have none."""
    scale = np.zeros(len(r))
    if np.all(r[some] == 0):
        scale[some] = everything.unit[some] / everything.unit[some].max()
    elif np.all(r[some] > 0):
        scale[some] = 1 / np.sqrt(r[some])
    else:
        return None
    return scale


def _refined(M: Array, gap: Callable[[Array], Array], x: Array, floor: Array) -> Array | None:
    """M x = b by Cholesky, where ``gap(x)`` is b - M x from the rows themselves. None where M loses
    too many digits for that."""
    d = np.sqrt(M.diagonal())
    with np.errstate(divide="ignore", invalid="ignore"):
        M /= d
        M /= d[:, None]
    factor = Cholesky.within(M)
    if factor is None:
        return None
    for _ in range(5):
        step = factor.solve(gap(x) / d[:, None]) / d[:, None]
        x = x + step
        sizes = [np.linalg.norm(d[:, None] * v, axis=0) for v in (step, x)]
        if np.all(sizes[0] <= SETTLED * sizes[1] + EPS * floor):
            return x
    return None


def _by_triangle(everything: _Everything, r: Array, some: Array, outputs: Array) -> Array:
    """A triangle with pivoting: columns that are sums of others come last."""
    k = len(everything.columns)
    R, c = everything.triangle[:, some], everything.triangle[:, k + outputs]
    if len(R) < len(some) and np.all(r > 0):
        return _wide_ridge(R / np.sqrt(r), c) / np.sqrt(r)[:, None]
    length = np.sqrt(everything.squares[some] + r)
    ridge = np.diag(np.sqrt(r) / length)[r > 0]
    stacked = np.vstack([R / length, ridge])
    c = np.vstack([c, np.zeros((len(ridge), len(outputs)))])
    Q, U, order = linalg.qr(stacked, mode="economic", pivoting=True, check_finite=False)
    rank = int(np.sum(abs(U.diagonal()) > everything.cutoff))
    x = np.zeros((len(some), len(outputs)))
    if rank == 0:
        return x
    solved = linalg.solve_triangular(
        U[:rank, :rank], np.hstack([Q[:, :rank].T @ c, U[:rank, rank:]])
    )
    own, rest = solved[:, : len(outputs)], solved[:, len(outputs) :]
    g = length * everything.unit[some]
    g = (g / g.max())[order, None]
    x[order] = g * _shortest(rest * g[rank:].T / g[:rank], own / g[:rank])
    return x / length[:, None]


def _shortest(M: Array, b: Array) -> Array:
    """The shortest w with [I M] w = b. Rows by size: entries may be of any order."""
    if M.shape[1] == 0:
        return b
    N = np.vstack([np.eye(len(M)), M.T])
    by_size = np.argsort(-abs(N).max(axis=1), kind="stable")
    R, order = linalg.qr(N[by_size], mode="r", pivoting=True, check_finite=False)
    R, w = R[: len(M)], np.zeros((len(N), b.shape[1]))
    for _ in range(3):  # w = N z keeps it short, residuals keep it exact
        z = np.empty_like(b)
        z[order] = linalg.solve_triangular(
            R, linalg.solve_triangular(R, (b - N.T @ w)[order], trans="T")
        )
        w += N @ z
    return w


def _wide_ridge(Z: Array, c: Array) -> Array:
    """argmin |c - Z v|^2 + |v|^2, of which v is a sum of rows of Z."""
    Q, L = linalg.qr(Z.T, mode="economic", check_finite=False)
    n = len(L)
    q, R = linalg.qr(np.vstack([L.T, np.eye(n)]), mode="economic", check_finite=False)
    return np.asarray(Q @ linalg.solve_triangular(R, q[:n].T @ c))


def _by_iteration(everything: _Everything, r: Array, some: Array, outputs: Array) -> Array:
    """LSMR over the tasks: it tends to the minimum-norm solution and copies nothing."""
    scale = _scale(everything, r, some)
    if scale is None:
        scale = _scale(everything, np.where(r < np.inf, 0.0, r), some)
    assert scale is not None
    n, k = everything.n, len(r)
    below = np.zeros(k)
    below[some] = np.sqrt(r[some]) * scale[some]

    def times(v: Array) -> Array:
        v = np.ravel(v)
        return np.concatenate([everything.times((scale * v)[:, None])[:, 0], below * v])

    def back(u: Array) -> Array:
        u = np.ravel(u)
        return scale * everything.back(u[:n, None])[:, 0] + below * u[n:]

    A = LinearOperator((n + k, k), matvec=times, rmatvec=back, dtype=np.dtype(float))
    options = {"atol": 1e-14, "btol": 1e-14, "conlim": 0, "maxiter": 10 * min(n, k) + 100}
    found = [lsmr(A, np.append(everything.y[:, j], np.zeros(k)), **options)[0] for j in outputs]
    return np.column_stack([scale * v for v in found])[some]
