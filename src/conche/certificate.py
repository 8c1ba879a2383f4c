"""How far a task is from its optimum, at most.

A lower bound of the optimum, from what the nodes say about the point they are asked at, outlives
the round: the certificate is the objective minus the best lower bound so far, whatever happened
since. Fenchel's duality gives it,

    min_d loss(A (w + d)) + penalty(d)  >=  -loss*(-a) - a.A w - penalty*(A^T a)   for every a,

at the point a = s g, g the descent direction and s a scale. s = 0 is always allowed, and says that
no loss is below zero: at zero damping, where penalty* is infinite but at zero, it is all that
rounds can know of several nodes together, and where the columns can fit any target it is exact.
"""

from __future__ import annotations

import numpy as np

from .rounds import Objective, Progress, Scalars, _dot
from .solvers.base import Array, Context, Solver


def lower_bound(
    solver: Solver, objective: Objective, context: Context, now: Progress, Az: Array, said: Scalars
) -> Array:
    """Of the task's optimum, per output, from a proposal that was made at ``now``."""
    loss = objective.value(now.v)
    found = np.zeros_like(loss)
    if "slack" in said:  # a quadratic penalty P: at s = 1 the gap is r.P^-1 r / 2, r = A^T g - P d
        found = loss + now.penalty - 0.5 * said["slack"]
    elif "excess" in said:
        found = _sparse(objective, now, said)
    elif solver.projects and context.n_nodes == 1 and objective.loss.name == "squared":
        # one node has all columns: what it proposes is the residual's projection on them
        found = loss - 0.5 * _dot(now.g, Az)
    return np.maximum(found, 0.0)


def _sparse(objective: Objective, now: Progress, said: Scalars) -> Array:
    """L1 weight l, L2 weight m: s g is dual feasible once |x_j.g - m w_j| s <= l for every column.

    Every node says by how much its worst column exceeds l (relative to l); their sum is no less
    than the worst of all. Squares are an L2 penalty's as if it were rows of the data.
    """
    most = 1 / (1 + said["excess"])
    g, y = now.g, objective.y
    if objective.loss.name != "squared" and np.any(said["free"] > 0):
        return np.zeros(g.shape[1])  # an intercept may be anywhere
    if objective.loss.name == "squared":
        # an intercept b would have g.1 = 0; as it is, that costs |b| |g.1|, and b is bounded by
        # what the present value F leaves to the optimum: |y| + |residual| + |A w|, |w|_1 <= F / l
        F = objective.value(now.v) + said["now"]
        far = np.sqrt(_dot(y, y)) + np.sqrt(2 * F) + said["reach"] * F
        astray = said["free"] * far / np.sqrt(len(y))
        gy, squares = _dot(g, y) - astray, _dot(g, g) + said["ridge"]
        s = np.clip(np.divide(gy, squares, out=np.zeros_like(gy), where=squares > 0), 0, most)
        return np.asarray(s * gy - 0.5 * s**2 * squares)
    # the logistic loss: minus its conjugate at -s g is the entropy of s |g|
    h = np.clip(most * np.abs(g), 0.0, 1.0)
    return np.asarray(_entropy(h).sum(axis=0) - 0.5 * most**2 * said["ridge"])


def _entropy(h: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        each = -h * np.log(h) - (1 - h) * np.log1p(-h)
    return np.where((h > 0) & (h < 1), each, 0.0)
