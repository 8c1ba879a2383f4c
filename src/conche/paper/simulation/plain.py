"""Trials without any shortcut: every matrix is drawn, and the estimator itself learns it."""

from __future__ import annotations

import warnings

import numpy as np

from ...common.arrays import Array
from ...common.device import Device, NumpyDraws
from ...errors import NearSquareWarning
from ...estimators import CoCoARegressor
from ...tasks import correlated
from .draws import Unknowns, distances
from .model import Model


def plain(model: Model, draws: NumpyDraws, device: Device) -> Array:
    """|w_t - w*_s|^2 (trials x T x T), one generator per trial; on the processor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NearSquareWarning)  # who simulates them wants to see them
        return np.stack([_one(model, draws, i, device) for i in range(len(draws))])


def _one(model: Model, draws: NumpyDraws, i: int, device: Device) -> Array:
    rng = draws.rngs[i]
    W = Unknowns(model, draws.only(i), device).of(model.n_shared)[0]
    learner = CoCoARegressor(partition=list(model.partition), n_rounds=model.n_rounds)
    out = []
    for t, n in enumerate(model.n_samples):
        A = correlated(rng.standard_normal((n, model.n_features)), model.correlation)
        y = A @ W[t] + np.sqrt(model.noise_var[t]) * rng.standard_normal(n)
        learner.partial_fit(A, y)
        out.append(distances(learner.coef_, W, model.correlation))
    return np.array(out)
