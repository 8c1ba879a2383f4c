"""Linear algebra of stacks of matrices, in whichever library they are."""

from __future__ import annotations

from importlib import import_module

from array_api_compat import array_namespace, is_torch_array

from ...common.device import AnyArray


def transposed(A: AnyArray) -> AnyArray:
    """Of every matrix in a stack."""
    return array_namespace(A).matrix_transpose(A)


def solve(A: AnyArray, b: AnyArray) -> AnyArray:
    """A^-1 b for stacks; those of b may be fewer than those of A."""
    xp = array_namespace(A)
    return xp.linalg.solve(A, xp.broadcast_to(b, (*A.shape[:-1], b.shape[-1])))


def solve_triangular(A: AnyArray, b: AnyArray) -> AnyArray:
    """The same where every A is zero below its diagonal; NumPy has no solver for stacks of them."""
    if not is_torch_array(A):
        return solve(A, b)
    torch = import_module("torch")
    return torch.linalg.solve_triangular(A, b, upper=True)


def solve_positive(A: AnyArray, b: AnyArray) -> AnyArray:
    """The same where every A is positive definite: by Cholesky's factors on a GPU, where they are
    twice as quick; NumPy has no solver for stacks of them."""
    xp = array_namespace(A)
    b = xp.broadcast_to(b, (*A.shape[:-1], b.shape[-1]))
    if not is_torch_array(A):
        return xp.linalg.solve(A, b)
    torch = import_module("torch")
    factor, _ = torch.linalg.cholesky_ex(A)
    return torch.cholesky_solve(b, factor)
