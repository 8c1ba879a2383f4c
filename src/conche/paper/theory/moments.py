"""The moments of one task's update: all that the generalization error needs of a solver.

One task is the affine map w' = w + B (y - A w). With isotropic Gaussian blocks every expectation
is a number per block:

    rho_k  = E tr(B_k A_k) / p_k         how much of the new task block k takes up
    C_kj   = E |B_k A_j|_F^2 / p_j       what block j's error does to block k
    beta_k = E |B_k|_F^2                 what noise does to block k
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...common.arrays import Array
from ...common.checks import whole
from ...errors import ParameterError
from ..sizes import block_sizes, samples_per_task
from .draws import draw_moments

SAMPLED_ENTRIES = 4e6  # of A, in all draws together
NEWTON = 200  # steps at most


def r_and_gamma(n_samples: float, partition: Sequence[int] | Array) -> tuple[Array, Array]:
    """r_k and gamma_k of the paper; gamma is infinite where |n - p_k| <= 1.

    Parameters
    ----------
    n_samples, partition : n, and the block sizes p_k.

    Returns
    -------
    Two arrays, one number per block each.

    Examples
    --------
    >>> r_and_gamma(15, [20, 5])
    (array([0.75, 1.  ]), array([3.75      , 0.55555556]))
    """
    n, p = float(n_samples), np.asarray(partition, dtype=float)
    least, most = np.minimum(n, p), np.maximum(n, p)
    gap = most - least - 1
    gamma = np.divide(least, gap, out=np.full(p.shape, np.inf), where=gap > 0)
    return least / p, gamma


@dataclass(frozen=True, eq=False)
class Moments(ABC):
    """(rho, C, beta) of one task. Nodes of equal size are alike: ``group`` says who is.

    ``c_diag`` is what C has on its diagonal beyond the entries that nodes of a group share.

    Examples
    --------
    >>> found = moments(15, [20, 20])
    >>> found.rho, found.finite, round(found.radius(), 3)
    (array([0.375, 0.375]), True, 1.375)
    """

    rho: Array
    beta: Array
    c_diag: Array
    group: Array  # of every node: nodes of equal size have the same number
    stderr: float = 0.0  # of sampled moments: the largest, relative to the largest of its kind

    @property
    def finite(self) -> bool:
        """False where some block is nearly square, |n - p_k| <= 1."""
        return bool(np.all(np.isfinite(self.beta)))

    @abstractmethod
    def spread(self, d: Array) -> Array:
        """C d: what the blocks' squared errors d do to every block."""

    @abstractmethod
    def radius(self) -> float:
        """The spectral radius of s -> (I - 2 diag(rho)) s + C s."""

    def _per_group(self) -> tuple[Array, Array, Array]:
        """The first node and the number of nodes of each group, and the first one's diagonal."""
        first = np.unique(self.group, return_index=True)[1]
        diagonal = (1 - 2 * self.rho + self.c_diag)[first]
        return first, np.bincount(self.group), diagonal


class ClosedMoments(Moments):
    """In closed form C = diag(c_diag) + beta 1^T, so nothing is ever K x K."""

    def spread(self, d: Array) -> Array:
        return self.c_diag * d + self.beta * d.sum()

    def radius(self) -> float:
        first, count, diagonal = self._per_group()
        return _largest_root(diagonal, count * self.beta[first])


@dataclass(frozen=True, eq=False, kw_only=True)
class SampledMoments(Moments):
    """Sampled moments: ``C`` in full, but between groups of nodes and not between nodes."""

    C: Array

    def spread(self, d: Array) -> Array:
        totals = np.bincount(self.group, weights=d, minlength=len(self.C))
        return self.c_diag * d + (self.C @ totals)[self.group]

    def radius(self) -> float:
        _, count, diagonal = self._per_group()  # equal nodes stay equal: one equation per group
        return float(np.max(np.abs(np.linalg.eigvals(np.diag(diagonal) + self.C * count))))


def moments(
    n_samples: int,
    partition: Sequence[int] | Array,
    n_rounds: int = 1,
    damping: float | None = None,
    samples: int | None = None,
    seed: int = 0,
) -> Moments:
    """Closed form under the paper's Assumption 2 or 3, sampled otherwise.

    The closed form holds for one exact round (Assumption 3), or any number of them where every
    p_k > n + 1 (Assumption 2). Sampled moments are cached and state their ``stderr``. Where
    |n - p_k| <= 4 the exact solver's moments have infinite variance, and no number of draws makes
    them reliable.

    Parameters
    ----------
    n_samples, partition : n, and the block sizes p_k.
    n_rounds : rounds per task.
    damping : None for the exact solver, or mu of the damped one.
    samples, seed : draws for sampled moments. None takes 16 draws of a large A, which averages
        over itself, and up to 1000 of a small one.

    Examples
    --------
    >>> moments(15, [20, 20]).rho
    array([0.375, 0.375])
    """
    n, sizes = int(samples_per_task(n_samples, 1)[0]), block_sizes(partition)
    p = int(sizes.sum())
    if samples is None:
        samples = int(np.clip(SAMPLED_ENTRIES / (min(n, p) * p), 16, 1000))
    whole("samples", samples, 2)  # fewer have no standard error
    whole("n_rounds", n_rounds)
    if damping is not None and not damping > 0:
        raise ParameterError(f"damping={damping!r} must be positive, or None for the exact solver")
    if damping is None:
        nearly_square = np.any(np.abs(sizes - n) <= 1)  # infinite, whatever the rounds
        if n_rounds == 1 or np.all(sizes > n + 1) or nearly_square:
            return closed_moments(n, sizes)
    return sampled_moments(n, tuple(sizes.tolist()), n_rounds, damping, samples, seed)


def closed_moments(n_samples: int, sizes: Array) -> ClosedMoments:
    """One exact round: the paper's r_k and gamma_k, put in place."""
    r, gamma = r_and_gamma(n_samples, sizes)
    K = len(sizes)
    group = np.unique(sizes, return_inverse=True)[1]
    return ClosedMoments(rho=r / K, beta=gamma / K**2, c_diag=(r - gamma) / K**2, group=group)


@lru_cache(maxsize=256)
def sampled_moments(
    n: int, sizes: tuple[int, ...], n_rounds: int, damping: float | None, samples: int, seed: int
) -> SampledMoments:
    """Monte Carlo over A alone. Nodes of equal size are exchangeable, so they are averaged."""
    group = np.unique(sizes, return_inverse=True)[1]
    rng = np.random.default_rng([seed, n, n_rounds, len(sizes)])
    draws = [draw_moments(rng, n, sizes, group, n_rounds, damping) for _ in range(samples)]
    rho, beta, same, cross = (np.array(values) for values in zip(*draws, strict=True))
    errors = [
        x.std(axis=0, ddof=1).max() / np.sqrt(samples) / max(np.abs(x.mean(axis=0)).max(), 1e-300)
        for x in (rho, beta, same, cross)
    ]
    C = cross.mean(axis=0)
    return SampledMoments(
        rho=rho.mean(axis=0)[group],
        beta=beta.mean(axis=0)[group],
        c_diag=(same.mean(axis=0) - np.diag(C))[group],
        group=group,
        stderr=float(max(errors)),
        C=C,
    )


def _largest_root(d: Array, b: Array) -> float:
    """The largest eigenvalue of diag(d) + 1 b^T with b > 0: sum b / (x - d) = 1, beyond max d."""
    top = float(d.max())
    upper = top + float(b.sum())  # there the sum is at most 1
    lower = top + float(b[d == top].sum())  # there it is at least 1
    if upper - lower <= 1e-15 * max(1.0, abs(upper)):
        return lower

    x = lower  # the sum is convex and falls: Newton's steps from here never pass the root
    for _ in range(NEWTON):
        each = b / (x - d)
        step = float((np.sum(each) - 1) / np.sum(each / (x - d)))
        x += max(step, 0.0)
        if step <= 1e-16 * abs(x):
            break
    return min(x, upper)
