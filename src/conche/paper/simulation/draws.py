"""The random part of a batch of trials; axis 0 is always the trial.

One draw serves every number of nodes, similarity, noise level and number of tasks that shares its
shape.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from array_api_compat import array_namespace, is_numpy_array

from ...common.arrays import Array
from ...common.device import Device, Draws
from ...common.linear import transposed
from ...tasks import correlated, toeplitz_norm
from ..gaussian import gaussian_batch
from .model import Model


class Reduced(NamedTuple):
    """A batch of one task's data, up to a rotation of its samples, which changes nothing.

    Where the task is tall only the triangular factor of A is drawn (Bartlett); the noise outside
    the columns' span matters to the training error alone, and only by its squared length.
    """

    R: Array  # trials x min(n, p) x p
    noise: Array  # trials x min(n, p), of unit variance
    outside: Array  # trials: squared length of the noise that no estimate can reach
    triangular: bool  # whether R is, above the diagonal


def reduced_task(model: Model, t: int, draws: Draws, device: Device) -> Reduced:
    """Task t of every trial."""
    n, p = model.n_samples[t], model.n_features
    R = gaussian_batch(draws, device.xp, n, p)
    noise = draws.normal((R.shape[1],))
    outside = device.put(np.zeros(len(draws)))
    if n > p:
        outside = draws.chisquare(np.array([n - p]))[:, 0]
    triangular = n > p and model.correlation == 0
    return Reduced(_correlated(R, model.correlation, device), noise, outside, triangular)


class Unknowns:
    """The tasks' unknowns, normalised as in Section IV: one draw for every ``n_shared``."""

    def __init__(self, model: Model, draws: Draws, device: Device):
        T, p = model.n_tasks, model.n_features
        self.trials, self.xp = len(draws), device.xp
        self.given = None if model.weights is None else device.put(model.weights)
        if self.given is None:
            self.common = draws.normal((p,))
            self.own = draws.normal((T, p))

    def of(self, n_shared: int) -> Array:
        """W: trials x T x p."""
        if self.given is not None:
            return self.xp.broadcast_to(self.given, (self.trials, *self.given.shape))
        trials, T, p = self.own.shape
        shared = _scaled(self.common[:, None, :n_shared], n_shared / p)
        shared = self.xp.broadcast_to(shared, (trials, T, n_shared))
        own = _scaled(self.own[:, :, n_shared:], 1 - n_shared / p)
        return self.xp.concat([shared, own], axis=-1)


def _scaled(x: Array, squared_norm: float) -> Array:
    xp = array_namespace(x)
    norm = xp.linalg.vector_norm(x, axis=-1, keepdims=True)
    return x * (squared_norm**0.5 / xp.where(norm > 0, norm, xp.ones_like(norm)))


def distances(w: Array, W: Array, correlation: float) -> Array:
    """|w - w*_s|^2 for every s, weighted by the features' covariance: w ... x p, W ... x T x p."""
    off = w[..., None, :] - W
    if is_numpy_array(off):
        return toeplitz_norm(off, correlation)
    xp = array_namespace(off)
    if correlation == 0:
        return xp.sum(off * off, axis=-1)
    root = _factor(off, correlation)
    return xp.sum((off @ root) ** 2, axis=-1)


def _correlated(R: Array, correlation: float, device: Device) -> Array:
    if correlation == 0 or is_numpy_array(R):
        return correlated(R, correlation)
    return R @ transposed(_factor(R, correlation))


def _factor(like: Array, correlation: float) -> Array:
    """L with L L^T the covariance correlation**|i-j|: where a filter would take a step a column."""
    xp = array_namespace(like)
    return xp.asarray(_root(like.shape[-1], correlation), dtype=like.dtype, device=like.device)


@lru_cache(2)
def _root(p: int, correlation: float) -> Array:
    return np.ascontiguousarray(correlated(np.eye(p), correlation).T)
