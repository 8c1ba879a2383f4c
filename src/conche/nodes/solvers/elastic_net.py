"""An elastic net on one node: sparse weights by coordinate descent on a working set.

The task's problem is scikit-learn's, times its number of samples n,

    loss(A w) + n alpha rho |w|_1 + n alpha (1 - rho) / 2 |w|^2,

and a node's own is an elastic net again: with the others' moves allowed for by sigma', the target
is A_k w_k + g / c, c = sigma' / tau. scikit-learn's coordinate descent solves it on the columns
that matter, those with a weight and those that break the optimality conditions most; the rest is
looked at once a sweep. Weights are warm-started over rounds and over tasks. The intercept is not
penalised.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...common.arrays import Array, Block, without_mean
from ..scalars import ElasticNetScalars
from ..scaling import Kept
from .base import Context, Proposing, Solution, Solver
from .l1 import EXACT, Columns, Penalty, on_working_sets

SWEEPS = 5  # working sets a round, at most
ENOUGH = 0.1  # of what the certificate is to come to: no node need be nearer to its optimum


@dataclass(frozen=True)
class ElasticNetSolver(Solver["CoordinateDescent"]):
    """``alpha`` and ``l1_ratio`` as in scikit-learn's ``ElasticNet``."""

    alpha: float
    l1_ratio: float = 0.5
    sweeps: int = SWEEPS

    def alpha_of(self, kept: Kept, strength: float) -> float:
        """As given."""
        return self.alpha

    def kind_of_steps(self, asked: str) -> str:
        """Proposals of weights with zeros need steps of their own; there is no "cg" of them."""
        return f"elastic-net {asked}"

    def factorise(
        self, block: Block, weights: Array, kept: Kept, context: Context
    ) -> CoordinateDescent:
        """Nothing is factorised: the penalty's weights are those of the whole task."""
        return CoordinateDescent(block, weights, self, context)


class CoordinateDescent(Proposing):
    """The node's own elastic net, one output after the other; coordinates are the weights."""

    def __init__(self, block: Block, weights: Array, solver: ElasticNetSolver, context: Context):
        self.block, self.weights = block, weights
        strength = context.weight * solver.alpha
        self.l1, self.l2 = strength * solver.l1_ratio, strength * (1 - solver.l1_ratio)
        self.curvature = context.sigma / context.smoothness
        self.sweeps = solver.sweeps
        # a gradient that is off by a share of l1 costs the certificate about that share
        self.exact = max(ENOUGH * context.tol / context.n_nodes, EXACT)
        self.size = block.shape[1]
        self.centred, self.free = context.intercept, context.holds_intercept
        self.root = context.root
        ones = np.ones(block.shape[0]) if self.root is None else self.root
        self.columns = Columns(block, ones if self.free else None)
        self.penalised = np.ones((self.size, 1), dtype=bool)
        self.penalised[-1] = not self.free

    def solve(self, g: Array, d: Array, q: Array) -> Solution:
        u = self.weights + d
        pull = self._pull(without_mean(g, self.root) if self.centred else g, u)
        excess = np.maximum(np.abs(pull).max(axis=0, initial=0.0) / self.l1 - 1, 0.0)
        outputs = [self._one(g[:, j], u[:, j]) for j in range(g.shape[1])]
        z = np.column_stack(outputs) - u
        squares = self.l2 * np.sum((self.penalised * u) ** 2, axis=0)
        return Solution(
            z, ElasticNetScalars(self._penalty(u), self._penalty(u + z), excess, squares)
        )

    def _one(self, g: Array, u: Array) -> Array:
        """The node's own elastic net from u on."""
        c, start = self.curvature, u
        target = self._times(u) + g / c
        own = Penalty(self.l1 / c, self.l2 / c)
        u = u * self.penalised[:, 0]
        u = on_working_sets(
            self.columns, self.columns.level(target), u, own, self.exact, self.sweeps
        )
        if self.free:
            u[-1] = self._level(target - self._times(u))
        return u if np.all(np.isfinite(u)) else start

    def _pull(self, g: Array, u: Array) -> Array:
        """What the loss and the L2 part want of every penalised weight."""
        return self.penalised * (np.asarray(self.block.T @ g) - self.l2 * u)

    def _level(self, rest: Array) -> float:
        """The best weight of the constant column, whose entries are roots of weights."""
        root = np.ones(len(rest)) if self.root is None else self.root
        return float(root @ rest / (root @ root))

    def _times(self, u: Array) -> Array:
        kept = np.flatnonzero(u)
        return np.asarray(self.block[:, kept] @ u[kept])

    def _penalty(self, u: Array) -> Array:
        u = self.penalised * u
        return self.l1 * np.sum(np.abs(u), axis=0) + 0.5 * self.l2 * np.sum(u**2, axis=0)

    def image(self, z: Array) -> Array:
        rows = np.flatnonzero(np.any(z, axis=1))
        return np.asarray(self.block[:, rows] @ z[rows])

    def lift(self, d: Array) -> Array:
        return d
