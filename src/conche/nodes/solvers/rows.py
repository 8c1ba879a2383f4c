"""Products of the rows [V; A] that memory of limited size works with, V dense and A any."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...common.arrays import (
    Array,
    Block,
    as_dense,
    column_dots,
    gram,
    is_here,
    joined,
    like,
    scale_columns,
    space,
)


def products(V: Array, A: Block) -> Array:
    """All inner products of the rows [V; A]."""
    VA = (A @ V.T).T
    return joined([joined([V @ V.T, VA], 1), joined([VA.T, gram(A, wide=True)], 1)])


def bordered_products(V: Array, A: Block, root: Array, intercept: bool) -> Array:
    """Those of rows whose columns are multiplied with ``root``, without the intercept's column,
    the last, if there is one: that is in a row below."""
    border = np.zeros((1, len(V) + A.shape[0]))
    if intercept:
        last = as_dense(A[:, [-1]]).ravel()
        border[0] = root[-1] * np.concatenate([V[:, -1], last])
        root = np.append(root[:-1], 0.0)
    return np.concatenate([products(V * root, scale_columns(A, root)), border])


def leverages(some: Block, V: Array, diagonals: list[Array], t: Array) -> Array:
    """a.D^-1 a - (V D^-1 a).t for rows a, and for every diagonal D; without t, V D^-1 a.

    Nothing is as tall as the rows are many and as wide as they are long, unless they are dense.
    """
    each = [scale_columns(some, 1 / D) for D in diagonals]
    directions = joined([(solved @ V.T).T for solved in each], 1)
    if not t.shape[0]:
        return directions
    own = space(V).stack([_row_dots(some, solved) for solved in each])
    return own - space(V).reshape(column_dots(directions, t), own.shape)


class Sums(NamedTuple):
    """Rows to be added up in ``width`` sums: row i with its sign in the where[i]-th. Far cheaper
    than a product with as many random columns, and as good where a product with B follows."""

    where: Array
    signs: Array
    width: int

    @classmethod
    def drawn(cls, seed: int, rows: int, width: int) -> Sums:
        """At random, the same wherever there are so many rows."""
        rng = np.random.default_rng([seed, rows])
        return cls(rng.integers(width, size=rows), rng.choice([-1.0, 1.0], rows), width)

    def of(self, rows: Block, first: int = 0) -> Array:
        """The sums of these rows, which are the first-th and those after it."""
        some = slice(first, first + rows.shape[0])
        where, signs = self.where[some], self.signs[some]
        if is_here(rows):
            shape = (self.width, rows.shape[0])
            return as_dense(sparse.csr_array((signs, (where, np.arange(shape[1]))), shape) @ rows)
        places = like(rows, np.arange(self.width))[:, None]
        signs = like(rows, signs)[None, :]
        xp = space(rows)
        chosen = places == like(rows, where)[None, :]
        return xp.where(chosen, signs, xp.zeros_like(signs)) @ rows


def _row_dots(a: Block, b: Block) -> Array:
    """a_i . b_i for every row i."""
    if sparse.issparse(a):
        return np.asarray(a.multiply(b).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", a, b) if is_here(a) else space(a).sum(a * b, axis=1)
