"""Theorem 1 for many numbers of nodes at once, where blocks are even and tasks share unknowns.

`generalization_error` carries one number per node. Of nodes with blocks of equal size, of which as
many columns are shared, all carry the same; and even blocks have two sizes, and at most one of them
is shared in part. So six numbers per network are enough, however many nodes it has, and all the
networks of a plan go through the recursion together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from .moments import r_and_gamma


class Kinds(NamedTuple):
    """Of every network (rows) the six kinds of nodes: of either size, shared, in part, not."""

    count: Array
    size: Array
    shared: Array  # columns of a node that all tasks share

    @classmethod
    def of(cls, n_features: int, nodes: Sequence[int], n_shared: float) -> Kinds:
        """Even blocks, of which the first hold the shared columns."""
        K = np.asarray(nodes, dtype=float)[:, None]
        small = np.floor(n_features / K)
        many = n_features - small * K  # blocks of one column more, which come first
        in_large = np.minimum(n_shared, many * (small + 1))
        kinds = []
        for size, count, common in (
            (small + 1, many, in_large),
            (small, K - many, n_shared - in_large),
        ):
            full = np.minimum(np.floor(common / size), count)
            rest = common - full * size
            part = ((rest > 0) & (full < count)).astype(float)
            kinds += [(full, size, size), (part, size, rest), (count - full - part, size, 0 * K)]
        return cls(
            *(np.hstack([np.broadcast_to(x, K.shape) for x in y]) for y in zip(*kinds, strict=True))
        )


def even_errors(
    n_features: int,
    nodes: Sequence[int],
    n_samples: Array,
    n_shared: float,
    noise_var: float,
    energy: float = 1.0,
    drift: float = 0.0,
) -> Array:
    """G_T(w_t) of one exact round a task: networks x T, as `generalization_error` has them.

    Parameters
    ----------
    n_features, nodes : p, and the numbers of nodes that share its columns evenly.
    n_samples : of every task.
    n_shared, energy, drift : as `Similarity.shared` has them.

    >>> even_errors(32, [1, 4], np.array([64] * 4), 24, 0.01).round(3)
    array([[0.395, 0.395, 0.395, 0.395],
           [0.694, 0.502, 0.386, 0.314]])
    """
    T, p = len(n_samples), float(n_features)
    kinds = Kinds.of(n_features, nodes, n_shared)
    count, K = kinds.count, np.asarray(nodes, dtype=float)[:, None]
    common = energy * kinds.shared / p
    own = energy * (kinds.size - kinds.shared) / p
    step = drift * kinds.size / p
    settled = T * (energy + noise_var) + drift * T * (T - 1) / 2
    known = {int(n): _moments(int(n), kinds, K) for n in np.unique(n_samples)}
    s, sums, early, late = np.zeros((4, *count.shape))  # and the three of `SharedSimilarity`
    lost = np.zeros(len(K), dtype=bool)
    out = np.empty((len(K), T))
    with np.errstate(over="ignore", invalid="ignore"):  # what diverges, diverges
        for t, n in enumerate(n_samples.tolist()):
            rho, beta, c_diag, square = known[n]
            x = common * sums + step * early
            d = s - 2 * x + common + own + t * step
            spread = c_diag * d + beta * np.sum(count * d, axis=1, keepdims=True)
            s = s + 2 * rho * (x - s) + spread + noise_var * beta
            sums = (1 - rho) * sums + rho
            early = (1 - rho) * early + rho * t
            late = (1 - rho) * late + rho * (t * (t + 1) / 2 + t * (T - 1 - t))
            met = (T * common + own) * sums + step * late
            lost = lost | square
            error = np.sum(count * (s - 2 * met / T), axis=1) + settled / T
            out[:, t] = np.where(lost, np.inf, error)
    return out


def _moments(n: int, kinds: Kinds, K: Array) -> tuple[Array, Array, Array, Array]:
    """rho, beta and C's diagonal of every kind of node; and which networks have nearly square
    blocks, whose moments are infinite."""
    r, gamma = r_and_gamma(n, np.maximum(kinds.size, 1))
    square = np.any(~np.isfinite(gamma) & (kinds.count > 0), axis=1)
    gamma = np.where(np.isfinite(gamma), gamma, 0.0)
    return r / K, gamma / K**2, (r - gamma) / K**2, square


def even_radii(n_features: int, nodes: Sequence[int], n_samples: int) -> Array:
    """`spectral_radius` of even blocks, one for every number of nodes.

    With two sizes the secular equation b_1/(x - d_1) + b_2/(x - d_2) = 1 is a quadratic one.

    >>> even_radii(40, [2], n_samples=15)
    array([1.375])
    """
    K = np.asarray(nodes, dtype=float)[:, None]
    kinds = Kinds.of(n_features, nodes, 0.0)
    count = np.stack([kinds.count[:, :3].sum(axis=1), kinds.count[:, 3:].sum(axis=1)], axis=1)
    alone = Kinds(count, kinds.size[:, ::3], kinds.shared[:, ::3])
    rho, beta, c_diag, square = _moments(n_samples, alone, K)
    d, b = 1 - 2 * rho + c_diag, count * beta
    d = np.where(count > 0, d, d[:, ::-1])  # a size that no block has changes nothing
    half = np.sum(d + b, axis=1) / 2
    product = d[:, 0] * d[:, 1] + b[:, 0] * d[:, 1] + b[:, 1] * d[:, 0]
    root = half + np.sqrt(np.maximum(half**2 - product, 0.0))
    return np.where(square, np.inf, root)


def even_limits(
    n_features: int,
    nodes: Sequence[int],
    n_samples: int,
    n_shared: float,
    noise_var: float,
    energy: float = 1.0,
) -> Array:
    """`endless_error` of even blocks, one for every number of nodes.

    >>> even_limits(32, [1, 4], 64, 24, 0.01).round(3)
    array([0.52 , 0.316])
    """
    K, p = np.asarray(nodes, dtype=float)[:, None], float(n_features)
    kinds = Kinds.of(n_features, nodes, n_shared)
    count, common = kinds.count, energy * kinds.shared / p
    own = energy * (kinds.size - kinds.shared) / p
    rho, beta, c_diag, _ = _moments(n_samples, kinds, K)
    apart = own - common
    spread = c_diag * apart + beta * np.sum(count * apart, axis=1, keepdims=True)
    free = 2 * rho - c_diag
    u, v = (2 * rho * common + spread + noise_var * beta) / free, beta / free
    reach = np.sum(count * v, axis=1)
    with np.errstate(divide="ignore"):  # where the radius is 1
        s = np.sum(count * u, axis=1) + reach * np.sum(count * u, axis=1) / (1 - reach)
    error = s + np.sum(count * apart, axis=1) + noise_var
    return np.where(even_radii(n_features, nodes, n_samples) < 1, error, np.inf)
