"""Steps: from the nodes' proposals to the move that they are to make.

A kind of steps is an object with `init`, `step`, `bound` and `finished`; where it stands is a value
that `step` maps to the next. In the terms of the CoCoA framework the nodes solve their subproblems
for some sigma' and move by gamma together: the kinds differ in how they choose the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from ...common.arrays import Array, column_dots
from ...network import CentralNetwork, Network
from ...nodes.scalars import PenaltyScalars, Scalars
from ..certificate import Asked, lower_bound, optimality_gap
from ..objective import Objective

N = TypeVar("N", bound=Network)
L = TypeVar("L")


class Problem(NamedTuple):
    """A task, as the coordinator sees it."""

    objective: Objective
    n_nodes: int
    intercept: bool  # whether some node has the constant column


@dataclass(frozen=True)
class Point:
    """Predictions, and what the objective is like there; one column or number per output."""

    v: Array  # of the task's rows, then of the past's rows
    g: Array  # descent direction
    value: Array  # of the objective without its penalty
    penalty: Array | float = 0.0  # at most

    @classmethod
    def at(cls, objective: Objective, v: Array, penalty: Array | float = 0.0) -> Point:
        """What the objective is like at the predictions v."""
        g = objective.descent(v)
        return cls(v, g, objective.value_at(v, g), penalty)

    @cached_property
    def total(self) -> Array:
        """The objective with its penalty."""
        return np.asarray(self.value + self.penalty)

    @cached_property
    def unseen(self) -> Array:
        """Changes of the objective that cannot be told from rounding: of itself, and of
        predictions, which are known to so many digits (an output that is predicted to the last one
        has an objective of next to nothing, and a share of that is no measure)."""
        eps = 8 * float(np.finfo(float).eps)
        g, v = (np.sqrt(column_dots(x, x)) for x in (self.g, self.v))
        return np.asarray(eps * np.abs(self.total) + 0.5 * (eps * (g + v)) ** 2)


@dataclass(frozen=True)
class Standing(Generic[L]):
    """Where a kind of steps stands in a task."""

    point: Point
    last: L  # what the kind itself remembers of its last step
    first: Array  # the objective that the task began with
    started: float  # the length of the direction that it began with
    floor: Array  # the best lower bound of the optimum so far
    done: Array  # outputs whose residual is down to rounding
    rounds: int = 0  # so far
    sure: bool = False  # whether the last lower bound says more than that no loss is negative
    moved: float = np.inf  # how far the last proposals would move them, over started, if not sure
    sent: int = 0  # bytes of the last round, both ways, all nodes
    accuracy: float = 0.0  # of the nodes' own solutions
    disagreement: float = 0.0  # between the nodes' predictions

    @cached_property
    def gap(self) -> Array:
        """How far the objective is above its optimum, at most; one number per output."""
        return optimality_gap(self.floor, self.point.total)


class Steps(ABC, Generic[N, L]):
    """One kind of steps. ``tol`` ends a task's rounds early, None never does."""

    def __init__(self, tol: float | None = None):
        self.tol = tol

    def sigma(self, n_nodes: int) -> float:
        """sigma': how far every node allows for the others' moves in its own problem."""
        return 1.0

    @abstractmethod
    def init(self, problem: Problem, v: Array, network: N) -> Standing[L]:
        """Where the task begins: ``v`` are the predictions of the weights so far."""

    @abstractmethod
    def step(self, problem: Problem, now: Standing[L], network: N) -> Standing[L]:
        """One round: ask the nodes, decide, and let them move."""

    def bound(self, now: Standing[L]) -> Array:
        """How far the objective is above its optimum, at most; one number per output."""
        return now.gap

    def certified(self, now: Standing[L]) -> Array:
        """Outputs whose bound is within ``tol`` of the objective that the task began with, or which
        cannot be told from their optimum (of a class that has not appeared yet, all is known)."""
        enough = np.maximum((self.tol or 0.0) * now.first, now.point.unseen)
        return np.asarray(self.bound(now) <= enough)

    @abstractmethod
    def finished(self, now: Standing[L]) -> bool:
        """Whether further rounds are not wanted, or would divide noise by noise."""

    def views(self, problem: Problem, now: Standing[L], network: N) -> Array | None:
        """Every node's own predictions (n_nodes x n_samples x n_outputs); None with a centre."""
        return None


def beginning(problem: Problem, v: Array, last: Any) -> Standing[Any]:
    """Where any kind of steps begins."""
    point, zeros = Point.at(problem.objective, v), np.zeros(v.shape[1])
    started = float(np.linalg.norm(point.g))
    return Standing(point, last, point.value, started, zeros, done=zeros.astype(bool))


class Move(NamedTuple):
    """What one round comes to: new predictions, and what the nodes are to accept."""

    v: Array
    penalty: Array | float
    step: Array | None = None  # d += step (z + momentum q); None: 1/K and 0, as the nodes know
    momentum: Array | None = None
    last: Any = None
    done: Array | None = None
    floor: Array | None = None  # a lower bound of the optimum that the kind itself knows


class CentralSteps(Steps[CentralNetwork, L]):
    """Steps of a coordinator that hears the sum of all proposals: kinds differ in `move` alone."""

    def init(self, problem: Problem, v: Array, network: CentralNetwork) -> Standing[L]:
        return beginning(problem, v, None)

    def penalty(self, point: Point, scalars: Scalars) -> Array | float:
        """The penalty of the weights as they are; what the coordinator has kept count of."""
        return point.penalty

    @abstractmethod
    def move(self, problem: Problem, now: Standing[L], Az: Array, scalars: Scalars) -> Move:
        """The move that the proposals lead to: Az is what they do to the predictions."""

    def step(self, problem: Problem, now: Standing[L], network: CentralNetwork) -> Standing[L]:
        if not problem.objective.loss.quadratic:
            n = problem.objective.n
            network.refresh(problem.objective.curvature(now.point.v)[:n], now.rounds)
        Az, scalars = network.propose(now.point.g)
        point = replace(now.point, penalty=self.penalty(now.point, scalars))
        found = _floor(problem, point, Az, scalars)
        first = now.first if now.rounds else point.total
        now = replace(now, point=point, first=first, floor=np.maximum(now.floor, found))
        move = self.move(problem, now, Az, scalars)
        network.accept(move.step, move.momentum)
        if move.floor is not None:
            now = replace(now, floor=np.maximum(now.floor, move.floor))
        after = Point.at(problem.objective, move.v, move.penalty)
        if (known := network.certify(after.g)) is not None:
            found = _floor(problem, after, np.zeros_like(Az), known)
        sure = bool(np.all(np.isfinite(found)))
        return replace(
            now,
            point=after,
            floor=np.maximum(now.floor, found),
            last=move.last,
            done=now.done if move.done is None else move.done,
            rounds=now.rounds + 1,
            sure=sure,
            moved=0.0 if sure else self._moved(problem, now, move),
            sent=network.cost([point.g, move.step, move.momentum, Az, *scalars.values()]),
            accuracy=scalars.accuracy(),
        )

    def _moved(self, problem: Problem, now: Standing[L], move: Move) -> float:
        """A 1/K step is small by construction: measure the full proposal instead."""
        if self.tol is None or not now.started:
            return 0.0
        whole = problem.n_nodes if move.step is None else 1
        return whole * float(np.linalg.norm(move.v - now.point.v)) / now.started

    def finished(self, now: Standing[L]) -> bool:
        """All outputs are down to rounding; or the certificate is within ``tol`` of the objective
        that the task began with; or, where there can be none, the last movement is."""
        if np.all(now.done):
            return True
        if self.tol is None:
            return False
        certified = bool(np.all(self.certified(now)))
        return certified or (not now.sure and now.moved <= self.tol)


def _floor(problem: Problem, point: Point, Az: Array, scalars: Scalars) -> Array:
    """A lower bound of the optimum, from what is said of a point."""
    rest = point.value, point.penalty, Az, problem.intercept
    return lower_bound(scalars, Asked(problem.objective, point.g, *rest))


def measure(
    point: Point, Az: Array, scalars: Scalars, done: Array
) -> tuple[Array, Array, Array, Array]:
    """z.Pz, d.Pz, r.z, and which outputs are done: their r.z, or all that is left to gain, is
    within rounding of zero, and a further round would divide noise by noise."""
    zeros = np.zeros(Az.shape[1])
    zPz, _, dPz = (zeros + product for product in scalars.products())
    rz = column_dots(point.g, Az) - dPz
    dPd = np.maximum(2 * point.penalty, 0.0)
    size = np.sqrt(column_dots(point.g, point.g) * column_dots(Az, Az))
    size = size + np.sqrt(np.maximum(dPd * zPz, 0.0))
    rounding = 16 * np.sqrt(len(Az)) * float(np.finfo(Az.dtype).eps)
    done = done | (rz <= rounding * size)
    if isinstance(scalars, PenaltyScalars):
        done = done | (scalars.slack <= point.unseen)
    return zPz, dPz, rz, done
