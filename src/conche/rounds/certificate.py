"""How far a task is from its optimum, at most.

A lower bound of the optimum, from what the nodes say about the point they are asked at, outlives
the round: the certificate is the objective minus the best lower bound so far, whatever happened
since. Fenchel's duality gives it,

    min_d loss(A (w + d)) + penalty(d)  >=  -loss*(-a) - a.A w - penalty*(A^T a)   for every a,

at the point a = s g, g the descent direction and s a scale. s = 0 is always allowed, and says that
no loss is below zero: at zero damping, where penalty* is infinite but at zero, it is all that
rounds can know of several nodes together, and where the columns can fit any target it is exact.

One function for each kind of scalars that nodes send.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple

import numpy as np

from ..common.arrays import Array, column_dots, without_mean
from ..nodes.scalars import (
    CutProjection,
    ElasticNetScalars,
    PastScalars,
    PenaltyScalars,
    Projection,
    Scalars,
)
from .objective import Objective


class Asked(NamedTuple):
    """The point that the nodes were asked at, and the vector that they answered."""

    objective: Objective
    g: Array
    value: Array  # of the objective without its penalty
    penalty: Array | float
    Az: Array
    intercept: bool


@singledispatch
def lower_bound(scalars: Scalars, at: Asked) -> Array:
    """Of the task's optimum, per output; minus infinity where the scalars give no bound."""
    return np.full(at.g.shape[1], -np.inf)


@lower_bound.register
def _(scalars: PenaltyScalars, at: Asked) -> Array:
    """A quadratic penalty P: at s = 1 the gap is r.P^-1 r / 2, r = A^T g - P d."""
    return np.asarray(at.value + at.penalty - 0.5 * scalars.slack)


@lower_bound.register
def _(scalars: Projection, at: Asked) -> Array:
    """One node has all columns: what it proposes is the residual's projection on them."""
    if not at.objective.loss.quadratic:
        return np.full(at.g.shape[1], -np.inf)
    return np.asarray(at.value - 0.5 * column_dots(at.g, at.Az))


@lower_bound.register
def _(scalars: CutProjection, at: Asked) -> Array:
    """The same, and nothing is known of what was cut."""
    return np.asarray(lower_bound.dispatch(Projection)(scalars, at) - 0.5 * scalars.cut)


@lower_bound.register
def _(scalars: ElasticNetScalars, at: Asked) -> Array:
    """L1 weight l, L2 weight m: s g is dual feasible once |x_j.g - m w_j| s <= l for every column.

    Every node says by how much its worst column exceeds l (relative to l); their sum is no less
    than the worst of all. Squares are an L2 penalty's as if it were rows of the data. An intercept
    asks for g.1 = 0: here as on the nodes, g without its mean is what is meant.
    """
    loss, y = at.objective.loss, at.objective.y
    most = 1 / (1 + scalars.excess)
    g = without_mean(at.g, loss.root) if at.intercept else at.g
    s = loss.dual_scale(g, y, most, scalars.squares)
    return np.asarray(loss.dual(s * g, y) - 0.5 * s**2 * scalars.squares)


@lower_bound.register
def _(scalars: PastScalars, at: Asked) -> Array:
    """The same, and the past's rows are rows of the data."""
    loss, y = at.objective.loss, at.objective.y
    most = 1 / (1 + scalars.excess)
    constant = 1.0 if loss.root is None else loss.root[:, None]
    g = np.where(at.g > 0, scalars.up, scalars.down) * at.g - scalars.level * constant
    s = loss.dual_scale(g, y, most, scalars.squares, scalars.aligned)
    past = s * scalars.aligned - 0.5 * s**2 * scalars.squares
    return np.asarray(loss.dual(s * g, y) + past)


def optimality_gap(floor: Array, value: Array) -> Array:
    """The certificate; never negative, whatever rounding does to two numbers that are equal."""
    rounding = 8 * float(np.finfo(np.float64).eps)
    return np.asarray(np.maximum(value - floor, 0.0) + rounding * np.abs(value))
