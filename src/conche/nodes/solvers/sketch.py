"""The shared sketch: what the nodes remember of how their blocks hang together.

All nodes draw the same sparse sign matrix S_t (m x n_t) from (seed, task), without talking, and
node k adds S_t A_{t,k} to its m x p_k sketch. The sketches' products estimate the past's cross
products between blocks, without bias and without a feature leaving its node.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import sparse

from ...common.arrays import Array

NONZEROS = 8  # per sample; the sketch costs 8 n p_k, below the Gram product's n p_k^2
PROBES = 16


@lru_cache(maxsize=2)  # the nodes of one process ask for the same matrix
def sketch_matrix(seed: int, task: int, n_samples: int, rows: int, dtype: str) -> sparse.csr_array:
    """S_t: each sample goes to one row of each of eight groups of rows, with a random sign.

    Columns have unit norm and two samples' inner product has variance 1/m, as for dense signs.
    """
    rng = np.random.default_rng([seed, task])
    groups = min(NONZEROS, rows)
    edges = np.arange(groups + 1) * rows // groups
    where = rng.integers(edges[:-1], edges[1:], size=(n_samples, groups))
    signs = rng.choice(np.array([-1.0, 1.0]), size=(n_samples, groups)) / np.sqrt(groups)
    pointers = np.arange(n_samples + 1) * groups
    S = sparse.csc_array((signs.ravel(), where.ravel(), pointers), shape=(rows, n_samples))
    return sparse.csr_array(S, dtype=dtype)


@lru_cache(maxsize=4)
def probes(seed: int, rows: int) -> Array:
    """Random sign vectors, the same on every node, to measure Frobenius norms with."""
    rng = np.random.default_rng([seed, 2**32 - 1, rows])
    return rng.choice(np.array([-1.0, 1.0]), size=(rows, PROBES))


def cross_norm(total: Array, own: float) -> float:
    """The squared Frobenius norm of the sketched Gram matrix outside its diagonal blocks.

    With M_k = Abar_k Abar_k^T and a sign vector x, E |sum_k M_k x|^2 - sum_k |M_k x|^2 is the sum
    of |Abar_k^T Abar_j|_F^2 over pairs of different blocks. ``total`` is sum_k M_k x for the
    probes x, ``own`` the sum of |M_k x|^2.
    """
    return max(0.0, (float(np.sum(total**2)) - own) / PROBES)


def shrinkage(observed: float, diagonal: float, rows: int) -> float:
    """theta: the Ledoit-Wolf weight of the sketch's noise in the cross blocks.

    ``observed`` is the squared norm of the sketched cross blocks, ``diagonal`` the sum over pairs
    of different blocks of the product of their traces, which is what the noise is made of.
    """
    signal = max(0.0, (observed - diagonal / rows) / (1 + 1 / rows))
    noise = (diagonal + signal) / rows
    return noise / (noise + signal) if noise + signal > 0 else 1.0
