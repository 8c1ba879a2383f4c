"""Arrays and blocks: their types, and products that serve dense and sparse blocks alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]
Block = Any  # a node's columns of A_t: an array or a scipy.sparse matrix
CACHE_BYTES = 16 << 20


def even_sizes(n_features: int, n_nodes: int) -> list[int]:
    """Block sizes that differ by at most one; arithmetic only, so any n_features will do."""
    small, more = divmod(n_features, n_nodes)
    return [small + 1] * more + [small] * (n_nodes - more)


def column_dots(a: Array, b: Array) -> Array:
    """a_j . b_j for every column j, summed in double precision."""
    return np.einsum("ij,ij->j", a, b, dtype=np.float64)


def ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is not positive: there is nothing left to gain."""
    return np.divide(a, b, out=np.zeros_like(np.asarray(a, dtype=float)), where=b > 0)


def gram(block: Block, wide: bool) -> Array:
    """A A^T where the block is wide, A^T A where it is tall; dense even for a sparse block."""
    return as_dense(block @ block.T if wide else block.T @ block)


def as_dense(matrix: Any) -> Array:
    """The matrix as an array, whatever it was."""
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def scale_rows(block: Block, scale: Array) -> Block:
    """diag(scale) A."""
    return sparse.diags_array(scale) @ block if sparse.issparse(block) else block * scale[:, None]


def scale_columns(block: Block, scale: Array) -> Block:
    """A diag(scale)."""
    return block @ sparse.diags_array(scale) if sparse.issparse(block) else block * scale


def with_ones(block: Block) -> Block:
    """The block and a constant column, its last."""
    both = [block, np.ones((block.shape[0], 1), dtype=block.dtype)]
    return sparse.hstack(both, "csc") if sparse.issparse(block) else np.hstack(both)


def without_mean(g: Array, root: Array | None) -> Array:
    """g less its projection on the constant column, whose entries are the roots of weights."""
    if root is None:
        return np.asarray(g - g.mean(axis=0))
    return np.asarray(g - root[:, None] * (root @ g) / (root @ root))


def column_squares(block: Block) -> Array:
    """Of every column's length, in double."""
    if sparse.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=0), dtype=float).ravel()
    return np.asarray(np.einsum("ij,ij->j", block, block, dtype=float, casting="unsafe"))


def squared_norm(block: Block) -> float:
    """The squared Frobenius norm, without a copy of the block."""
    if sparse.issparse(block):
        return float(np.sum(np.square(block.data, dtype=np.float64)))
    return float(np.einsum("ij,ij->i", block, block).sum(dtype=np.float64))


def by_columns(block: Block) -> Block:
    """A tall dense block with its columns contiguous: both products of a round stream through it.

    Worth a copy where the block is larger than the cache and X is in C order; with X in Fortran
    order there is nothing to copy. Taken in runs of rows that fit the cache.
    """
    if sparse.issparse(block) or block.nbytes <= CACHE_BYTES or block.flags.f_contiguous:
        return block
    n, p = block.shape
    copy = np.empty((p, n + 8), block.dtype)[:, :n].T  # a stride of 2^k would thrash the cache
    for i in range(0, n, 256):
        copy[i : i + 256] = block[i : i + 256]
    return copy
