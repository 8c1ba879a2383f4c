"""The moments of one task's update: all that the generalization error needs of a solver.

One task is the affine map w' = w + B (y - A w). With isotropic Gaussian blocks every expectation
is a number per block:

    rho_k  = E tr(B_k A_k) / p_k         how much of the new task block k takes up
    C_kj   = E |B_k A_j|_F^2 / p_j       what block j's error does to block k
    beta_k = E |B_k|_F^2                 what noise does to block k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
SAMPLED_ENTRIES = 4e6  # of A, in all draws together


def r_and_gamma(n_samples: float, partition: Any) -> tuple[Array, Array]:
    """r_k and gamma_k of the paper; gamma is infinite where |n - p_k| <= 1."""
    n, p = float(n_samples), np.asarray(partition, dtype=float)
    least, most = np.minimum(n, p), np.maximum(n, p)
    gap = most - least - 1
    gamma = np.divide(least, gap, out=np.full(p.shape, np.inf), where=gap > 0)
    return least / p, gamma


@dataclass(frozen=True)
class Moments:
    """(rho, C, beta) for one task; C is diagonal plus rows of equal entries, or given in full.

    C = diag(c_diag) + c_row 1^T in closed form, so nothing is ever K x K; sampled moments have the
    full ``C`` between groups of nodes of equal size, and ``stderr`` is the largest standard error
    of any sampled moment, relative to the largest moment of its kind.
    """

    rho: Array
    beta: Array
    c_diag: Array
    c_row: Array | None = None
    group: Array | None = None  # which size each node has, where C is between sizes
    C: Array | None = None
    stderr: float = 0.0

    @property
    def finite(self) -> bool:
        return bool(np.all(np.isfinite(self.beta)))

    def spread(self, d: Array) -> Array:
        """C d."""
        if self.C is None:
            assert self.c_row is not None
            return self.c_diag * d + self.c_row * d.sum()
        assert self.group is not None
        totals = np.bincount(self.group, weights=d, minlength=len(self.C))
        return self.c_diag * d + (self.C @ totals)[self.group]


def moments(
    n_samples: int,
    partition: Sequence[int],
    n_rounds: int = 1,
    damping: float | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> Moments:
    """Closed form under the paper's Assumption 2 or 3, sampled otherwise.

    ``damping`` None is the exact solver; a number is mu of the damped one. The closed form holds
    for one exact round (Assumption 3), or any number of them where every p_k > n + 1 (Assumption
    2). Sampled moments are cached and state their ``stderr``; ``samples`` None takes 16 draws of a
    large A, which averages over itself, and up to 1000 of a small one. Where |n - p_k| <= 4 the
    exact solver's moments have infinite variance, and no number of draws makes them reliable.
    """
    check_sizes(n_samples, partition)
    if samples is None:
        rows = min(n_samples, sum(partition))
        samples = int(np.clip(SAMPLED_ENTRIES / (rows * sum(partition)), 16, 1000))
    if samples < 2:
        raise ValueError(f"samples={samples}: a standard error needs at least 2")
    if n_rounds < 1:
        raise ValueError(f"n_rounds={n_rounds} must be at least 1")
    if damping is not None and damping <= 0:
        raise ValueError(f"damping={damping} must be positive, or None for the exact solver")
    sizes = np.asarray(partition)
    exact = damping is None
    if exact and (n_rounds == 1 or np.all(sizes > n_samples + 1)):
        return _closed(n_samples, sizes)
    if exact and np.any(np.abs(sizes - n_samples) <= 1):
        return _closed(n_samples, sizes)  # infinite, whatever the rounds
    return _sampled(int(n_samples), tuple(sizes.tolist()), n_rounds, damping, samples, seed)


def check_sizes(n_samples: float, partition: Sequence[int]) -> None:
    if not n_samples >= 1 or int(n_samples) != n_samples:
        raise ValueError(
            f"n_samples={n_samples}: a task needs a whole number of samples, 1 or more"
        )
    sizes = np.asarray(partition)
    if len(sizes) == 0 or sizes.min() < 1 or np.any(sizes != np.floor(sizes)):
        raise ValueError("partition: every node needs a whole number of columns, 1 or more")


def _closed(n_samples: int, sizes: Array) -> Moments:
    r, gamma = r_and_gamma(n_samples, sizes)
    K = len(sizes)
    with np.errstate(invalid="ignore"):
        return Moments(rho=r / K, beta=gamma / K**2, c_diag=(r - gamma) / K**2, c_row=gamma / K**2)


@lru_cache(maxsize=256)
def _sampled(
    n: int, sizes: tuple[int, ...], n_rounds: int, damping: float | None, samples: int, seed: int
) -> Moments:
    """Monte Carlo over A alone. Nodes of equal size are exchangeable, so they are averaged."""
    group = np.unique(sizes, return_inverse=True)[1]
    rng = np.random.default_rng([seed, n, n_rounds, len(sizes)])
    draws = [_draw(rng, n, sizes, group, n_rounds, damping) for _ in range(samples)]
    rho, beta, same, cross = (np.array([d[i] for d in draws]) for i in range(4))
    errors = [
        x.std(axis=0, ddof=1).max() / np.sqrt(samples) / max(np.abs(x.mean(axis=0)).max(), 1e-300)
        for x in (rho, beta, same, cross)
    ]
    C = cross.mean(axis=0)
    return Moments(
        rho=rho.mean(axis=0)[group],
        beta=beta.mean(axis=0)[group],
        c_diag=(same.mean(axis=0) - np.diag(C))[group],
        group=group,
        C=C,
        stderr=float(max(errors)),
    )


def _draw(
    rng: np.random.Generator,
    n: int,
    sizes: tuple[int, ...],
    group: Array,
    n_rounds: int,
    damping: float | None,
) -> tuple[Array, Array, Array, Array]:
    """One draw's rho, beta, C_kk and C_kj, averaged over nodes of equal size."""
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
    return rho / count, beta / count, same / count, cross


def gaussian_rows(rng: np.random.Generator, n: int, p: int) -> Array:
    """An n x p Gaussian matrix, or its triangular factor (Bartlett) where n > p."""
    if n <= p:
        return rng.standard_normal((n, p))
    R = np.triu(rng.standard_normal((p, p)), 1)
    R[np.diag_indices(p)] = np.sqrt(rng.chisquare(n - np.arange(p)))
    return R


def _local_solver(block: Array, ridge: float) -> Array:
    """(A^T A + ridge)^-1 A^T, or the pseudoinverse."""
    if ridge == 0:
        return np.linalg.pinv(block)
    n, p = block.shape
    if p <= n:
        return np.linalg.solve(block.T @ block + ridge * np.eye(p), block.T)
    return np.linalg.solve(block @ block.T + ridge * np.eye(n), block).T
