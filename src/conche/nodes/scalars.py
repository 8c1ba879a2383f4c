"""The few numbers that a node sends beside its vector: one class for each kind of solver.

Every field has one number per output. The coordinator adds them up over the nodes, field by field.
In the formulas z is the node's proposal, q its last direction, d its update since the task began,
and P the curvature of its penalty.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..common.arrays import Array


@dataclass(frozen=True)
class Scalars:
    """None at all: Algorithm 1's nodes send their vector and nothing else."""

    def values(self) -> list[Array]:
        """The fields in order, as they travel."""
        return list(vars(self).values())

    def products(self) -> tuple[Array | float, Array | float, Array | float]:
        """z.Pz, q.Pz and d.Pz; zero without a penalty."""
        return 0.0, 0.0, 0.0

    def accuracy(self) -> float:
        """What is left of the gradient of the nodes' own problems; zero where they are exact."""
        return 0.0

    def eigenvalue(self) -> Array | None:
        """The least that C^-1 times the problem's curvature may have, for proposals z = C^-1 r;
        None where nobody knows."""
        return None


@dataclass(frozen=True)
class Projection(Scalars):
    """One node has all the columns, and A z is the direction's projection on them."""


@dataclass(frozen=True)
class CutProjection(Projection):
    """The same, where singular values below the rank cut-off were dropped."""

    cut: Array  # squared length of the part of g that was lost with them


@dataclass(frozen=True)
class PenaltyScalars(Scalars):
    """A quadratic penalty: damping, or the past."""

    zPz: Array
    qPz: Array
    dPz: Array
    slack: Array  # r.R^-1 r for the residual r = A^T g - P d: no less than r.P^-1 r

    def products(self) -> tuple[Array, Array, Array]:
        """z.Pz, q.Pz and d.Pz."""
        return self.zPz, self.qPz, self.dPz


@dataclass(frozen=True)
class SpectralScalars(PenaltyScalars):
    """The same, where proposals are nearly Newton's: z = C^-1 r, and no less than ``least`` of C is
    in the problem's curvature."""

    least: Array

    def eigenvalue(self) -> Array:
        """``least``."""
        return self.least

    @classmethod
    def of(cls, scalars: PenaltyScalars, least: Array) -> SpectralScalars:
        """With what the coordinator knows of the nodes' proposals together, for every strength."""
        every = np.repeat(least, scalars.zPz.shape[0] // len(least))
        return cls(scalars.zPz, scalars.qPz, scalars.dPz, scalars.slack, every)


@dataclass(frozen=True)
class InexactScalars(Scalars):
    """Nodes that take a few steps towards their solution."""

    left: Array  # squared gradient of the node's own problem after its steps
    asked: Array  # and before them

    def accuracy(self) -> float:
        """The root of what is left over what there was."""
        return float(np.sqrt(np.sum(self.left) / max(np.sum(self.asked), 1e-300)))


@dataclass(frozen=True)
class ElasticNetScalars(Scalars):
    """An elastic net: its penalty before and after, and how far from dual feasible g is."""

    now: Array  # the penalty of the weights as they are
    after: Array  # the penalty of the weights that the node proposes
    excess: Array  # by how much the worst column exceeds the L1 weight, relative to it
    squares: Array  # l2 |w|^2: what the L2 part counts in the dual


@dataclass(frozen=True)
class PastScalars(ElasticNetScalars):
    """The same of a coordinator that knows the past: its squares |t - V w|^2 / 2 are part of the
    penalty. The dual point is g, its positive entries times ``up``, its negative ones times
    ``down``, less ``level`` times the constant column: what an intercept is content with."""

    aligned: Array  # t.(t - V w): what the past counts in the dual; its squares are in ``squares``
    up: Array
    down: Array
    level: Array


def total(terms: Sequence[Scalars]) -> Scalars:
    """Field by field, over the nodes in their order."""
    first, *rest = terms
    sums = first.values()
    for term in rest:
        sums = [a + b for a, b in zip(sums, term.values(), strict=True)]
    return type(first)(*sums)
