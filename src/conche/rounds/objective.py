"""A task's objective in prediction space, and the best step along a direction of it."""

from __future__ import annotations

import numpy as np

from ..common.arrays import Array, column_dots, ratio
from .losses import Loss

FARTHEST = 100.0  # that a prediction may move in one step of a line search; exp(-100) is nothing


class Objective:
    """The task's loss, and below it the past's rows: squares around the old estimate."""

    def __init__(self, loss: Loss, y: Array):
        self.loss, self.y, self.n = loss, y, len(y)

    def value(self, v: Array) -> Array:
        """The sum over all rows, one number per output."""
        below = np.sum(v[self.n :] ** 2, axis=0)
        return np.asarray(self.loss.value(v[: self.n], self.y) + 0.5 * below)

    def value_at(self, v: Array, g: Array) -> Array:
        """The same where the descent direction g is known: half its squares, if the loss is."""
        return 0.5 * column_dots(g, g) if self.loss.quadratic else self.value(v)

    def descent(self, v: Array) -> Array:
        """Minus the gradient with respect to v."""
        top = self.loss.descent(v[: self.n], self.y)
        return top if len(v) == self.n else np.concatenate([top, -v[self.n :]])

    def curvature(self, v: Array) -> Array:
        """The second derivative with respect to v."""
        top = self.loss.curvature(v[: self.n], self.y)
        return top if len(v) == self.n else np.concatenate([top, np.ones_like(v[self.n :])])

    def best_step(self, v: Array, g: Array, Aq: Array, qPq: Array, dPq: Array) -> Array:
        """min over a of  value(v + a Aq) + a d.Pq + a^2/2 q.Pq,  exactly; no message is needed.

        g is the descent direction at v. Newton's method in one dimension per output. A quadratic
        loss needs one step; for others each step is halved until the objective falls, so that
        rounds are monotone.
        """

        def total(a: Array) -> Array:
            return self.value(v + a * Aq) + a * dPq + 0.5 * a**2 * qPq

        def newton(a: Array) -> Array:
            here = v + a * Aq
            slope = dPq + a * qPq - column_dots(self.descent(here), Aq)
            return ratio(-slope, qPq + column_dots(self.curvature(here) * Aq, Aq))

        if self.loss.quadratic:  # Newton's step from here, whose curvature is one
            return ratio(column_dots(g, Aq) - dPq, qPq + column_dots(Aq, Aq))
        a = np.zeros(v.shape[1])
        best = total(a)
        rounding = 4 * float(np.finfo(np.float64).eps)  # the value is no finer, Newton's step is
        # far from the boundary the curvature vanishes, and Newton's step explodes
        least = 1e3 * FARTHEST / float(np.finfo(Aq.dtype).max)  # no step is beyond the numbers
        longest = FARTHEST / np.maximum(np.abs(Aq).max(axis=0, initial=0.0), least)
        for _ in range(25):
            move = np.clip(newton(a), -longest, longest)
            for _ in range(30):
                worse = ~(total(a + move) <= best + rounding * np.abs(best))
                if not np.any(worse):
                    break
                move = np.where(worse, move / 2, move)
            move = np.where(worse, 0.0, move)
            a = a + move
            best = total(a)
            if np.all(np.abs(move) <= 1e-10 * np.abs(a)):
                break
        return a
