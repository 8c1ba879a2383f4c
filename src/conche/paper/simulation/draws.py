"""The random part of a batch of trials; axis 0 is always the trial.

One draw serves every number of nodes, similarity, noise level and number of tasks that shares its
shape.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...common.arrays import Array
from ...tasks import correlated, toeplitz_norm
from ..gaussian import gaussian_rows
from .model import Generators, Model


class Reduced(NamedTuple):
    """A batch of one task's data, up to a rotation of its samples, which changes nothing.

    Where the task is tall only the triangular factor of A is drawn (Bartlett); the noise outside
    the columns' span matters to the training error alone, and only by its squared length.
    """

    R: Array  # trials x min(n, p) x p
    noise: Array  # trials x min(n, p), of unit variance
    outside: Array  # trials: squared length of the noise that no estimate can reach


def reduced_task(model: Model, t: int, rngs: Generators) -> Reduced:
    """Task t of every trial."""
    n, p = model.n_samples[t], model.n_features
    R = np.stack([gaussian_rows(rng, n, p) for rng in rngs])
    noise = np.stack([rng.standard_normal(R.shape[1]) for rng in rngs])
    outside = np.array([rng.chisquare(n - p) if n > p else 0.0 for rng in rngs])
    return Reduced(correlated(R, model.correlation), noise, outside)


class Unknowns:
    """The tasks' unknowns, normalised as in Section IV: one draw for every ``n_shared``."""

    def __init__(self, model: Model, rngs: Generators):
        T, p = model.n_tasks, model.n_features
        self.trials = len(rngs)
        self.given = model.weights
        if self.given is None:
            self.common = np.stack([rng.standard_normal(p) for rng in rngs])
            self.own = np.stack([rng.standard_normal((T, p)) for rng in rngs])

    def of(self, n_shared: int) -> Array:
        """W: trials x T x p."""
        if self.given is not None:
            return np.broadcast_to(self.given, (self.trials, *self.given.shape))
        p = self.own.shape[-1]
        W = self.own.copy()
        W[..., :n_shared] = _scaled(self.common[:, None, :n_shared], n_shared / p)
        W[..., n_shared:] = _scaled(W[..., n_shared:], 1 - n_shared / p)
        return W


def _scaled(x: Array, squared_norm: float) -> Array:
    norm = np.linalg.norm(x, axis=-1, keepdims=True)
    return x * (np.sqrt(squared_norm) / np.where(norm > 0, norm, 1.0))


def distances(w: Array, W: Array, correlation: float) -> Array:
    """|w - w*_s|^2 for every s, weighted by the features' covariance: w ... x p, W ... x T x p."""
    return toeplitz_norm(w[..., None, :] - W, correlation)
