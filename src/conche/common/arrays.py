"""Arrays and blocks: what all libraries have under different names, and products that serve dense
and sparse blocks alike.

NumPy is the default. On a GPU (`conche.common.device`) arrays are PyTorch's or CuPy's; what works
with all of them is written against the array API.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_cupy_array, is_torch_array
from array_api_compat import numpy as numpy_api
from scipy import sparse

Array = Any  # NumPy's, or of the library that a device has
Block = Any  # a node's columns of A_t: an array or a scipy.sparse matrix
CACHE_BYTES = 16 << 20
MOST_SQUARES = 1e300  # of a column's numbers: beyond, sums of products overflow
NARROW = 4  # columns of a matrix that is better taken one by one


def is_here(x: Any) -> bool:
    """Whether something is NumPy's or scipy's, and not on a device."""
    return isinstance(x, np.ndarray) or sparse.issparse(x)


def on_gpu(x: Any) -> bool:
    """Whether it is an array on a GPU."""
    return is_cupy_array(x) or (is_torch_array(x) and x.is_cuda)


def here(x: Array) -> Array:
    """x as an array of NumPy's, wherever it was."""
    if is_here(x):
        return x
    if is_torch_array(x):
        return x.detach().cpu().numpy()
    return x.get() if is_cupy_array(x) else np.asarray(x)


def as_host(x: Any) -> Any:
    """An array from a GPU as NumPy's; anything else as it is."""
    return here(x) if on_gpu(x) else x


def put_by(x: Array, values: Array) -> Array:
    """NumPy's numbers of any kind on the device of x."""
    return space(x).asarray(values, device=device(x))


def space(x: Array) -> Any:
    """The functions of the array's library."""
    return numpy_api if is_here(x) else array_namespace(x)


def like(x: Array, values: Any) -> Array:
    """Numbers from here as an array beside x, in its precision; what is there already stays."""
    if is_here(x):
        return np.asarray(values, dtype=x.dtype)
    if not isinstance(values, np.ndarray | Sequence):
        return values
    numbers = np.asarray(values)
    if not numbers.flags.writeable:
        numbers = numbers.copy()  # PyTorch has none that cannot be written to
    return space(x).asarray(numbers, dtype=x.dtype, device=device(x))


def zeros(x: Array, *shape: int) -> Array:
    """Zeros beside x, in its precision."""
    if is_here(x):
        return np.zeros(shape, x.dtype)
    return space(x).zeros(shape, dtype=x.dtype, device=device(x))


def eye(x: Array, n: int) -> Array:
    """The identity beside x, in its precision."""
    if is_here(x):
        return np.eye(n, dtype=x.dtype)
    return space(x).eye(n, dtype=x.dtype, device=device(x))


def as_type(x: Array, dtype: Any) -> Array:
    """x in another precision; itself where it has it already."""
    if x.dtype == dtype:
        return x
    return x.astype(dtype) if is_here(x) else space(x).astype(x, dtype)


def in_double(x: Array) -> Array:
    """x in double precision."""
    return as_type(x, np.float64 if is_here(x) else space(x).float64)


def is_double(x: Array) -> bool:
    """Whether x has double precision."""
    return bool(x.dtype == (np.float64 if is_here(x) else space(x).float64))


def epsilon(x: Array) -> float:
    """The precision of x."""
    return float(space(x).finfo(x.dtype).eps)


def bytes_of(x: Array) -> int:
    """How many bytes an array takes."""
    return math.prod(x.shape) * (8 if is_double(x) else 4)


def joined(parts: Sequence[Array], axis: int = 0) -> Array:
    """Arrays one after the other."""
    return (
        np.concatenate(parts, axis)
        if is_here(parts[0])
        else space(parts[0]).concat(parts, axis=axis)
    )


def side_by_side(blocks: Sequence[Block]) -> Block:
    """Blocks of columns as one."""
    if len(blocks) == 1:
        return blocks[0]
    if any(sparse.issparse(block) for block in blocks):
        return sparse.hstack(blocks, "csc")
    return joined(blocks, 1)


def parts_of(x: Array, count: int, axis: int = -1) -> list[Array]:
    """As many equal parts, in order."""
    if count == 1:
        return [x]
    width = x.shape[axis] // count
    before = (slice(None),) * (axis % x.ndim)
    return [x[(*before, slice(i * width, (i + 1) * width), ...)] for i in range(count)]


def repeated(x: Array, count: int) -> Array:
    """The columns of x, so many times side by side."""
    return joined([x] * count, axis=-1) if count > 1 else x


def rows_of(block: Block, rows: Any) -> Block:
    """Some rows, by their numbers."""
    if is_here(block):
        return block[rows]
    return space(block).take(block, _places(block, rows), axis=0)


def columns_of(block: Block, which: Any) -> Block:
    """Some columns, by their numbers or as a slice."""
    if is_here(block) or isinstance(which, slice):
        return block[:, which]
    return space(block).take(block, _places(block, which), axis=1)


def _places(x: Array, places: Any) -> Array:
    xp = space(x)
    return xp.asarray(np.asarray(places, dtype=np.int64), dtype=xp.int64, device=device(x))


def summed(x: Array) -> Array:
    """Over the first axis, the nodes of a stack."""
    return space(x).sum(x, axis=0)


def even_sizes(n_features: int, n_nodes: int) -> list[int]:
    """Block sizes that differ by at most one; arithmetic only, so any n_features will do."""
    small, more = divmod(n_features, n_nodes)
    return [small + 1] * more + [small] * (n_nodes - more)


def column_dots(a: Array, b: Array) -> Array:
    """a_j . b_j for every column j, summed in double precision."""
    if is_here(a):
        if a.shape[1] == 1 and a.dtype == b.dtype == np.float64:  # sooner done than einsum begins
            return np.array([a[:, 0] @ b[:, 0]])
        return np.einsum("ij,ij->j", a, b, dtype=np.float64)
    return space(a).sum(in_double(a) * in_double(b), axis=-2)


def ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is not positive: there is nothing left to gain."""
    if is_here(b) or not hasattr(b, "ndim"):
        return np.divide(a, b, out=np.zeros_like(np.asarray(a, dtype=float)), where=b > 0)
    xp = space(b)
    return xp.where(b > 0, a / xp.where(b > 0, b, xp.ones_like(b)), xp.zeros_like(b))


def positive(x: Array) -> Array:
    """x, and 0 where it is negative."""
    return np.maximum(x, 0.0) if is_here(x) else space(x).where(x > 0, x, space(x).zeros_like(x))


def gram(block: Block, wide: bool) -> Array:
    """A A^T where the block is wide, A^T A where it is tall; dense even for a sparse block."""
    return as_dense(block @ block.T if wide else block.T @ block)


def as_dense(matrix: Any) -> Array:
    """The matrix as an array, if it was sparse."""
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def times(block: Block, z: Array) -> Array:
    """A z, column by column where z has few: products with a narrow matrix take BLAS and scipy
    several times as long as as many with vectors."""
    if not is_here(block) or z.ndim != 2 or not 1 <= z.shape[1] <= NARROW:
        return block @ z
    if z.shape[1] == 1:
        return (block @ z[:, 0])[:, None]
    return np.stack([block @ column for column in np.ascontiguousarray(z.T)], axis=1)


def scale_rows(block: Block, scale: Array) -> Block:
    """diag(scale) A."""
    if sparse.issparse(block):
        return _stretched(block, scale, "csc")
    return block * like(block, scale)[:, None]


def scale_columns(block: Block, scale: Array) -> Block:
    """A diag(scale)."""
    if sparse.issparse(block):
        return _stretched(block, scale, "csr")
    return block * like(block, scale)


def _stretched(block: Block, scale: Array, across: str) -> Block:
    """Entries times the scale of their row or column, without a product of matrices; ``across`` is
    the format whose indices tell which."""
    block = block if block.format in ("csr", "csc") else block.tocsc()
    each = scale[block.indices] if block.format == across else _repeated(scale, block)
    kind = type(block)
    return kind((block.data * each, block.indices, block.indptr), shape=block.shape)


def _repeated(scale: Array, block: Block) -> Array:
    return np.repeat(scale, np.diff(block.indptr))


def with_ones(block: Block) -> Block:
    """The block and a constant column, its last."""
    if sparse.issparse(block):
        return sparse.hstack([block, np.ones((block.shape[0], 1), dtype=block.dtype)], "csc")
    return joined([block, zeros(block, block.shape[0], 1) + 1], axis=1)


def without_mean(g: Array, root: Array | None) -> Array:
    """g less its projection on the constant column, whose entries are the roots of weights."""
    if root is None:
        return g - g.mean(axis=0)
    return g - root[:, None] * (root @ g) / (root @ root)


def column_squares(block: Block) -> Array:
    """Of every column's length, in double."""
    if sparse.issparse(block):
        columns = block.tocsc()
        squares = np.square(columns.data, dtype=float)
        kind = (squares, columns.indices, columns.indptr)
        return sparse.csc_array(kind, shape=block.shape).T @ np.ones(block.shape[0])
    if is_here(block):
        return np.einsum("ij,ij->j", block, block, dtype=float, casting="unsafe")
    return column_dots(block, block)


def sum_of_squares(array: Array) -> float:
    """Of an array of NumPy's, in one pass; not finite where an entry is not, or where it overflows.
    Not by BLAS, whose threads are in the way of small tasks."""
    axes = "ij"[: array.ndim]
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.einsum(f"{axes},{axes}->", array, array))


def by_columns(block: Block) -> Block:
    """A tall dense block with its columns contiguous: both products of a round stream through it.

    Worth a copy where the block is larger than the cache and X is in C order; with X in Fortran
    order there is nothing to copy. Taken in runs of rows that fit the cache.
    """
    if not isinstance(block, np.ndarray):
        return block
    if block.nbytes <= CACHE_BYTES or block.flags.f_contiguous:
        return block
    n, p = block.shape
    copy = np.empty((p, n + 8), block.dtype)[:, :n].T  # a stride of 2^k would thrash the cache
    for i in range(0, n, 256):
        copy[i : i + 256] = block[i : i + 256]
    return copy


def small_indices(block: Block) -> Block:
    """By columns, with indices as scikit-learn wants them."""
    columns = sparse.csc_array(block)
    if columns.indices.dtype != np.int32 and columns.nnz < np.iinfo(np.int32).max:
        places = [columns.indices.astype(np.int32), columns.indptr.astype(np.int32)]
        columns = sparse.csc_array((columns.data, *places), shape=columns.shape)
    return columns
