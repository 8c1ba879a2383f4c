"""A task's objective in prediction space, and the best step along a direction of it."""

from __future__ import annotations

import numpy as np

from ..common.arrays import Array, column_dots, ratio
from .losses import Loss

FARTHEST = 100.0  # that a prediction may move in a line search's first step; exp(-100) is nothing
FLAT = 1e-8  # of the first slope along a direction: where a line search ends
MOST_TRIED = 100  # steps of a line search


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

        g is the descent direction at v. A quadratic loss needs one of Newton's steps. For others
        the slope, which grows with a, is brought to zero: by Newton's method between the farthest
        point where it is known to be negative and the nearest where it is positive, by halving what
        lies between where that does not bring it down. Values are of no use for it: close to the
        minimum they differ by less than rounding, the slope does not.
        """
        slope = dPq - column_dots(g, Aq)
        if self.loss.quadratic:  # whose curvature is one
            return ratio(-slope, qPq + column_dots(Aq, Aq))
        a, low, high = (
            np.zeros_like(slope),
            np.full_like(slope, -np.inf),
            np.full_like(slope, np.inf),
        )
        here, last = v, np.full_like(slope, np.inf)
        eps = float(np.finfo(Aq.dtype).eps)
        rounding = eps * np.sqrt(column_dots(g, g) * column_dots(Aq, Aq))
        enough = max(FLAT, 4 * eps) * np.abs(slope) + rounding
        # far from the boundary the curvature vanishes, and Newton's step explodes
        most = 1e-3 * float(np.finfo(Aq.dtype).max)  # no step is beyond the numbers
        longest = FARTHEST / np.maximum(np.abs(Aq).max(axis=0, initial=0.0), FARTHEST / most)
        for _ in range(MOST_TRIED):
            steep = np.abs(slope) > enough
            if not np.any(steep):
                break
            low, high = np.where(slope < 0, a, low), np.where(slope > 0, a, high)
            bend = qPq + column_dots(self.curvature(here) * Aq, Aq)
            tried = a + np.clip(ratio(-slope, bend), -longest, longest)
            between = np.isfinite(high - low)
            slow = between & (np.abs(slope) > 0.5 * last)
            inside = (tried > low) & (tried < high) & ~slow
            halfway = 0.5 * np.where(between, low, a) + 0.5 * np.where(between, high, a)
            tried = np.where(inside, tried, halfway)
            if np.all(~steep | (np.abs(tried - a) <= eps * np.abs(a))):
                break
            longest = np.minimum(2 * longest, most)
            a, last = np.where(steep, tried, a), np.abs(slope)
            here = v + a * Aq
            slope = dPq + a * qPq - column_dots(self.descent(here), Aq)
        return a
