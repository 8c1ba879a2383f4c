"""Linear algebra of matrices, and of stacks of them, in whichever library they are.

What the array API has is used as it is; what it lacks (factors that are solved with) is here, by
the best that each library offers.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_cupy_array, is_torch_array
from scipy import linalg

from .arrays import Array, eye, is_here, space

LARGE = 512  # rows of a triangle that is better solved with alone than in a stack


def transposed(A: Array) -> Array:
    """Of every matrix in a stack."""
    return array_namespace(A).matrix_transpose(A)


def solve(A: Array, b: Array) -> Array:
    """A^-1 b for stacks; those of b may be fewer than those of A."""
    xp = array_namespace(A)
    return xp.linalg.solve(A, xp.broadcast_to(b, (*A.shape[:-1], b.shape[-1])))


def solve_triangular(A: Array, b: Array) -> Array:
    """The same where every A is zero below its diagonal; NumPy has no solver for stacks of them."""
    if not is_torch_array(A):
        return solve(A, b)
    return _torch().linalg.solve_triangular(A, b, upper=True)


def solve_positive(A: Array, b: Array) -> Array:
    """The same where every A is positive definite: by Cholesky's factors on a GPU, where they are
    twice as quick; NumPy has no solver for stacks of them."""
    xp = array_namespace(A)
    b = xp.broadcast_to(b, (*A.shape[:-1], b.shape[-1]))
    if not is_torch_array(A):
        return xp.linalg.solve(A, b)
    factor, _ = _torch().linalg.cholesky_ex(A)
    return _torch().cholesky_solve(b, factor)


# ---- Cholesky's factors: M = L L^T ----


def cholesky(M: Array) -> Array | None:
    """L, its upper half not to be read; None where some M is not positive definite. In NumPy, M is
    in Fortran's order and may be written to."""
    if is_here(M):
        L, info = _lapack(M.dtype.char).potrf(M, lower=1, overwrite_a=1, clean=0)
        return L if info == 0 else None
    if is_torch_array(M):
        L, info = _torch().linalg.cholesky_ex(M)
        return None if bool((info != 0).any()) else L
    xp = space(M)
    try:
        L = xp.linalg.cholesky(M)
    except Exception as error:  # every library has a class of its own for it
        if type(error).__name__ != "LinAlgError":
            raise
        return None
    return L if bool(xp.all(xp.isfinite(L))) else None  # CuPy says nothing


def reciprocal_condition(L: Array, one_norm: float) -> float:
    """Of M = L L^T in NumPy, whose 1-norm is known: LAPACK's estimate."""
    return float(_lapack(L.dtype.char).pocon(L, one_norm, uplo="L")[0])


def one_norms(M: Array) -> Array:
    """The 1-norm of every symmetric matrix in a stack."""
    if is_here(M) and M.ndim == 2:
        return _lapack(M.dtype.char).lange("1", M.T if M.flags.c_contiguous else M)
    xp = space(M)
    sums = xp.sum(xp.abs(M), axis=-2)
    return xp.max(sums, axis=-1) if M.shape[-1] else xp.sum(sums, axis=-1)


def solve_factored(L: Array, b: Array) -> Array:
    """M^-1 b in NumPy."""
    return _lapack(L.dtype.char).potrs(L, b, lower=1)[0]


def solve_lower(L: Array, b: Array) -> Array:
    """L^-1 b in NumPy."""
    return _lapack(L.dtype.char).trtrs(L, b, lower=1)[0]


def inverse_of_lower(L: Array) -> Array:
    """L^-1 on a device, of every matrix in a stack: solving with a triangle takes a GPU far longer
    than a product does, and it is solved with again and again."""
    if L.ndim > 2 and (is_cupy_array(L) or (is_torch_array(L) and L.shape[-1] >= LARGE)):
        return space(L).stack([inverse_of_lower(L[k, ...]) for k in range(L.shape[0])])
    unit = space(L).broadcast_to(eye(L, L.shape[-1]), L.shape)
    if is_torch_array(L):
        return _torch().linalg.solve_triangular(L, unit, upper=False)
    if is_cupy_array(L):
        return import_module("cupyx.scipy.linalg").solve_triangular(L, unit, lower=True)
    return space(L).linalg.solve(space(L).tril(L), unit)


def estimated_condition(inverse: Array, one_norm: Array) -> float:
    """The reciprocal condition number of M = L L^T on a device, from L^-1 and the 1-norm of M; of a
    stack the worst. Hager's way uphill, as LAPACK goes, from the mean of all columns of M^-1."""
    xp, n = space(inverse), inverse.shape[-1]
    turned = transposed(inverse)
    x = xp.ones_like(inverse[..., :1]) / n
    places = xp.arange(n, dtype=xp.int64, device=x.device)[:, None]
    largest = xp.zeros_like(one_norm)
    for _ in range(4):
        y = turned @ (inverse @ x)
        largest = xp.maximum(largest, xp.sum(xp.abs(y), axis=-2)[..., 0])
        signs = xp.where(y < 0, -xp.ones_like(y), xp.ones_like(y))
        best = xp.argmax(xp.abs(turned @ (inverse @ signs)), axis=-2, keepdims=True)
        x = xp.astype(places == best, inverse.dtype)
    return float(xp.min(1 / (one_norm * largest)))


# ---- triangles of rows: R^T R = rows^T rows ----


def triangle_of(rows: Array) -> Array:
    """R of the rows' QR factorisation; they may be written to."""
    if is_here(rows):
        R = linalg.qr(rows, mode="r", check_finite=False, overwrite_a=True)[0]
        return np.asarray(R[: min(rows.shape)])
    return space(rows).linalg.qr(rows)[1]


def solve_upper(R: Array, b: Array, turned: bool = False) -> Array:
    """R^-1 b; ``turned``: R^-T b."""
    if is_here(R):
        return linalg.solve_triangular(R, b, trans=int(turned))
    if is_torch_array(R):
        return _torch().linalg.solve_triangular(R.mT if turned else R, b, upper=not turned)
    if is_cupy_array(R):
        own = import_module("cupyx.scipy.linalg")
        return own.solve_triangular(R, b, trans=int(turned))
    return space(R).linalg.solve(transposed(R) if turned else R, b)


def svd(A: Array) -> tuple[Array, Array, Array]:
    """U, s and V^T of A, or of every matrix in a stack."""
    if not is_here(A):
        U, s, Vt = space(A).linalg.svd(A, full_matrices=False)
        return U, s, Vt
    try:
        return linalg.svd(A, full_matrices=False, check_finite=False)
    except linalg.LinAlgError:  # the divide-and-conquer driver can fail where QR iteration does not
        return linalg.svd(A, full_matrices=False, check_finite=False, lapack_driver="gesvd")


def diagonal(M: Array) -> Array:
    """Of every matrix in a stack."""
    return np.diagonal(M) if is_here(M) and M.ndim == 2 else space(M).linalg.diagonal(M)


def with_diagonal(M: Array, added: Any) -> Array:
    """A copy of M with more on its diagonal: a number, or one for every row."""
    if is_here(M) and M.ndim == 2:
        M = np.array(M, order="F")
        M.flat[:: len(M) + 1] += added
        return M
    more = added if isinstance(added, float | int) else added[..., None]
    return M + more * eye(M, M.shape[-1])


def _torch() -> Any:
    return import_module("torch")


class _Lapack(NamedTuple):
    """SciPy's routines for one precision: without the checks around them, which take longer than a
    small matrix does."""

    potrf: Any
    pocon: Any
    potrs: Any
    trtrs: Any
    lange: Any


@cache
def _lapack(char: str) -> _Lapack:
    return _Lapack(*linalg.get_lapack_funcs(_Lapack._fields, dtype=np.dtype(char)))
