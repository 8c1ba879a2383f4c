"""Algorithm 1: rounds over a network, plain or conjugate-gradient, and when to stop.

A round is pure: (progress, proposal) -> progress with the step and momentum that the nodes are to
accept. The coordinator holds the predictions; down go the descent direction g and two scalars, up
come A_k z_k and three scalars.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from .losses import Loss
from .network.base import Estimate, Network
from .node import Proposal
from .solvers.base import Array, Context, Solver


class RoundRecord(TypedDict):
    """One round, as ``history_`` shows it."""

    task: int  # counted from 1
    round: int  # counted from 1
    residual: float  # root mean square of y - A w after the round (of the loss's gradient)
    loss: float  # mean loss over samples after the round, summed over outputs
    bytes: int  # sent between coordinator and nodes in this round, both ways, all nodes
    seconds: float


class Outcome(NamedTuple):
    """What learning one task yields: its rounds, what the nodes agreed on, and all weights."""

    history: list[RoundRecord]
    context: Context
    estimate: Estimate
    before: Array  # predictions before the task was learnt, and after: n_samples x n_outputs
    after: Array


class DivergenceError(ArithmeticError):
    """The rounds overflowed; the model is as it was before the task."""


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
class Progress:
    """Where the coordinator stands: one column per output throughout."""

    v: Array  # predictions of the task's rows, then of the sketch's rows
    g: Array  # descent direction there
    # what the nodes are to accept: d += step (z + momentum q); None: 1/K and 0, as they know
    step: Array | None = None
    momentum: Array | None = None
    # conjugate gradients only: the last direction q, seen through A and through the penalty P
    g_last: Array | None = None
    Aq: Array | None = None
    rz: Array | None = None
    qPq: Array | None = None
    dPq: Array | None = None
    dPd: Array | None = None
    done: Array | None = None  # outputs whose residual is down to rounding

    @property
    def finished(self) -> bool:
        return self.done is not None and bool(np.all(self.done))


Round = Callable[[Objective, Progress, Proposal], Progress]


def plain_round(n_nodes: int) -> Round:
    """Lines 5 to 9 of Algorithm 1: every node moves by 1/K of its own solution."""

    def advance(objective: Objective, now: Progress, proposal: Proposal) -> Progress:
        v = proposal.image / n_nodes
        v += now.v  # in place: at this size a fresh array costs as much as the sum
        return Progress(v, objective.descent(v))

    return advance


def cg_round(objective: Objective, now: Progress, proposal: Proposal) -> Progress:
    """The same messages, used as preconditioned conjugate gradients.

    z is the preconditioned residual r = A^T g - P d, seen through A. Polak-Ribiere's momentum with
    restarts covers inexact local solves and, with the line search, losses that are not quadratic.
    An output is done when its r.z is within rounding of zero; beyond that point a further round
    would divide noise by noise.
    """
    Az = proposal.image
    zPz, qPz, dPz = np.zeros((3, Az.shape[1])) if proposal.scalars is None else proposal.scalars
    rz = _dot(now.g, Az) - dPz  # r.z
    dPd = np.zeros_like(rz) if now.dPd is None else now.dPd
    size = np.sqrt(_dot(now.g, now.g) * _dot(Az, Az)) + np.sqrt(np.maximum(dPd * zPz, 0.0))
    rounding = 16 * np.sqrt(len(Az)) * float(np.finfo(Az.dtype).eps)
    done = (rz <= rounding * size) | (False if now.done is None else now.done)
    momentum = np.zeros_like(rz)
    Aq, qPq, dPq = Az, zPz, dPz
    if now.Aq is not None:
        assert now.g_last is not None and now.rz is not None and now.step is not None
        assert now.qPq is not None and now.dPq is not None
        old = _dot(now.g_last, Az) - (dPz - now.step * qPz)  # r_last.z
        momentum = np.maximum(0.0, _ratio(rz - old, now.rz))
        Aq = Az + momentum.astype(Az.dtype) * now.Aq
        qPq = zPz + 2 * momentum * qPz + momentum**2 * now.qPq
        dPq = dPz + momentum * (now.dPq + now.step * now.qPq)
        uphill = _dot(now.g, Aq) - dPq <= 0  # rounding has won: start again from z alone
        if np.any(uphill):
            momentum = np.where(uphill, 0.0, momentum)
            Aq = np.where(uphill, Az, Aq)
            qPq, dPq = np.where(uphill, zPz, qPq), np.where(uphill, dPz, dPq)
    step = np.where(done, 0.0, _line_search(objective, now.v, Aq, qPq, dPq))
    momentum = np.where(done, 0.0, momentum)
    v = now.v + step.astype(Aq.dtype) * Aq
    dPd = dPd + 2 * step * dPq + step**2 * qPq
    return Progress(v, objective.descent(v), step, momentum, now.g, Aq, rz, qPq, dPq, dPd, done)


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
    for _ in range(25):
        move = newton(a)
        for _ in range(30):
            worse = value(a + move) > best
            if not np.any(worse):
                break
            move = np.where(worse, move / 2, move)
        move = np.where(worse, 0.0, move)
        a = a + move
        best = value(a)
        if np.all(np.abs(move) <= 1e-10 * np.abs(a)):
            break
    return a


def learn(
    network: Network,
    X: Any,
    y: Array,
    loss: Loss,
    solver: Solver,
    context: Context,
    n_rounds: int,
    acceleration: str | None = None,
    tol: float | None = None,
    shown: Callable[[Array], slice] = lambda predictions: slice(None),
) -> Outcome:
    """One task: warm-started from the nodes' weights, ``n_rounds`` rounds at most.

    The nodes keep their old state until ``network.commit()``. Conjugate-gradient rounds end by
    themselves when the residual is down to rounding; ``tol`` ends any rounds once one of them
    moves the predictions by no more than ``tol`` times the size of the residual that the task
    began with. ``shown`` says, from the predictions before the task is learnt, which outputs the
    history is about.
    """
    advance = cg_round if acceleration == "cg" else plain_round(context.n_nodes)
    opening = network.begin(X)
    rows = solver.sketch_rows(context.task)
    context = solver.agree(opening.report, replace(context, sketch_rows=rows))
    network.prepare(context)

    objective = Objective(loss, y)
    v = opening.predictions
    outputs = shown(v)
    if rows:
        v = np.concatenate([v, np.zeros((rows, v.shape[1]), v.dtype)])
    now = Progress(v, objective.descent(v))
    started = float(np.linalg.norm(now.g))
    history: list[RoundRecord] = []
    for i in range(n_rounds):
        clock = time.perf_counter()
        proposal = network.propose(now.g)
        after = advance(objective, now, proposal)
        network.accept(after.step, after.momentum)
        moved = float(np.linalg.norm(after.v - now.v))
        now = after
        seconds = time.perf_counter() - clock
        scalars = 0 if acceleration is None else 2 if proposal.scalars is None else 5
        history.append(_record(objective, now, outputs, context, i + 1, scalars, seconds))
        if now.finished or (tol is not None and moved <= tol * started):
            break
    ended = network.end(_past_curvature(objective, now.v))
    return Outcome(history, context, ended, opening.predictions, now.v[: len(y)])


def _record(
    objective: Objective,
    now: Progress,
    shown: slice,
    context: Context,
    number: int,
    scalars: int,
    seconds: float,
) -> RoundRecord:
    n, outputs = objective.n, now.v.shape[1]
    residual = float(np.sqrt(np.mean(np.square(now.g[:n, shown], dtype=np.float64))))
    if not np.isfinite(residual):
        raise DivergenceError(
            f"task {context.task + 1}: the estimate overflowed in round {number}; scale features "
            f"and targets to about one; solver='damped' and 'memory' are steadier than 'exact'"
        )
    vectors = 2 * now.v.size * now.v.itemsize
    return RoundRecord(
        task=context.task + 1,
        round=number,
        residual=residual,
        loss=float(np.sum(objective.loss.value(now.v[:n, shown], objective.y[:, shown])) / n),
        bytes=context.n_nodes * (vectors + 8 * outputs * scalars),
        seconds=seconds,
    )


def _past_curvature(objective: Objective, v: Array) -> Array | None:
    """The loss's second derivative at the task's final predictions; None where it is one.

    Several outputs share one memory: its curvature is their mean.
    """
    if objective.loss.name == "squared":
        return None
    return np.asarray(objective.loss.curvature(v[: objective.n], objective.y).mean(axis=1))


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("ij,ij->j", a, b, dtype=np.float64)


def _ratio(a: Array, b: Array) -> Array:
    """a / b, and 0 where b is not positive: there is nothing left to gain."""
    return np.divide(a, b, out=np.zeros_like(np.asarray(a, dtype=float)), where=b > 0)
