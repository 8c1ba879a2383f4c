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


def certifies(solver: Solver, objective: Objective, context: Context, said: Scalars) -> bool:
    """Whether more can be known than that no loss is negative."""
    squared = objective.loss.name == "squared"
    if "excess" in said:
        return squared or not context.intercept
    return "slack" in said or (solver.projects and context.n_nodes == 1 and squared)


def lower_bound(
    objective: Objective, context: Context, now: Progress, loss: Array, Az: Array, said: Scalars
) -> Array:
    """Of the task's optimum, per output, from a proposal that was made at ``now``, where the
    objective without its penalty is ``loss``."""
    if "slack" in said:  # a quadratic penalty P: at s = 1 the gap is r.P^-1 r / 2, r = A^T g - P d
        found = loss + now.penalty - 0.5 * said["slack"]
    elif "excess" in said:
        found = _sparse(objective, context, now, said)
    else:  # one node has all columns: what it proposes is the residual's projection on them
        found = loss - 0.5 * (_dot(now.g, Az) + said.get("cut", 0.0))
    return np.maximum(found, 0.0)


def _sparse(objective: Objective, context: Context, now: Progress, said: Scalars) -> Array:
    """L1 weight l, L2 weight m: s g is dual feasible once |x_j.g - m w_j| s <= l for every column.

    Every node says by how much its worst column exceeds l (relative to l); their sum is no less
    than the worst of all. Squares are an L2 penalty's as if it were rows of the data. An intercept
    asks for g.1 = 0: here as on the nodes, g without its mean is what is meant.
    """
    most = 1 / (1 + said["excess"])
    g = now.g - now.g.mean(axis=0) if context.intercept else now.g
    if objective.loss.name == "squared":
        gy, squares = _dot(g, objective.y), _dot(g, g) + said["ridge"]
        s = np.clip(np.divide(gy, squares, out=np.zeros_like(gy), where=squares > 0), 0, most)
        return np.asarray(s * gy - 0.5 * s**2 * squares)
    # the logistic loss: minus its conjugate at -s g is the entropy of s |g|
    h = np.clip(most * np.abs(g), 0.0, 1.0)
    return np.asarray(_entropy(h).sum(axis=0) - 0.5 * most**2 * said["ridge"])


def _entropy(h: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        each = -h * np.log(h) - (1 - h) * np.log1p(-h)
    return np.where((h > 0) & (h < 1), each, 0.0)
