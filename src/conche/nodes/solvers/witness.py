"""What a node answers to say how far the estimate is from the offline one.

E is what was cut of the past between blocks; for random directions o all of H o is kept, so that
E o is known (`conche.estimators.gap`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from ...common.arrays import Array, Block, column_dots, joined, positive, repeated, space, zeros
from .base import Context
from .probes import Probes
from .ridge import Units

if TYPE_CHECKING:
    from ..stack import Stack


class Witness(ABC):
    """A node's answers; coordinates are those of its block."""

    A: Block  # the task's rows
    V: Array  # the directions so far
    new: Array  # and merged with the task's rows
    E: Array | None  # what remains of the block's curvature beside V
    each: tuple[float, ...]  # strengths of the ridge
    wide: bool  # whether of E the diagonal alone is known
    units: Units
    probes: Probes
    stack: Stack | None
    lost: Array  # E o for every probe o
    constant: Array  # the last weight at the task's start
    context: Context

    @abstractmethod
    def image(self, z: Array) -> Array:
        """What z does to the rows."""

    @abstractmethod
    def inverse(self, r: Array) -> Array:
        """D^-1 r, for every strength."""

    @abstractmethod
    def penalty(self, d: Array, strength: Array | float | None = None) -> Array:
        """P d, with another ridge than the strengths' if there is one."""

    @abstractmethod
    def wide_leverage(self, some: Block, t: Array) -> Array:
        """a.C^-1 a for some rows a, where D is diagonal."""

    def probe(self, d: Array) -> Array:
        """What the probes do to the rows."""
        return self.image(self.probes.o)

    def witness(self, d: Array, seen: Array) -> Array:
        """E o for every probe o, E what was cut between blocks before this task; ``seen`` is what
        all nodes' parts of o do to the rows. Answers, in rows: o.E d; |d|^2; |F_k d|, where
        E = F^T F; |b|^2 for the b that this node owes; the intercept's square, or 0; V' b."""
        n, xp = self.A.shape[0], space(d)
        within = self.penalty(self.probes.o, strength=0.0)
        self.lost = self.probes.Ho - self.V.T @ seen[n:, :] - within
        own = self.penalty(d, strength=0.0) if self.E is not None else xp.zeros_like(d)
        self.probes = self.probes.after(self.A.T @ seen[:n, :], own)
        owed = self.probes.owed
        rows = (
            self.lost.T @ d,
            column_dots(d, d)[None, :],
            xp.sum(positive(self._by_part(d, own)) ** 0.5, axis=0, keepdims=True),
            column_dots(owed, owed)[None, :],
            (self.constant + d[-1:, :]) ** 2 * float(self.context.holds_intercept),
            self.new @ owed,
        )
        return joined(rows)

    def growth(self, d: Array) -> Array:
        """How far units have grown since the last task, at most."""
        change = 1.0 if self.units.change is None else float(np.max(self.units.change)) ** 2
        return np.array([max(change, 1.0)])

    def _by_part(self, d: Array, own: Array) -> Array:
        """d.E d of all parts that E is known of: columns, nodes, or the block."""
        if self.wide:
            return d * own
        if self.stack is not None:
            return column_dots(self.stack.split(d), self.stack.split(own))
        return column_dots(d, own)[None, :]

    def bent(self, d: Array) -> Array:
        """o.H o' and o.o' for all pairs of probes, H with this task."""
        o = self.probes.o
        return joined([o.T @ self.probes.Ho, o.T @ o])

    def cut(self, d: Array, t: Array) -> Array:
        """|E o|^2 and E o.C^-1 E o, over all probes, for every strength. Without t, V' D^-1 E o."""
        xp, known = space(self.lost), t.shape[0]
        if self.wide:
            found = self.wide_leverage(self.lost.T, t)
            squares = zeros(self.lost, len(self.each)) + xp.sum(self.lost**2)
            return xp.stack([squares, xp.sum(found, axis=1)]) if known else found
        x = repeated(self.lost, len(self.each))
        if not known:
            return self.new @ self.inverse(x)
        z = self.inverse(x - self.new.T @ t)
        dots = xp.stack([column_dots(x, x), column_dots(x, z)])
        return xp.sum(xp.reshape(dots, (2, len(self.each), -1)), axis=2)
