"""Does the error stay bounded as tasks keep coming? The exact test, and the paper's conditions."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.arrays import Array
from ..sizes import block_sizes, samples_per_task
from .moments import moments


def spectral_radius(
    n_samples: int,
    partition: Sequence[int] | Array,
    n_rounds: int = 1,
    damping: float | None = None,
    samples: int | None = None,
) -> float:
    """Below 1: the error stays bounded for constant n, whatever the tasks; at 1 or above it grows.

    The radius of s -> (I - 2 diag(rho)) s + C s, the homogeneous part of the recursion. Necessary
    and sufficient, where the inequalities of Theorem 2 are only sufficient. In closed form the
    matrix is diagonal plus rank one and non-negative, so its radius is the largest root of a
    scalar secular equation: O(K) an evaluation. Infinite where |n - p_k| <= 1. The arguments are
    those of `moments`.

    Parameters
    ----------
    n_samples, partition, n_rounds, damping, samples : as in `moments`.

    Returns
    -------
    The radius.

    Examples
    --------
    >>> round(spectral_radius(n_samples=15, partition=[20, 20]), 3)
    1.375
    """
    m = moments(n_samples, partition, n_rounds, damping, samples)
    return m.radius() if m.finite else float("inf")


def theorem_2_condition(
    n_samples: int, partition: Sequence[int] | Array, printed: bool = False
) -> bool:
    """Theorem 2's sufficient condition for |w|^2_H to vanish as T grows.

    ``printed`` takes the paper's second inequality as it stands, with p_min in the place of p_max;
    it is wrong for K >= 3 and unequal blocks (docs/errata.md).

    Parameters
    ----------
    n_samples, partition : n, and the block sizes p_k.
    printed : as the paper has it.

    Returns
    -------
    Whether it holds.

    Examples
    --------
    >>> theorem_2_condition(15, [4] * 10), theorem_2_condition(15, [20, 20])
    (True, False)
    """
    n, sizes = int(samples_per_task(n_samples, 1)[0]), block_sizes(partition)
    K, least, most = len(sizes), int(sizes.min()), int(sizes.max())
    share = (K - 1) / (2 * K - 1)
    below = n < least - share * most - 1
    above = n > most + share * (least if printed else most) + 1
    return bool(below or above)
