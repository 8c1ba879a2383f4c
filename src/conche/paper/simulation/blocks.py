"""What all nodes do with a batch of tasks, as pure functions of arrays. Axis 0 is the trial."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ...common.arrays import Array


class Blocks:
    """Minimum-norm solutions of every block of R (trials x m x p), for any partition.

    Partitions asked for from coarse to fine share one Gram matrix: the blocks of a finer partition
    lie on the diagonals of the coarser one's.
    """

    def __init__(self, R: Array):
        self.R = R
        self.grams: Array | None = None  # of the last even partition: trials x K x size x size

    def solve(self, partition: Sequence[int], g: Array) -> Array:
        """[A_1^+ g; ...; A_K^+ g] (trials x p x s) for g (trials x m x s)."""
        out, start = [], 0
        for size, run in groupby(partition):  # neighbours of equal size are solved together
            K = len(list(run))
            out.append(self._run(start, K, size, g))
            start += K * size
        return out[0] if len(out) == 1 else np.concatenate(out, axis=1)

    def _run(self, start: int, K: int, size: int, g: Array) -> Array:
        """The solutions of K neighbouring blocks of equal size, the first from ``start``."""
        trials, m, p = self.R.shape
        columns = self.R[..., start : start + K * size]
        if size < m:  # tall: the normal equations
            even = K * size == p
            G = self._even_grams(K, size) if even else _grams(_split(columns, K))
            right = (np.swapaxes(columns, -1, -2) @ g).reshape(trials, K, size, -1)
            z = np.linalg.solve(G, right)
        elif size == m:
            z = np.linalg.solve(_split(columns, K), g[:, None])
        else:  # wide: minimum norm, A^T (A A^T)^-1 g
            A = _split(columns, K)
            At = np.swapaxes(A, -1, -2)
            z = At @ np.linalg.solve(A @ At, g[:, None])
        return np.asarray(z).reshape(trials, K * size, -1)

    def _even_grams(self, K: int, size: int) -> Array:
        """A_k^T A_k of K even blocks, cut out of the last ones where those were coarser."""
        known = self.grams
        if known is None or known.shape[-1] % size or known.shape[-1] < size:
            known = _grams(_split(self.R, K))
        elif known.shape[-1] > size:
            trials, parents, large, _ = known.shape
            inner = known.reshape(trials, parents, large // size, size, large // size, size)
            diagonal = np.moveaxis(np.diagonal(inner, axis1=2, axis2=4), -1, 2)
            known = diagonal.reshape(trials, K, size, size)
        self.grams = known
        return known

    def averaged_projection(self, partition: Sequence[int]) -> Array:
        """M = (1/K) sum_k A_k A_k^+ (trials x m x m): what a round does to the residual."""
        trials, m, p = self.R.shape
        K, size = len(partition), partition[0]
        if max(partition) < m and len(set(partition)) == 1:
            # equal tall blocks: orthonormal columns Q_k = A_k L_k^-T, and M = Q Q^T / K
            L = np.linalg.cholesky(self._even_grams(K, size))
            Q = _split(self.R, K) @ np.swapaxes(np.linalg.inv(L), -1, -2)
            Q = np.moveaxis(Q, 1, 2).reshape(trials, m, p)
            return np.asarray(Q @ np.swapaxes(Q, -1, -2)) / K
        eye = np.broadcast_to(np.eye(m), (trials, m, m))
        return np.asarray(self.R @ self.solve(partition, eye)) / K


def _split(columns: Array, K: int) -> Array:
    """trials x m x (K size) -> trials x K x m x size."""
    trials, m, width = columns.shape
    return np.moveaxis(columns.reshape(trials, m, K, width // K), 2, 1)


def _grams(blocks: Array) -> Array:
    return np.asarray(np.swapaxes(blocks, -1, -2) @ blocks)


def update(blocks: Blocks, partition: Sequence[int], n_rounds: int, g: Array) -> Array:
    """What Algorithm 1 adds to the estimate in ``n_rounds`` rounds, for residuals g.

    Round i adds (1/K) A_k^+ g_i with g_{i+1} = (I - M) g_i: the sum of the residuals is enough.
    """
    total = g
    if n_rounds > 1:
        total = np.sum(residuals(blocks.averaged_projection(partition), n_rounds, g), axis=0)
    return blocks.solve(partition, total) / len(partition)


def residuals(M: Array, n_rounds: int, g: Array) -> list[Array]:
    """g_0 ... g_{R-1} of R rounds, each (I - M) times the one before."""
    out = [g]
    for _ in range(n_rounds - 1):
        out.append(out[-1] - M @ out[-1])
    return out
