"""One task: open it, run its rounds, close it. The one loop that learns."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..common.arrays import Array, column_dots
from ..common.outputs import Outputs
from ..common.threads import blas_threads, deserved, deserved_by_factors
from ..errors import DivergenceError
from ..network import Coefficients, ForgottenError, Lost, Network, Placed
from ..nodes import Start
from ..nodes.solvers import Context, Solver
from .losses import Loss
from .objective import Objective
from .steps import Problem, Standing, Steps

AGAIN = 3  # times that a task is learnt again, because what nodes had drawn was lost


class Job(NamedTuple):
    """A task to learn, and how."""

    X: Any
    Y: Array  # n_samples x n_outputs
    loss: Loss
    solver: Solver[Any]
    context: Context
    outputs: Outputs | None = None  # to go on with, where the nodes have others
    shares: Array | None = None  # of outputs in the curvature that the task is kept with
    added: tuple[tuple[bool, ...], ...] = ()  # whether each node's new columns were zero so far


@dataclass(frozen=True)
class Round:
    """One round, as it was measured; arrays have one number per output."""

    squares: Array  # mean over samples of the squared residual (of the loss's gradient)
    loss: Array  # mean over samples
    bound: Array  # how far the objective is above its optimum at most, over the samples
    sent: int  # bytes between coordinator and nodes, both ways, all nodes
    seconds: float
    accuracy: float  # of the nodes' own solutions: what is left of their gradients; 0 is exact
    disagreement: float  # between the nodes' predictions, without a centre; else 0


class Outcome(NamedTuple):
    """What learning one task yields. Nothing of it counts until the caller says so."""

    rounds: list[Round]
    context: Context  # what the nodes agreed on
    coefficients: Coefficients
    placed: Placed  # the nodes' new states
    before: Array  # predictions before the task was learnt, and after: n_samples x n_outputs
    after: Array
    views: Array | None  # every node's own predictions, without a centre
    tested: Array  # mean loss before the task was learnt, per output
    objective: Array  # with its penalty, after the last round
    certified: Array  # whether the rounds would have ended by themselves, per output
    lost: Lost | None  # what memory has cost
    mark: int  # of the task's columns, where they were read from files


def learn(
    network: Network, placed: Placed, job: Job, steps: Steps[Any, Any], n_rounds: int
) -> Outcome:
    """Learn one task, warm-started from the nodes' states: ``n_rounds`` rounds at most.

    Parameters
    ----------
    network, placed : the nodes, and what stands for their states before the task.
    job : the task.
    steps : the kind of steps that the rounds take, and when they end before ``n_rounds``.
    """
    threads = network.n_threads
    with blas_threads(deserved(job.X, threads), deserved_by_factors(job.X, threads)):
        for _ in range(AGAIN):
            try:
                return _learn(network, placed, job, steps, n_rounds)
            except ForgottenError:  # the nodes' states are what they were
                network.abandon()
        return _learn(network, placed, job, steps, n_rounds)


def _learn(
    network: Network, placed: Placed, job: Job, steps: Steps[Any, Any], n_rounds: int
) -> Outcome:
    opening = network.begin(job.X, placed, Start(job.outputs, job.loss.root, job.added))
    context = job.solver.agree(opening.report, job.context)
    network.factorise(context)
    v = opening.predictions
    if context.past_rows:
        v = np.concatenate([v, np.zeros((context.past_rows, v.shape[1]), v.dtype)])
    problem = Problem(Objective(job.loss, job.Y), network.voices(context), context.intercept)
    now = steps.init(problem, v, network)
    rounds: list[Round] = []
    finished = False
    for i in range(n_rounds):
        clock = time.perf_counter()
        now = steps.step(problem, now, network)
        _check_finite(now, context.task, i)
        rounds.append(_measured(problem, steps, now, time.perf_counter() - clock, context.weight))
        finished = steps.finished(now)
        if finished:
            break
    views = steps.views(problem, now, network)
    after = now.point.v[: len(job.Y)]
    curvature = job.loss.past_curvature(after, job.shares)
    lost = network.conclude(curvature, now.point.g[: len(job.Y)])
    ended, placed = network.end(curvature)
    rounds[0] = replace(rounds[0], sent=rounds[0].sent + network.overhead)
    hidden = _hidden(now, ended.reach, job.Y.dtype, job.X.shape[1], len(rounds)) / context.weight
    rounds = [replace(one, bound=one.bound + hidden) for one in rounds]
    certified = steps.certified(now) | finished
    return Outcome(
        rounds,
        context,
        ended,
        placed,
        job.loss.plain(opening.predictions),
        job.loss.plain(after),
        None if views is None else np.array([job.loss.plain(view) for view in views]),
        job.loss.value(opening.predictions.astype(float), job.Y.astype(float)) / context.weight,
        now.point.total,
        certified,
        lost,
        opening.mark,
    )


def _check_finite(now: Standing[Any], task: int, i: int) -> None:
    point = now.point
    if not (np.all(np.isfinite(point.value)) and np.isfinite(np.sum(point.v))):
        raise DivergenceError(
            f"task {task + 1}: the estimate overflowed in round {i + 1}; scale features and "
            f"targets to about one; solver='damped' and 'memory' are steadier than 'exact'"
        )


def _hidden(now: Standing[Any], reach: Array, dtype: Any, p: int, n_rounds: int) -> Array:
    """What rounding may hide from a bound: weights and predictions are known to so many digits, and
    the objective with them. Near zero that is more than the objective's own digits."""
    digits = float(np.finfo(dtype).eps) * (8 + p**0.5 + n_rounds**0.5)
    point = now.point
    g, v = (np.sqrt(column_dots(x, x)) for x in (point.g, point.v))
    off = digits * (g + v + reach)
    return np.asarray(off * g + 0.5 * off**2 + digits * np.abs(point.total))


def _measured(
    problem: Problem, steps: Steps[Any, Any], now: Standing[Any], seconds: float, weight: float
) -> Round:
    objective, point = problem.objective, now.point
    n, g = objective.n, point.g[: objective.n]
    squares = column_dots(g, g)
    if objective.loss.quadratic:
        value = 0.5 * squares
    else:  # without the past's rows
        value = objective.loss.value(point.v[:n], objective.y)
    return Round(
        squares=squares / weight,
        loss=value / weight,
        bound=steps.bound(now) / weight,
        sent=now.sent,
        seconds=seconds,
        accuracy=now.accuracy,
        disagreement=now.disagreement,
    )
