"""Losses: what the coordinator needs to know of them, elementwise over samples.

Everything here acts on predictions ``v`` and targets ``y`` of the same shape, (n, n_outputs).
A task's objective is the *sum* over its samples; the means that users see are taken in `metrics`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy.special import expit

from ..common.arrays import Array, column_dots, ratio
from ..common.checks import one_of

LEAST = 1e-12  # curvature of a sample, for the logarithm's sake
SMOOTHING = 5.0  # how far later tasks may move a prediction, as a standard deviation


class Loss(ABC):
    """A convex loss of predictions.

    ``smoothness`` is tau: the loss has a 1/tau-Lipschitz gradient per sample. ``quadratic`` says
    whether one step of Newton's method finds its minimum along a line, ``probabilistic`` whether
    expit(v) is the probability of a label.
    """

    smoothness: float
    quadratic: bool
    probabilistic: bool = False

    root: Array | None = None  # of the samples' weights, where they have any

    @abstractmethod
    def each(self, v: Array, y: Array) -> Array:
        """Of every sample and output."""

    def value(self, v: Array, y: Array) -> Array:
        """The sum over samples, one number per output."""
        return np.asarray(np.sum(self.each(v, y), axis=0))

    def plain(self, v: Array) -> Array:
        """Predictions as they are without weights."""
        return v

    @abstractmethod
    def descent(self, v: Array, y: Array) -> Array:
        """Minus the gradient with respect to v: for the squared loss, the residual y - v."""

    @abstractmethod
    def curvature(self, v: Array, y: Array) -> Array:
        """The second derivative with respect to v."""

    @abstractmethod
    def past_curvature(self, v: Array, shares: Array | None = None) -> Array | None:
        """What a task leaves behind: its curvature per sample at the predictions v.

        None where it is one. Several outputs share one memory: its curvature is their mean, in
        which each has its share (None: all the same).
        """

    @abstractmethod
    def dual_of_each(self, a: Array, y: Array) -> Array:
        """Minus the convex conjugate at -a, per sample; minus infinity outside of it."""

    def dual(self, a: Array, y: Array) -> Array:
        """The same, summed over samples."""
        return np.asarray(np.sum(self.dual_of_each(a, y), axis=0))

    @abstractmethod
    def dual_scale(
        self, g: Array, y: Array, most: Array, squares: Array, aligned: Array | float = 0.0
    ) -> Array:
        """A good s in [0, most] for dual(s g) + s aligned - s^2 squares / 2."""


class Squared(Loss):
    """(v - y)^2 / 2, the loss of the paper's equation for the training error; tau = 1."""

    smoothness = 1.0
    quadratic = True

    def each(self, v: Array, y: Array) -> Array:
        return np.asarray(0.5 * (v - y) ** 2)

    def descent(self, v: Array, y: Array) -> Array:
        return np.asarray(y - v)

    def curvature(self, v: Array, y: Array) -> Array:
        return np.ones_like(v)

    def past_curvature(self, v: Array, shares: Array | None = None) -> None:
        return None

    def dual_of_each(self, a: Array, y: Array) -> Array:
        return np.asarray(a * y - 0.5 * a**2)

    def dual_scale(
        self, g: Array, y: Array, most: Array, squares: Array, aligned: Array | float = 0.0
    ) -> Array:
        """The best one: the dual is a parabola in s."""
        return np.clip(ratio(column_dots(g, y) + aligned, column_dots(g, g) + squares), 0, most)


class Logistic(Loss):
    """ln(1 + exp(-y v)) for labels y in {-1, 1} (Section IV-F); tau = 4."""

    smoothness = 4.0
    quadratic = False
    probabilistic = True

    def each(self, v: Array, y: Array) -> Array:
        return np.logaddexp(0, -y * v)

    def descent(self, v: Array, y: Array) -> Array:
        return np.asarray(y * expit(-y * v))

    def curvature(self, v: Array, y: Array) -> Array:
        p = expit(v)
        return np.asarray(p * (1 - p))

    def past_curvature(self, v: Array, shares: Array | None = None) -> Array:
        """Smoothed over where later tasks may move the prediction, E s'(v + 5 e) with e ~ N(0, 1),
        and the geometric mean of all outputs', since they share one memory.

        At v itself the curvature of samples far on the right side vanishes, and what was easy
        would be forgotten first.
        """
        nodes, weights = np.polynomial.hermite_e.hermegauss(21)
        smooth = np.zeros_like(v)
        for e, share in zip(nodes, weights / weights.sum(), strict=True):
            smooth += share * self.curvature(v + SMOOTHING * e, v)
        return np.exp(np.average(np.log(np.maximum(smooth, LEAST)), axis=1, weights=shares))

    def dual_of_each(self, a: Array, y: Array) -> Array:
        """The entropy of y a, which lies between 0 and 1."""
        h = y * a
        with np.errstate(divide="ignore", invalid="ignore"):
            each = -h * np.log(h) - (1 - h) * np.log1p(-h)
        return np.where((h > 0) & (h < 1), each, np.where((h == 0) | (h == 1), 0.0, -np.inf))

    def dual_scale(
        self, g: Array, y: Array, most: Array, squares: Array, aligned: Array | float = 0.0
    ) -> Array:
        """As far as allowed: at the optimum of the task that is the optimum of the dual."""
        return most


class Weighed(Loss):
    """sum_i w_i loss(v_i / r_i, y_i), r the roots of the weights w, for predictions v of rows that
    have been multiplied by r: as smooth as the loss itself. Rows of weight zero count for nothing.
    """

    def __init__(self, loss: Loss, root: Array):
        self.loss, self.root = loss, root
        self.smoothness, self.quadratic = loss.smoothness, loss.quadratic
        self.probabilistic = loss.probabilistic
        self._r, self._w = root[:, None], root[:, None] ** 2
        self._inverse = np.divide(1.0, self._r, out=np.zeros_like(self._r), where=self._r > 0)

    def each(self, v: Array, y: Array) -> Array:
        return np.asarray(self._w * self.loss.each(self._inverse * v, y))

    def plain(self, v: Array) -> Array:
        return np.asarray(self._inverse * v).astype(v.dtype)

    def descent(self, v: Array, y: Array) -> Array:
        return np.asarray(self._r * self.loss.descent(self._inverse * v, y)).astype(v.dtype)

    def curvature(self, v: Array, y: Array) -> Array:
        return self.loss.curvature(self._inverse * v, y)

    def past_curvature(self, v: Array, shares: Array | None = None) -> Array | None:
        return self.loss.past_curvature(self._inverse * v, shares)

    def dual_of_each(self, a: Array, y: Array) -> Array:
        return np.asarray(self._w * self.loss.dual_of_each(self._inverse * a, y))

    def dual_scale(
        self, g: Array, y: Array, most: Array, squares: Array, aligned: Array | float = 0.0
    ) -> Array:
        return self.loss.dual_scale(g, self._r * y, most, squares, aligned)


LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic()}


def get_loss(name: str) -> Loss:
    """The loss of that name.

    >>> get_loss("logistic").smoothness
    4.0
    """
    return LOSSES[one_of("loss", name, LOSSES)]
