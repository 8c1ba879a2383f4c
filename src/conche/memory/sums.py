"""The past as sums: all that squared errors of past rows say.

    n,  the means,  S = sum_i v_i [x_i - mean][x_i - mean y_i - mean]^T

in the users' own units, v the rows' weights. Sums add, subtract, fade, and gain or lose columns and
outputs. Nothing depends on the order of rows, or on how they were cut into tasks: scale, ridge and
weights are found from them when they are asked for (`conche.memory.evidence`).

While rows are far fewer than columns, the same value is kept as a root B of S = B^T B: centred
rows, and one row a task for how far its mean was from the others'. It becomes S once, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from ..common.arrays import (
    Array,
    Block,
    as_dense,
    columns_of,
    here,
    in_double,
    is_here,
    joined,
    like,
    rows_of,
    space,
    zeros,
)
from ..common.linear import diagonal
from ..common.outputs import Outputs

ROOT_SHARE = 2  # columns for a row, above which rows are kept themselves: fewer numbers
AT_ONCE = 2 << 20  # bytes of rows that are centred together
LEAST = 256  # rows, at least
STORED = 0.5  # share of a sparse column's rows that are stored, from which it is centred as a dense


class Rows(NamedTuple):
    """A task's rows, as the coordinator has them.

    ``ones`` is what a column of ones has become: rows may have been multiplied by the roots of
    their weights, and mixed by a rotation of all rows. None: it is one of ones.
    """

    X: Block  # n x p
    Y: Array  # n x outputs
    ones: Array | None = None
    squares: float | None = None  # sum of the squared weights; None: every row weighs one

    @property
    def weight(self) -> float:
        """The sum of the rows' weights."""
        return float(self.X.shape[0]) if self.ones is None else float(self.ones @ self.ones)

    def mean(self, Z: Block) -> Array:
        """The weighted mean of columns in these rows."""
        if self.ones is None and isinstance(Z, np.ndarray):
            return np.add.reduce(Z, axis=0, dtype=np.float64) / Z.shape[0]
        if self.ones is None and not sparse.issparse(Z):
            return np.asarray(here(space(Z).mean(in_double(Z), axis=0)), dtype=float)
        ones = np.ones(Z.shape[0]) if self.ones is None else self.ones
        found = Z.T @ (ones if is_here(Z) else like(in_double(Z[:1, :]), ones))
        return np.asarray(here(found), dtype=float) / self.weight


class Own(NamedTuple):
    """A task's rows: means, and about them squares of columns and targets, and cross products."""

    mean: Array
    X: Array
    Y: Array
    XY: Array


@dataclass(frozen=True, eq=False)
class Sums:
    """n, means and centred cross products; of columns X (p of them) and targets Y (m of them).

    Of ``XX`` the lower triangle alone is meant. ``B`` is a root of all of it, p + m columns, where
    rows are few; ``XX`` is None then.
    """

    n: float  # sum of the rows' weights
    fresh: float  # the same without rows that came again
    squares: float  # sum of squared weights of those
    origin: Array  # p + m: of the means, which so keep their digits
    mean: Array  # p + m, from there
    XX: Array | None  # p x p
    XY: Array  # p x m
    YY: Array  # m: sums of squares of the targets, centred
    B: Array | None = None  # rows x (p + m)

    @classmethod
    def nothing(cls, p: int, m: int, beside: Array | None = None) -> Sums:
        """Before the first row; on the device where ``beside`` is."""
        none = np.zeros(p + m)
        if beside is not None and not is_here(beside):
            double = in_double(beside[:1, :1])
            XX, XY = zeros(double, p, p), zeros(double, p, m)
            return cls(0.0, 0.0, 0.0, none, none, XX, XY, np.zeros(m))
        return cls(
            0.0, 0.0, 0.0, none, none, None, np.zeros((p, m)), np.zeros(m), np.zeros((0, p + m))
        )

    @property
    def p(self) -> int:
        """Columns."""
        return int(self.XY.shape[0])

    @property
    def order(self) -> int:
        """Of the matrix that is factorised to find weights."""
        return self.p if self.B is None else len(self.B)

    @property
    def centre(self) -> Array:
        """The means of columns and targets."""
        return self.origin + self.mean

    @property
    def count(self) -> float:
        """How many rows of equal weight say as much (Kish)."""
        return self.fresh**2 / self.squares if self.squares > 0 else 0.0

    @property
    def diagonal(self) -> Array:
        """The columns' sums of squares, centred."""
        if self.XX is None:
            assert self.B is not None
            return np.einsum("ij,ij->j", self.B[:, : self.p], self.B[:, : self.p])
        if is_here(self.XX):
            return np.array(self.XX.diagonal())
        return np.asarray(here(diagonal(self.XX)), dtype=float)

    # ---- rows that come, and time that goes ----

    def plus(self, rows: Rows) -> tuple[Sums, Own]:
        """With a task's rows; and what they are about their own mean."""
        k = rows.weight
        centre = np.concatenate([rows.mean(rows.X), rows.mean(rows.Y)])
        Y = centred(rows.Y, rows.ones, centre[self.p :])
        sums = self.as_products() if self._fills(rows) else self
        if sums.XX is None:
            return sums._with_rows(rows, Y, centre, k)
        before = sums.diagonal
        XX, XY, left = _products(sums.XX, sums.XY, rows, Y, centre)
        left = np.append(left, rows.mean(Y))
        new, apart = sums._moved_on(rows, centre, left, k)
        if apart is not None:
            XX, XY = _with_row(XX, XY, apart)
        new = replace(new, XX=XX, XY=XY, YY=sums.YY + _squares(Y) + _of(apart, self.p, Y))
        row = np.zeros(len(centre)) if apart is None else apart
        own = np.maximum(new.diagonal - before - row[: self.p] ** 2, 0.0)
        cross = here(new.XY) - here(sums.XY) - np.outer(row[: self.p], row[self.p :])
        return new, Own(centre, own, _squares(Y), cross)

    def _with_rows(self, rows: Rows, Y: Array, centre: Array, k: float) -> tuple[Sums, Own]:
        """The same where rows themselves are kept."""
        assert self.B is not None
        X = centred(as_dense(rows.X), rows.ones, centre[: self.p])
        left = np.append(rows.mean(X), rows.mean(Y))
        new, apart = self._moved_on(rows, centre, left, k)
        more, own = np.hstack([X, Y]), Own(centre, _squares(X), _squares(Y), X.T @ Y)
        more = more if apart is None else np.vstack([more, apart])
        X, Y = more[:, : self.p], more[:, self.p :]
        B = np.vstack([self.B, more])
        return replace(new, B=B, XY=self.XY + X.T @ Y, YY=self.YY + _squares(Y)), own

    def _moved_on(
        self, rows: Rows, centre: Array, left: Array, k: float
    ) -> tuple[Sums, Array | None]:
        """Counts and means with a task; and a row that stands for how far its mean was off, where
        there were rows before. ``left`` is what the rounding of its mean has left in its rows."""
        origin = centre if self.n == 0 else self.origin
        N, gap = self.n + k, (centre - origin) + left - self.mean
        more = k if rows.squares is None else rows.squares
        new = replace(
            self,
            n=N,
            fresh=self.fresh + k,
            squares=self.squares + more,
            origin=origin,
            mean=self.mean + k / N * gap,
        )
        return new, (self.n * k / N) ** 0.5 * gap if self.n else None

    def _fills(self, rows: Rows) -> bool:
        """Whether there are too many rows now to keep them."""
        held = 0 if self.B is None else len(self.B)
        more = rows.X.shape[0] + (self.n > 0)
        return not is_here(rows.X) or ROOT_SHARE * (held + more) > self.p

    def faded(self, discount: float) -> Sums:
        """The same rows with less weight."""
        if discount == 1.0:
            return self
        return replace(
            self,
            n=discount * self.n,
            fresh=discount * self.fresh,
            squares=discount**2 * self.squares,
            XX=None if self.XX is None else discount * self.XX,
            XY=discount * self.XY,
            YY=discount * self.YY,
            B=None if self.B is None else discount**0.5 * self.B,
        )

    # ---- columns and outputs that come, go and turn ----

    def with_columns(self, values: Array) -> Sums:
        """With more columns, which so far have had these values in every row."""
        p, more = self.p, len(values)
        grown: dict[str, Array] = {}
        for name, new in (("origin", values), ("mean", np.zeros(more))):
            old = getattr(self, name)
            grown[name] = np.concatenate([old[:p], new, old[p:]])
        grown["XY"] = joined([self.XY, zeros(self.XY, more, self.XY.shape[1])])
        if self.B is not None:
            new = np.zeros((len(self.B), more))
            grown["B"] = np.hstack([self.B[:, :p], new, self.B[:, p:]])
        if self.XX is not None:
            XX = zeros(self.XX, p + more, p + more)
            XX[:p, :p] = self.XX
            grown["XX"] = np.asfortranarray(XX) if is_here(XX) else XX
        return replace(self, **grown)

    def of_columns(self, which: Array) -> Sums:
        """Of some of the columns alone, in rising order."""
        p = self.p
        both = np.concatenate([which, np.arange(p, len(self.origin))])
        XX = None if self.XX is None else some_of(self.XX, which)
        B = None if self.B is None else self.B[:, both]
        return replace(
            self,
            origin=self.origin[both],
            mean=self.mean[both],
            XX=XX,
            XY=rows_of(self.XY, which),
            B=B,
        )

    def of_outputs(self, outputs: Outputs) -> Sums:
        """With other targets, each one of the old ones or its negative."""
        p = self.p
        changed = {name: getattr(self, name) for name in ("origin", "mean")}
        changed = {k: np.concatenate([a[:p], outputs.of(a[p:])]) for k, a in changed.items()}
        B = self.B
        if B is not None:
            B = np.hstack([B[:, :p], outputs.of(B[:, p:])])
        return replace(self, XY=outputs.of(self.XY), YY=outputs.among(self.YY), B=B, **changed)

    def turned(self, T: Array) -> Sums:
        """In other coordinates: rows x become x T."""
        p = self.p
        changed: dict[str, Array] = {}
        for name in ("origin", "mean"):
            old = getattr(self, name)
            changed[name] = np.concatenate([old[:p] @ T, old[p:]])
        changed["XY"] = T.T @ self.XY
        if self.B is not None:
            changed["B"] = np.hstack([self.B[:, :p] @ T, self.B[:, p:]])
        if self.XX is not None:
            changed["XX"] = np.asfortranarray(T.T @ symmetric(self.XX) @ T)
        return replace(self, **changed)

    def moved(self, put: Callable[[Array], Array]) -> Sums:
        """With its products on a device, or here: ``put`` brings them."""
        sums = self.as_products()
        return replace(sums, XX=put(sums.XX), XY=put(sums.XY))

    def as_products(self) -> Sums:
        """The same value without its root."""
        if self.B is None:
            return self
        X = self.B[:, : self.p]
        XX = np.zeros((self.p, self.p), order="F")
        return replace(self, XX=add_gram(XX, X) if len(X) else XX, B=None)

    @property
    def numbers(self) -> int:
        """That are kept."""
        held = self.p * (self.p + 1) // 2 if self.B is None else self.B.size
        return held + self.XY.size + 2 * len(self.origin)


def centred(Z: Array, ones: Array | None, centre: Array) -> Array:
    """Rows less their mean, in double precision."""
    Z = in_double(Z)
    mean = like(Z[:1, :1], centre)
    return Z - (mean if ones is None else like(Z[:1, :1], ones)[:, None] * mean)


def _products(
    XX: Array, XY: Array, rows: Rows, Y: Array, centre: Array
) -> tuple[Array, Array, Array]:
    """XX and XY with a task's rows about its mean, and what rounding has left of that."""
    X, p = rows.X, rows.X.shape[1]
    if not is_here(X):
        X = centred(X, rows.ones, centre[:p])
        return XX + X.T @ X, XY + X.T @ like(X, Y), rows.mean(X)
    XX, XY = np.array(XX, order="F"), np.array(XY, order="F")
    if sparse.issparse(X):
        return _sparse_products(XX, rows, centre[:p]), XY + X.T @ Y, np.zeros(p)
    left, step = np.zeros(p), max(AT_ONCE // (8 * max(p, 1)), p, LEAST)
    for first in range(0, X.shape[0], step):  # a part at a time, which stays near the processor
        some = slice(first, first + step)
        ones = None if rows.ones is None else rows.ones[some]
        part = centred(X[some], ones, centre[:p])
        left += np.add.reduce(part, axis=0) if ones is None else ones @ part
        XX = add_gram(XX, part)
        XY = blas.dgemm(1.0, _turned(part), Y[some].T, beta=1.0, c=XY, trans_b=1, overwrite_c=1)
    return XX, XY, left / rows.weight


def _sparse_products(XX: Array, rows: Rows, mean: Array) -> Array:
    """Products of sparse columns, centred by the product of means; columns that are mostly stored
    are centred themselves, which keeps their digits."""
    X, n = sparse.csc_array(rows.X, dtype=np.float64), rows.weight
    full = np.flatnonzero(np.diff(X.indptr) > STORED * X.shape[0])
    G = (X.T @ X).toarray()
    XX += G
    XX = blas.dsyr(-n, mean, a=XX, lower=1, overwrite_a=1)
    if len(full):
        Z = centred(X[:, full].toarray(), rows.ones, mean[full])
        cross = np.asarray(X.T @ Z)  # Z is centred: so are its products
        exact, held = cross.copy(), G[:, full] - n * np.outer(mean, mean[full])
        exact[full] = Z.T @ Z
        change = exact - held
        XX[:, full] += change
        XX[full, :] += change.T
        XX[np.ix_(full, full)] -= change[full]
    return XX


def _with_row(XX: Array, XY: Array, row: Array) -> tuple[Array, Array]:
    """One more row; the arrays may be written to."""
    p = XX.shape[0]
    if is_here(XX):
        XY += np.outer(row[:p], row[p:])
        return blas.dsyr(1.0, row[:p], a=XX, lower=1, overwrite_a=1), XY
    x, y = like(XX, row[:p])[:, None], like(XX, row[p:])[None, :]
    return XX + x * x.T, XY + x * y


def _of(row: Array | None, p: int, Y: Array) -> Array:
    return np.zeros(Y.shape[1]) if row is None else row[p:] ** 2


def _squares(Z: Array) -> Array:
    return np.einsum("ij,ij->j", Z, Z)


def _turned(X: Array) -> Array:
    """X^T in Fortran's order."""
    return X.T if X.flags.c_contiguous else np.asfortranarray(X.T)


def add_gram(XX: Array, X: Array) -> Array:
    """XX + X^T X, the lower triangle; XX is in Fortran's order and written to."""
    return blas.dsyrk(1.0, _turned(X), beta=1.0, c=XX, lower=1, overwrite_c=1)


def some_of(XX: Array, which: Array) -> Array:
    """Of some columns, in rising order."""
    if len(which) == XX.shape[0]:
        return XX
    if is_here(XX):
        return np.asfortranarray(XX[np.ix_(which, which)])
    return columns_of(rows_of(XX, which), which)


def symmetric(XX: Array) -> Array:
    """Both triangles, from the lower one."""
    if not is_here(XX):
        return XX
    lower = np.tril(XX)
    return lower + np.tril(XX, -1).T
