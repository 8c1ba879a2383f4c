"""Rounds: from the nodes' proposals to the step that they are to accept.

A round is pure: (objective, progress, proposal) -> progress. The coordinator holds the predictions;
down go the descent direction g and, but for plain rounds, a step and a momentum; up come A_k z_k
and a few scalars.

In the terms of the CoCoA framework the nodes solve their subproblems for sigma' = 1 and move by
gamma together: *plain* rounds by the safe 1/K, *adaptive* ones by what the data allow, and
conjugate-gradient ones along a direction that remembers the last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .losses import Loss
from .solvers.base import Array

FARTHEST = 100.0  # that a prediction may move in one step of a line search; exp(-100) is nothing
Scalars = Mapping[str, Array]  # what nodes say beside the image, summed, by the solver's names


class Objective:
    """The task's loss, and below it the sketch's rows: squares around the old estimate."""

    def __init__(self, loss: Loss, y: Array):
        self.loss, self.y, self.n = loss, y, len(y)

    def value(self, v: Array) -> Array:
        below = np.sum(v[self.n :] ** 2, axis=0)
        return np.asarray(self.loss.value(v[: self.n], self.y) + 0.5 * below)

    def descent(self, v: Array) -> Array:
        top = self.loss.descent(v[: self.n], self.y)
        return top if len(v) == self.n else np.concatenate([top, -v[self.n :]])

    def curvature(self, v: Array) -> Array:
        top = self.loss.curvature(v[: self.n], self.y)
        return top if len(v) == self.n else np.concatenate([top, np.ones_like(v[self.n :])])


@dataclass(frozen=True)
class Conjugate:
    """The last direction q, seen through A and through the penalty P."""

    g: Array
    step: Array
    Aq: Array
    rz: Array
    qPq: Array
    dPq: Array


@dataclass(frozen=True)
class Stride:
    """The last adaptive step, and the one that would have been best along its direction."""

    number: int
    step: Array
    best: Array
    rz: Array


@dataclass(frozen=True)
class Progress:
    """Where the coordinator stands: one column per output throughout."""

    v: Array  # predictions of the task's rows, then of the sketch's rows
    g: Array  # descent direction there
    penalty: Array | float = (
        0.0  # of the update so far, at most: d.Pd / 2, or that of sparse weights
    )
    # what the nodes are to accept: d += step (z + momentum q); None: 1/K and 0, as they know
    step: Array | None = None
    momentum: Array | None = None
    last: Conjugate | Stride | None = None
    done: Array | None = None  # outputs whose residual is down to rounding

    @property
    def finished(self) -> bool:
        return self.done is not None and bool(np.all(self.done))


Round = Callable[[Objective, Progress, Array, Scalars], Progress]


def plain_round(n_nodes: int) -> Round:
    """Lines 5 to 9 of Algorithm 1: every node moves by 1/K of its own solution."""

    def advance(objective: Objective, now: Progress, Az: Array, said: Scalars) -> Progress:
        v = Az / n_nodes
        v += now.v  # in place: at this size a fresh array costs as much as the sum
        penalty = now.penalty
        if "zPz" in said:
            penalty = penalty + said["dPz"] / n_nodes + 0.5 * said["zPz"] / n_nodes**2
        return Progress(v, objective.descent(v), penalty)

    return advance


def adaptive_round(objective: Objective, now: Progress, Az: Array, said: Scalars) -> Progress:
    """The same proposals, with as large a step as the data allow.

    The step that is best along z follows from what the coordinator has. Taken always, it zigzags:
    after two of them the next two have Dai and Yuan's length, which would end a problem of two
    directions, never more than what keeps the objective falling. Every round lowers the objective.
    """
    zPz, dPz, rz, done = _measure(now, Az, said)
    best = _line_search(objective, now.v, Az, zPz, dPz)
    step, number = best, 0
    if isinstance(now.last, Stride):
        number = now.last.number + 1
        if number % 4 == 2:
            step = _dai_yuan(best, rz, now.last)
        elif number % 4 == 3:
            step = now.last.step
        if number % 4 >= 2:
            step = np.minimum(step, 1.9 * best if objective.loss.name == "squared" else best)
    step = np.where(done, 0.0, step)
    v = now.v + step.astype(Az.dtype) * Az
    penalty = now.penalty + step * dPz + 0.5 * step**2 * zPz
    last = Stride(number, step, best, rz)
    return Progress(v, objective.descent(v), penalty, step, None, last, done)


def _dai_yuan(best: Array, rz: Array, last: Stride) -> Array:
    """The step from two best ones, in the metric of the preconditioner (r.z for |g|^2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = 1 / best, 1 / last.best
        step = 2 / (np.sqrt((b - a) ** 2 + 4 * rz / (last.step**2 * last.rz)) + a + b)
    return np.where(np.isfinite(step) & (step > 0), step, best)


def cg_round(objective: Objective, now: Progress, Az: Array, said: Scalars) -> Progress:
    """The same messages, used as preconditioned conjugate gradients.

    z is the preconditioned residual r = A^T g - P d, seen through A. Polak-Ribiere's momentum with
    restarts covers inexact local solves and, with the line search, losses that are not quadratic.
    """
    zPz, dPz, rz, done = _measure(now, Az, said)
    momentum = np.zeros_like(rz)
    Aq, qPq, dPq = Az, zPz, dPz
    if isinstance(last := now.last, Conjugate):
        qPz = said.get("qPz", np.zeros_like(rz))
        old = _dot(last.g, Az) - (dPz - last.step * qPz)  # r_last.z
        momentum = np.maximum(0.0, _ratio(rz - old, last.rz))
        Aq = Az + momentum.astype(Az.dtype) * last.Aq
        qPq = zPz + 2 * momentum * qPz + momentum**2 * last.qPq
        dPq = dPz + momentum * (last.dPq + last.step * last.qPq)
        uphill = _dot(now.g, Aq) - dPq <= 0  # rounding has won: start again from z alone
        if np.any(uphill):
            momentum = np.where(uphill, 0.0, momentum)
            Aq = np.where(uphill, Az, Aq)
            qPq, dPq = np.where(uphill, zPz, qPq), np.where(uphill, dPz, dPq)
    step = np.where(done, 0.0, _line_search(objective, now.v, Aq, qPq, dPq))
    momentum = np.where(done, 0.0, momentum)
    v = now.v + step.astype(Aq.dtype) * Aq
    penalty = now.penalty + step * dPq + 0.5 * step**2 * qPq
    last = Conjugate(now.g, step, Aq, rz, qPq, dPq)
    return Progress(v, objective.descent(v), penalty, step, momentum, last, done)


def sparse_round(objective: Objective, now: Progress, Az: Array, said: Scalars) -> Progress:
    """Proposals of sparse weights: all of them at once (sigma' = K, gamma = 1).

    ``after`` is the penalty that they lead to. Between the two points the penalty is convex, so a
    shorter step is judged by the straight line between them: the objective never grows.
    """
    step = np.ones(Az.shape[1])
    v = now.v + Az
    worse = objective.value(v) + said["after"] > objective.value(now.v) + said["now"]
    if np.any(worse):  # sigma' was too small for these data
        slope = said["after"] - said["now"]
        shorter = np.clip(_line_search(objective, now.v, Az, np.zeros_like(slope), slope), 0, 1)
        step = np.where(worse, shorter, 1.0)
        v = now.v + step.astype(Az.dtype) * Az
    penalty = (1 - step) * said["now"] + step * said["after"]
    return Progress(v, objective.descent(v), penalty, step)


def sparse_line_round(objective: Objective, now: Progress, Az: Array, said: Scalars) -> Progress:
    """The same for sigma' = 1: the best step between none and all, by the same straight line."""
    slope = said["after"] - said["now"]
    step = np.clip(_line_search(objective, now.v, Az, np.zeros_like(slope), slope), 0, 1)
    v = now.v + step.astype(Az.dtype) * Az
    penalty = (1 - step) * said["now"] + step * said["after"]
    return Progress(v, objective.descent(v), penalty, step)


def _measure(now: Progress, Az: Array, said: Scalars) -> tuple[Array, Array, Array, Array]:
    """z.Pz, d.Pz, r.z, and which outputs are done: their r.z is within rounding of zero, and a
    further round would divide noise by noise."""
    zeros = np.zeros(Az.shape[1])
    zPz, dPz = said.get("zPz", zeros), said.get("dPz", zeros)
    rz = _dot(now.g, Az) - dPz
    dPd = np.maximum(2 * now.penalty, 0.0)
    size = np.sqrt(_dot(now.g, now.g) * _dot(Az, Az)) + np.sqrt(np.maximum(dPd * zPz, 0.0))
    rounding = 16 * np.sqrt(len(Az)) * float(np.finfo(Az.dtype).eps)
    return zPz, dPz, rz, (rz <= rounding * size) | (False if now.done is None else now.done)


def _line_search(objective: Objective, v: Array, Aq: Array, qPq: Array, dPq: Array) -> Array:
    """min over a of  objective(v + a Aq) + a d.Pq + a^2/2 q.Pq,  exactly; no message is needed.

    Newton's method in one dimension per output. The squared loss needs one step; for the logistic
    loss each step is halved until the objective falls, so that rounds are monotone.
    """

    def value(a: Array) -> Array:
        return objective.value(v + a * Aq) + a * dPq + 0.5 * a**2 * qPq

    def newton(a: Array) -> Array:
        here = v + a * Aq
        slope = dPq + a * qPq - _dot(objective.descent(here), Aq)
        return _ratio(-slope, qPq + _dot(objective.curvature(here) * Aq, Aq))

    a = np.zeros(v.shape[1])
    if objective.loss.name == "squared":
        return newton(a)
    best = value(a)
    # where all samples are far from the boundary the curvature vanishes, and Newton's step explodes
    least = 1e3 * FARTHEST / float(np.finfo(Aq.dtype).max)  # no step is beyond the numbers
    longest = FARTHEST / np.maximum(np.abs(Aq).max(axis=0, initial=0.0), least)
    for _ in range(25):
        move = np.clip(newton(a), -longest, longest)
        for _ in range(30):
            worse = ~(value(a + move) <= best)
            if not np.any(worse):
                break
            move = np.where(worse, move / 2, move)
        move = np.where(worse, 0.0, move)
        a = a + move
        best = value(a)
        if np.all(np.abs(move) <= 1e-10 * np.abs(a)):
            break
    return a


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("ij,ij->j", a, b, dtype=np.float64)


def _ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is not positive: there is nothing left to gain."""
    return np.divide(a, b, out=np.zeros_like(np.asarray(a, dtype=float)), where=b > 0)
