"""Algorithm 1 on given tasks, over and over: many trials at once, on any device (Section IV-F)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from array_api_compat import array_namespace

from ...common.arrays import Array
from ...common.linear import transposed

WELL_CONDITIONED = 1e-5  # reciprocal condition of the samples' products, for which they will do


class Loss(NamedTuple):
    """A loss as the nodes see it: tau, and minus its gradient at predictions v for targets y."""

    smoothness: float
    descent: Callable[[Array, Array], Array]


def _squared(v: Array, y: Array) -> Array:
    return y - v


def _logistic(v: Array, y: Array) -> Array:
    """y / (1 + exp(y v)), which never overflows as a tanh."""
    return 0.5 * y * (1 - array_namespace(v).tanh(0.5 * y * v))


LOSSES = {"squared": Loss(1.0, _squared), "logistic": Loss(4.0, _logistic)}


class Inverse(NamedTuple):
    """A_k^+ g = rows^T (core g), of every task and trial."""

    rows: Array  # trials x tasks x r x p_k
    core: Array  # trials x tasks x r x n

    @classmethod
    def of(cls, A: Array) -> Inverse:
        """By the samples' products where they are well conditioned, by singular values else."""
        xp = array_namespace(A)
        if A.shape[-1] > A.shape[-2]:
            squares, U = xp.linalg.eigh(A @ transposed(A))
            if bool(xp.all(squares[..., 0] > WELL_CONDITIONED * squares[..., -1])):
                return cls(A, (U / squares[..., None, :]) @ transposed(U))
        U, s, Vt = xp.linalg.svd(A, full_matrices=False)
        cut = max(A.shape[-2:]) * float(xp.finfo(s.dtype).eps) * xp.max(s, axis=-1, keepdims=True)
        kept = s > cut
        inverse = xp.where(kept, 1 / xp.where(kept, s, xp.ones_like(s)), xp.zeros_like(s))
        return cls(Vt, inverse[..., None] * transposed(U))


def repeated(
    A: Array, y: Array, sizes: Sequence[int], loss: Loss, passes: int, n_rounds: int = 1
) -> Array:
    """The estimate after every pass over all tasks: trials x passes x p.

    Parameters
    ----------
    A, y : trials x tasks x n x p, and trials x tasks x n.
    sizes : of the nodes' blocks.
    loss : of predictions.
    passes : over all tasks, each of ``n_rounds`` rounds.
    """
    xp = array_namespace(A)
    K, ends = len(sizes), list(accumulate(sizes))
    blocks = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    nodes = [Inverse.of(A[..., block]) for block in blocks]
    w, after = xp.zeros_like(A[:, 0, :1, :]), []  # w: trials x 1 x p
    for _ in range(passes):
        for t in range(A.shape[1]):
            for _ in range(n_rounds):
                v = A[:, t, ...] @ transposed(w)
                g = loss.descent(v, y[:, t, :, None])
                moves = [
                    transposed(node.core[:, t, ...] @ g) @ node.rows[:, t, ...] for node in nodes
                ]
                w = w + (loss.smoothness / K) * xp.concat(moves, axis=-1)  # lines 7 and 8
        after.append(w)
    return xp.concat(after, axis=1)
