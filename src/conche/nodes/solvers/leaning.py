"""How much samples bend their own predictions, where part of the past was cut.

That is a.T^-1 a for a sample a and the problem's own curvature T = B^T B + P. What is factorised is
C, which knows the merged directions alone. The coordinator runs conjugate gradients on T x = A^T u,
with C before it, for random signs u (`conche.network.principal`); here is a node's part of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ...common.arrays import Array, Block, column_dots, joined, like, repeated, rows_of, space

LEANING = 8  # random signs for every sample


class Leaning(NamedTuple):
    """Where conjugate gradients stand: what is left, the last direction and the next."""

    r: Array
    q: Array
    z: Array


class Leans(ABC):
    """A node's answers; coordinates are those of its block."""

    A: Block  # the task's rows
    new: Array  # V', the merged directions
    each: tuple[float, ...]  # strengths of the ridge
    seed: list[int]
    leaning: Leaning

    @abstractmethod
    def inverse(self, r: Array) -> Array:
        """D^-1 r, for every strength."""

    @abstractmethod
    def penalty(self, x: Array) -> Array:
        """P x."""

    @abstractmethod
    def times(self, x: Array) -> Array:
        """B x."""

    @abstractmethod
    def back(self, y: Array) -> Array:
        """B^T y."""

    def lean(self, d: Array, rows: Array) -> Array:
        """Begin to solve T x = A^T u, T the problem's curvature and u random signs of some samples;
        for every strength. Answers V' D^-1 r, as all of these do that change r."""
        rng = np.random.default_rng([*self.seed[:2], 2])  # the same on all nodes
        u = rng.choice([-1.0, 1.0], (rows.shape[0], LEANING))
        some = rows_of(self.A, rows)
        r = repeated(some.T @ like(some, u), len(self.each))
        nothing = space(r).zeros_like(r)
        self.leaning = Leaning(r, nothing, nothing)
        return self.new @ self.inverse(r)

    def lean_on(self, d: Array, t: Array) -> Array:
        """z = C^-1 r; answers r.z."""
        r = self.leaning.r
        self.leaning = self.leaning._replace(z=self.inverse(r - self.new.T @ t))
        return column_dots(r, self.leaning.z)[None, :]

    def lean_along(self, d: Array, beta: Array) -> Array:
        """q = z + beta q; answers B q and, below, q.P q."""
        q = self.leaning.z + beta * self.leaning.q
        self.leaning = self.leaning._replace(q=q)
        return joined([self.times(q), column_dots(q, self.penalty(q))[None, :]])

    def lean_back(self, d: Array, Bq: Array, alpha: Array) -> Array:
        """r = r - alpha T q."""
        q = self.leaning.q
        r = self.leaning.r - alpha * (self.back(Bq) + self.penalty(q))
        self.leaning = self.leaning._replace(r=r)
        return self.new @ self.inverse(r)
