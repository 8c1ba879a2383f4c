"""Does the error stay bounded as tasks keep coming? The exact test, and the paper's conditions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq

from .moments import Array, check_sizes, moments, r_and_gamma


def spectral_radius(
    n_samples: int,
    partition: Sequence[int],
    n_rounds: int = 1,
    damping: float | None = None,
    samples: int | None = None,
) -> float:
    """Below 1: the error stays bounded for constant n, whatever the tasks; at 1 or above it grows.

    The radius of s -> (I - 2 diag(rho)) s + C s, the homogeneous part of the recursion. Necessary
    and sufficient, where the inequalities of Theorem 2 are only sufficient. In closed form the
    matrix is diagonal plus rank one and non-negative, so its radius is the largest root of a
    scalar secular equation: O(K) an evaluation. Infinite where |n - p_k| <= 1.
    """
    check_sizes(n_samples, partition)
    sizes, count = np.unique(np.asarray(partition), return_counts=True)
    m = moments(n_samples, list(partition), n_rounds, damping, samples)
    if not m.finite:
        return float("inf")
    if m.C is not None:  # between sizes: one equation per size, as equal nodes stay equal
        assert m.group is not None
        first = np.unique(m.group, return_index=True)[1]
        matrix = np.diag(1 - 2 * m.rho[first] + m.c_diag[first]) + m.C * count
        return float(np.max(np.abs(np.linalg.eigvals(matrix))))
    K = len(partition)
    r, gamma = r_and_gamma(n_samples, sizes)
    return _largest_root(1 + (r * (1 - 2 * K) - gamma) / K**2, count * gamma / K**2)


def _largest_root(d: Array, b: Array) -> float:
    """The largest eigenvalue of diag(d) + 1 b^T with b > 0:  sum b / (x - d) = 1, beyond max d."""
    top = float(d.max())
    upper = top + float(b.sum())  # there the sum is at most 1
    lower = top + float(b[d == top].sum())  # there it is at least 1
    if upper - lower <= 1e-15 * max(1.0, abs(upper)):
        return lower

    def secular(x: float) -> float:
        return float(np.sum(b / (x - d))) - 1

    return float(brentq(secular, lower, upper, xtol=1e-15, rtol=8.9e-16))


def theorem_2_condition(n_samples: int, partition: Sequence[int], printed: bool = False) -> bool:
    """Theorem 2's sufficient condition for |w|^2_H to vanish as T grows.

    ``printed`` takes the paper's second inequality as it stands, with p_min in the place of p_max;
    it is wrong for K >= 3 and unequal blocks (docs/errata.md).
    """
    check_sizes(n_samples, partition)
    K, least, most = len(partition), min(partition), max(partition)
    share = (K - 1) / (2 * K - 1)
    below = n_samples < least - share * most - 1
    above = n_samples > most + share * (least if printed else most) + 1
    return bool(below or above)
