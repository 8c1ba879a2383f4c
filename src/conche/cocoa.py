"""Algorithm 1: a task's rounds over a network, what they cost, and when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from .certificate import certifies, lower_bound
from .losses import Loss
from .network.base import Estimate, Network
from .node import Proposal
from .rounds import (
    Objective,
    Progress,
    Round,
    Scalars,
    adaptive_round,
    cg_round,
    plain_round,
    sparse_line_round,
    sparse_round,
)
from .solvers.base import Array, Context, Solver


class RoundRecord(TypedDict):
    """One round, as ``history_`` shows it."""

    task: int  # counted from 1
    round: int  # counted from 1
    residual: float  # root mean square of y - A w after the round (of the loss's gradient)
    loss: float  # mean loss over samples after the round, summed over outputs
    bound: float  # how far the objective is above its optimum at most, in the unit of the loss
    bytes: int  # sent between coordinator and nodes in this round, both ways, all nodes
    seconds: float
    accuracy: float  # of the nodes' own solutions: what is left of their gradients; 0 is exact
    disagreement: float  # between the nodes' predictions, without a centre; else 0


class Outcome(NamedTuple):
    """What learning one task yields: its rounds, what the nodes agreed on, and all weights."""

    history: list[RoundRecord]
    context: Context
    estimate: Estimate
    before: Array  # predictions before the task was learnt, and after: n_samples x n_outputs
    after: Array


class DivergenceError(ArithmeticError):
    """The rounds overflowed; the model is as it was before the task."""


class Rule(NamedTuple):
    """How rounds go, and when they end."""

    n_rounds: int = 1
    acceleration: str | None = None
    aggregation: str = "safe"
    tol: float | None = None

    def reached(self, bound: Array, first: Array, sure: bool, moved: float) -> bool:
        """Whether the certificate says so; or, where there can be none, the last movement."""
        if self.tol is None:
            return False
        return bool(np.all(bound <= self.tol * first)) or (not sure and moved <= self.tol)

    def advance(self, solver: Solver, n_nodes: int) -> Round:
        if solver.sparse:
            return sparse_round if self.aggregation == "safe" else sparse_line_round
        if self.acceleration == "cg":
            return cg_round
        return plain_round(n_nodes) if self.aggregation == "safe" else adaptive_round


def learn(
    network: Network,
    X: Any,
    y: Array,
    loss: Loss,
    solver: Solver,
    context: Context,
    rule: Rule,
    shown: Callable[[Array], slice] = lambda predictions: slice(None),
) -> Outcome:
    """One task: warm-started from the nodes' weights, ``n_rounds`` rounds at most.

    The nodes keep their old state until ``network.commit()``. Conjugate-gradient and adaptive
    rounds end by themselves when the residual is down to rounding. ``tol`` ends any rounds once
    the certificate is no more than ``tol`` times the objective that the task began with; where
    rounds can certify nothing (several nodes, no penalty), also once what the nodes propose would
    move the predictions by no more than ``tol`` times the residual that the task began with.
    ``shown`` says, from the predictions before the task is learnt, which outputs the history is
    about.
    """
    opening, context = open_task(network, X, solver, context)
    objective = Objective(loss, y)
    v = opening
    outputs = shown(v)
    if context.sketch_rows:
        v = np.concatenate([v, np.zeros((context.sketch_rows, v.shape[1]), v.dtype)])
    now = Progress(v, objective.descent(v))
    advance = rule.advance(solver, context.n_nodes)
    value = first = objective.value(v)
    started = float(np.linalg.norm(now.g))
    floor = np.zeros(v.shape[1])  # the best lower bound of the optimum
    history: list[RoundRecord] = []
    for i in range(rule.n_rounds):
        clock = time.perf_counter()
        proposal = network.propose(now.g)
        said = named(solver, proposal)
        if "now" in said:  # the penalty of the weights as they are
            now = replace(now, penalty=said["now"])
            first = first if i else first + said["now"]
        sure = certifies(solver, objective, context, said)
        if sure:
            found = lower_bound(objective, context, now, value, proposal.image, said)
            floor = np.maximum(floor, found)
        after = advance(objective, now, proposal.image, said)
        network.accept(after.step, after.momentum)
        moved = 0.0
        if rule.tol is not None and not sure and started:
            # a safe step says nothing: what the nodes together propose does
            scale = context.n_nodes if after.step is None else 1
            moved = scale * float(np.linalg.norm(after.v - now.v)) / started
        now, value = after, objective.value(after.v)
        bound = above(floor, value + now.penalty)
        seconds = time.perf_counter() - clock
        sent = sizes(context.n_nodes, now, proposal)
        history.append(
            record(objective, now, outputs, context.task, i, value, bound, said, sent, seconds)
        )
        if now.finished or rule.reached(bound, first, sure, moved):
            break
    ended = network.end(past_curvature(objective, now.v))
    return Outcome(history, context, ended, opening, now.v[: len(y)])


def open_task(network: Network, X: Any, solver: Solver, context: Context) -> tuple[Array, Context]:
    """The predictions of the weights so far, and what the nodes agree on before the rounds."""
    opening = network.begin(X)
    rows = solver.sketch_rows(context.task)
    context = solver.agree(opening.report, replace(context, sketch_rows=rows))
    network.prepare(context)
    return opening.predictions, context


def named(solver: Solver, proposal: Proposal) -> Scalars:
    if proposal.scalars is None:
        return {}
    return dict(zip(solver.scalars, proposal.scalars, strict=True))


def above(floor: Array, value: Array) -> Array:
    """The certificate; never negative, whatever rounding does to two numbers that are equal."""
    rounding = 8 * float(np.finfo(np.float64).eps)
    return np.asarray(np.maximum(value - floor, 0.0) + rounding * np.abs(value))


def sizes(n_nodes: int, now: Progress, proposal: Proposal) -> int:
    """Bytes between coordinator and nodes in a round: g and the step down, images up."""
    down = [now.g, now.step, now.momentum]
    return n_nodes * sum(a.nbytes for a in (*down, *proposal) if a is not None)


def record(
    objective: Objective,
    now: Progress,
    shown: slice,
    task: int,
    i: int,
    value: Array,
    bound: Array,
    said: Scalars,
    sent: int,
    seconds: float,
    disagreement: float = 0.0,
) -> RoundRecord:
    n = objective.n
    residual = float(np.sqrt(np.mean(np.square(now.g[:n, shown], dtype=np.float64))))
    if not np.isfinite(residual) or not np.isfinite(np.sum(now.v)):
        raise DivergenceError(
            f"task {task + 1}: the estimate overflowed in round {i + 1}; scale features "
            f"and targets to about one; solver='damped' and 'memory' are steadier than 'exact'"
        )
    if len(now.v) > n:  # without the sketch's rows
        value = objective.loss.value(now.v[:n], objective.y)
    left = 0.0
    if "left" in said:
        left = float(np.sqrt(np.sum(said["left"]) / max(np.sum(said["asked"]), 1e-300)))
    return RoundRecord(
        task=task + 1,
        round=i + 1,
        residual=residual,
        loss=float(np.sum(value[shown]) / n),
        bound=float(np.sum(bound[shown]) / n),
        bytes=sent,
        seconds=seconds,
        accuracy=left,
        disagreement=disagreement,
    )


def past_curvature(objective: Objective, v: Array) -> Array | None:
    """The loss's second derivative at the task's final predictions; None where it is one.

    Several outputs share one memory: its curvature is their mean.
    """
    if objective.loss.name == "squared":
        return None
    return np.asarray(objective.loss.curvature(v[: objective.n], objective.y).mean(axis=1))
