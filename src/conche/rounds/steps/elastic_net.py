"""Steps for proposals of weights with zeros: a part of the way to them, or all of it."""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

import numpy as np

from ...common.arrays import Array
from ...nodes.scalars import ElasticNetScalars, Scalars
from .base import CentralSteps, Move, Point, Problem, Standing

UNSEEN = 1e-13  # changes of the objective that may be rounding, relative to it
CLOSE = 1e-8  # changes so small that the loss is as good as the quadratic


class ElasticNetSteps(CentralSteps[None]):
    """Between the weights and the proposed ones the penalty is convex, so a shorter step is judged
    by the straight line between the two penalties: the objective never grows.

    `choose_steps` takes these for the one solver that sends `ElasticNetScalars`.
    """

    def penalty(self, point: Point, scalars: Scalars) -> Array | float:
        return cast(ElasticNetScalars, scalars).now

    @abstractmethod
    def share(self, problem: Problem, point: Point, Az: Array, scalars: ElasticNetScalars) -> Array:
        """Which part of the way to the proposed weights to go, between 0 and 1 per output."""

    def move(self, problem: Problem, now: Standing[None], Az: Array, scalars: Scalars) -> Move:
        net = cast(ElasticNetScalars, scalars)
        step = self.share(problem, now.point, Az, net)
        v = now.point.v + step.astype(Az.dtype) * Az
        return Move(v, (1 - step) * net.now + step * net.after, step)


class ElasticNetSafe(ElasticNetSteps):
    """Nodes that allow for all others (sigma' = K) go all the way together (gamma = 1)."""

    def sigma(self, n_nodes: int) -> float:
        return float(n_nodes)

    def share(self, problem: Problem, point: Point, Az: Array, scalars: ElasticNetScalars) -> Array:
        all_the_way = np.ones(Az.shape[1])
        after = problem.objective.value(point.v + Az) + scalars.after
        worse = after > point.value + scalars.now
        if not np.any(worse):
            return all_the_way
        # sigma' was too small for these data
        return np.where(worse, _best_share(problem, point, Az, scalars), all_the_way)


class ElasticNetLine(ElasticNetSteps):
    """Nodes that allow for nobody (sigma' = 1) go the best part of the way."""

    def share(self, problem: Problem, point: Point, Az: Array, scalars: ElasticNetScalars) -> Array:
        return _best_share(problem, point, Az, scalars)


class ElasticNetNewton(ElasticNetLine):
    """A coordinator that solves for all nodes: all the way, unless the loss is not the quadratic
    that it was taken for. Close to the optimum it is, and a search would find rounding."""

    def share(self, problem: Problem, point: Point, Az: Array, scalars: ElasticNetScalars) -> Array:
        if problem.objective.loss.quadratic:
            return np.ones(Az.shape[1])
        before = point.value + scalars.now
        change = problem.objective.value(point.v + Az) + scalars.after - before
        best = super().share(problem, point, Az, scalars)
        all_the_way = (-CLOSE * before <= change) & (change <= UNSEEN * before)
        return np.where(all_the_way, 1.0, best)


def _best_share(problem: Problem, point: Point, Az: Array, scalars: ElasticNetScalars) -> Array:
    slope = scalars.after - scalars.now
    best = problem.objective.best_step(point.v, point.g, Az, np.zeros_like(slope), slope)
    return np.clip(best, 0, 1)
