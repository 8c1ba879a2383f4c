"""What all nodes do with a batch of tasks, as pure functions of arrays. Axis 0 is the trial."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from array_api_compat import array_namespace

from ...common.arrays import Array
from ...common.linear import solve, solve_positive, solve_triangular, transposed


class Blocks:
    """Minimum-norm solutions of every block of R (trials x m x p), for any partition.

    Partitions asked for from coarse to fine share one Gram matrix: the blocks of a finer partition
    lie on the diagonals of the coarser one's. ``triangular``: R is, above the diagonal.
    """

    def __init__(self, R: Array, triangular: bool = False):
        self.R, self.xp, self.triangular = R, array_namespace(R), triangular
        self.grams: Array | None = None  # of the last even partition: trials x K x size x size

    def solve(self, partition: Sequence[int], g: Array) -> Array:
        """[A_1^+ g; ...; A_K^+ g] (trials x p x s) for g (trials x m x s)."""
        out, start = [], 0
        for size, run in groupby(partition):  # neighbours of equal size are solved together
            K = len(list(run))
            out.append(self._run(start, K, size, g))
            start += K * size
        return out[0] if len(out) == 1 else self.xp.concat(out, axis=1)

    def _run(self, start: int, K: int, size: int, g: Array) -> Array:
        """The solutions of K neighbouring blocks of equal size, the first from ``start``."""
        trials, m, p = self.R.shape
        columns = self.R[:, :, start : start + K * size]
        if size < m:  # tall: the normal equations
            even = K * size == p
            G = self._even_grams(K, size) if even else _grams(_split(columns, K))
            right = self.xp.reshape(transposed(columns) @ g, (trials, K, size, g.shape[-1]))
            z = solve_positive(G, right)
        elif size == m:
            exact = solve_triangular if self.triangular and K == 1 else solve
            z = exact(_split(columns, K), g[:, None, ...])
        else:  # wide: minimum norm, A^T (A A^T)^-1 g
            A = _split(columns, K)
            At = transposed(A)
            z = At @ solve_positive(A @ At, g[:, None, ...])
        return self.xp.reshape(z, (trials, K * size, g.shape[-1]))

    def _even_grams(self, K: int, size: int) -> Array:
        """A_k^T A_k of K even blocks, cut out of the last ones where those were coarser."""
        known, xp = self.grams, self.xp
        if known is None or known.shape[-1] % size or known.shape[-1] < size:
            known = _grams(_split(self.R, K))
        elif known.shape[-1] > size:
            trials, parents, large, _ = known.shape
            inner = xp.reshape(known, (trials, parents, large // size, size, large // size, size))
            diagonal = xp.linalg.diagonal(xp.permute_dims(inner, (0, 1, 3, 5, 2, 4)))
            known = xp.reshape(xp.moveaxis(diagonal, -1, 2), (trials, K, size, size))
        self.grams = known
        return known

    def averaged_projection(self, partition: Sequence[int]) -> Array:
        """M = (1/K) sum_k A_k A_k^+ (trials x m x m): what a round does to the residual."""
        trials, m, p = self.R.shape
        xp, K, size = self.xp, len(partition), partition[0]
        if max(partition) < m and len(set(partition)) == 1:
            # equal tall blocks: orthonormal columns Q_k = A_k L_k^-T, and M = Q Q^T / K
            L = xp.linalg.cholesky(self._even_grams(K, size))
            Q = _split(self.R, K) @ transposed(xp.linalg.inv(L))
            Q = xp.reshape(xp.moveaxis(Q, 1, 2), (trials, m, p))
            return Q @ transposed(Q) / K
        eye = xp.eye(m, dtype=self.R.dtype, device=self.R.device)
        return self.R @ self.solve(partition, xp.broadcast_to(eye, (trials, m, m))) / K


def _split(columns: Array, K: int) -> Array:
    """trials x m x (K size) -> trials x K x m x size."""
    xp = array_namespace(columns)
    trials, m, width = columns.shape
    return xp.moveaxis(xp.reshape(columns, (trials, m, K, width // K)), 2, 1)


def _grams(blocks: Array) -> Array:
    return transposed(blocks) @ blocks


def update(blocks: Blocks, partition: Sequence[int], n_rounds: int, g: Array) -> Array:
    """What Algorithm 1 adds to the estimate in ``n_rounds`` rounds, for residuals g.

    Round i adds (1/K) A_k^+ g_i with g_{i+1} = (I - M) g_i: the sum of the residuals is enough.
    """
    total = g
    if n_rounds > 1:
        for residual in residuals(blocks.averaged_projection(partition), n_rounds, g)[1:]:
            total = total + residual
    return blocks.solve(partition, total) / len(partition)


def residuals(M: Array, n_rounds: int, g: Array) -> list[Array]:
    """g_0 ... g_{R-1} of R rounds, each (I - M) times the one before."""
    out = [g]
    for _ in range(n_rounds - 1):
        out.append(out[-1] - M @ out[-1])
    return out
