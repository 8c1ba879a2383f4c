"""Products of the rows [V; A] that memory of limited size works with, V dense and A any."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ...common.arrays import Array, Block, as_dense, column_dots, gram, scale_columns


def products(V: Array, A: Block) -> Array:
    """All inner products of the rows [V; A]."""
    VA = np.asarray(A @ V.T).T
    return np.block([[V @ V.T, VA], [VA.T, gram(A, wide=True)]])


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
    directions = np.hstack([np.asarray(solved @ V.T).T for solved in each])
    if not len(t):
        return directions
    own = np.array([_row_dots(some, solved) for solved in each])
    return np.asarray(own - column_dots(directions, t).reshape(own.shape))


def _row_dots(a: Block, b: Block) -> Array:
    """a_i . b_i for every row i."""
    if sparse.issparse(a):
        return np.asarray(a.multiply(b).sum(axis=1)).ravel()
    return np.asarray(np.einsum("ij,ij->i", a, b))
