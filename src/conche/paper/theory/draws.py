"""One draw of A, and the moments of the update it gives: for what has no closed form."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ..gaussian import gaussian_rows


class Draw(NamedTuple):
    """rho, beta, C_kk and C_kj of one draw, averaged over nodes of equal size (G groups)."""

    rho: Array  # G
    beta: Array  # G
    same: Array  # G
    cross: Array  # G x G


def draw_moments(
    rng: np.random.Generator,
    n: int,
    sizes: tuple[int, ...],
    group: Array,
    n_rounds: int,
    damping: float | None,
) -> Draw:
    """Draw A, form the update B = (1/K) S q of ``n_rounds`` rounds, and take its norms."""
    K, p = len(sizes), sum(sizes)
    A = gaussian_rows(rng, n, p)  # up to a rotation of the samples, which changes nothing
    edges = np.cumsum([0, *sizes])
    blocks = [A[:, a:b] for a, b in pairwise(edges)]
    ridge = 0.0 if damping is None else damping * n / K
    inverse = [_local_solver(block, ridge) for block in blocks]
    rows = len(A)
    M = sum(block @ S for block, S in zip(blocks, inverse, strict=True)) / K
    q = np.zeros((rows, rows))
    power = np.eye(rows)
    for _ in range(n_rounds):
        q += power
        power -= power @ M
    count = np.bincount(group)
    rho, beta, same = np.zeros((3, len(count)))
    cross = np.zeros((len(count), len(count)))
    pairs = np.outer(count, count) - np.diag(count)
    for k, S in enumerate(inverse):
        B = (S @ q) / K
        columns = np.sum((B @ A) ** 2, axis=0)
        effect = np.add.reduceat(columns, edges[:-1]) / np.asarray(sizes)
        rho[group[k]] += np.sum(B * blocks[k].T) / sizes[k]
        beta[group[k]] += np.sum(B**2)
        same[group[k]] += effect[k]
        cross[group[k]] += np.bincount(group, weights=effect, minlength=len(count))
        cross[group[k], group[k]] -= effect[k]
    cross = np.divide(cross, pairs, out=np.zeros_like(cross), where=pairs > 0)
    return Draw(rho / count, beta / count, same / count, cross)


def _local_solver(block: Array, ridge: float) -> Array:
    """(A^T A + ridge)^-1 A^T, or the pseudoinverse."""
    if ridge == 0:
        return np.linalg.pinv(block)
    n, p = block.shape
    if p <= n:
        return np.linalg.solve(block.T @ block + ridge * np.eye(p), block.T)
    return np.linalg.solve(block @ block.T + ridge * np.eye(n), block).T
