"""Losses: value, descent direction, curvature and smoothness, elementwise over samples.

Everything here acts on predictions ``v`` and targets ``y`` of the same shape, (n, n_outputs).
A task's objective is the *sum* over its samples; the means that users see are taken in `metrics`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[Any]


class Loss(Protocol):
    """``smoothness`` is tau: the loss has a 1/tau-Lipschitz gradient per sample."""

    name: str
    smoothness: float

    def value(self, v: Array, y: Array) -> Array:
        """The sum over samples, one number per output."""

    def descent(self, v: Array, y: Array) -> Array:
        """Minus the gradient with respect to v: for the squared loss, the residual y - v."""

    def curvature(self, v: Array, y: Array) -> Array:
        """The second derivative with respect to v."""


class Squared:
    """(v - y)^2 / 2, the loss of the paper's equation for the training error; tau = 1."""

    name = "squared"
    smoothness = 1.0

    def value(self, v: Array, y: Array) -> Array:
        return np.asarray(0.5 * np.sum((v - y) ** 2, axis=0))

    def descent(self, v: Array, y: Array) -> Array:
        return np.asarray(y - v)

    def curvature(self, v: Array, y: Array) -> Array:
        return np.ones_like(v)


class Logistic:
    """ln(1 + exp(-y v)) for labels y in {-1, 1} (Section IV-F); tau = 4."""

    name = "logistic"
    smoothness = 4.0

    def value(self, v: Array, y: Array) -> Array:
        return np.asarray(np.sum(np.logaddexp(0, -y * v), axis=0))

    def descent(self, v: Array, y: Array) -> Array:
        return np.asarray(y * expit(-y * v))

    def curvature(self, v: Array, y: Array) -> Array:
        p = expit(v)
        return np.asarray(p * (1 - p))


LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic()}


def get_loss(name: str) -> Loss:
    if name not in LOSSES:
        raise ValueError(f"loss={name!r} must be one of {', '.join(map(repr, LOSSES))}")
    return LOSSES[name]
