"""One more task for lossless memory: columns come together, sums grow, and nothing is solved for
until somebody asks."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..common.arrays import Array, here
from ..common.device import find_device
from ..common.threads import blas_threads, deserved, factoring
from ..common.words import size
from ..errors import DeviceError, ReplayWarning
from ..memory import Past, Rows, Solution, errors, predictions
from ..network import CentralNetwork, Coefficients, ForgottenError
from ..network.base import Each
from ..network.sums import Gathered, gathered, told
from ..nodes import Start
from ..nodes.solvers import Context
from ..nodes.solvers.lossless import Lossless
from ..tasks.node_columns import NodeColumns
from .records import RoundRecord, TaskRecord

if TYPE_CHECKING:
    from .state import Lesson, StreamState

AGAIN = 3  # times that a task is learnt again, because what nodes had drawn was lost


def after_sums(state: StreamState, network: CentralNetwork, lesson: Lesson) -> StreamState:
    """The state after one more task; the old one is as good as before."""
    order = 0 if state.past is None else state.past.best.sums.order
    threads = max(deserved(lesson.X, network.n_threads), factoring(order))
    with enough_memory(lesson.X.shape[1], state.setup.device), blas_threads(threads):
        for _ in range(AGAIN):
            try:
                return _after_sums(state, network, lesson)
            except ForgottenError:  # the nodes' states are what they were
                network.abandon()
        return _after_sums(state, network, lesson)


@contextmanager
def enough_memory(p: int, device: str) -> Iterator[None]:
    """Where there is not, one line says what sums of so many columns take."""
    try:
        with find_device(device).guarded():
            yield
    except MemoryError:
        raise DeviceError(
            f"memory is short: sums of {p:,} columns take {size(8 * p * p)}, and as much again "
            f"while they grow; Memory(rank=...) keeps less"
        ) from None


def _after_sums(state: StreamState, network: CentralNetwork, lesson: Lesson) -> StreamState:
    clock = time.perf_counter()
    began = lesson.since(state)
    root = None if lesson.weights is None else np.sqrt(lesson.weights)
    opening = network.begin(lesson.X, state.nodes, Start(began, root, lesson.added))
    context = state.setup.solver.agree(opening.report, _context(state, network, lesson))
    Y = np.asarray(lesson.Y, dtype=np.float64)
    task = gathered(network, state.setup.partition, context, opening, Y, root)
    past = _grown(state, task, began, lesson)
    found = state.found if past is state.past else None  # as it was found after the last task
    judge, _ = state.judge.going_on(began)
    state = replace(state, past=past, found=found, labels=lesson.labels, began=began, judge=judge)
    before = None
    if lesson.errors:
        before, past = _error(state, past, network, context, task, lesson)
    past, again = past.learnt(task.rows, state.wish, lesson.histogram)
    if again:
        _warn_of_replay(len(state.tasks) + 1)
    state = replace(state, past=past, found=None)
    found = None
    if lesson.errors or state.turned:
        found, path = past.solved(past.best, state.wish, anew=lesson.last or bool(state.turned))
        past = past.with_path(path)
        state = replace(state, past=past, found=found)
    after = None
    if lesson.errors:
        after, _ = _error(state, past, network, context, task, lesson)
    sent = task.sent
    if state.turned:
        assert found is not None
        network.move(told(state.setup.partition, context, found.weights))
        sent += 8 * found.weights.size
    ended, placed = network.end()
    record = _record(state, lesson, (before, after), sent, time.perf_counter() - clock)
    return replace(
        state,
        nodes=placed,
        coefficients=_coefficients(state, ended, found),
        history=(*state.history, _round(record)),
        tasks=(*state.tasks, record),
        mark=opening.mark,
    )


def _context(state: StreamState, network: CentralNetwork, lesson: Lesson) -> Context:
    n = lesson.X.shape[0]
    shown = "turned" if state.turned else "plain"
    if not state.turned and network.apart and isinstance(lesson.X, NodeColumns):
        shown = "mixed"
    return Context(
        task=len(state.tasks),
        n_nodes=len(state.setup.partition),
        n_samples=n,
        weight=n if lesson.weights is None else float(np.sum(lesson.weights)),
        smoothness=1.0,
        apart=network.apart,
        secure=state.turned == "together",
        shown=shown,
    )


def _grown(state: StreamState, task: Gathered, began: Any, lesson: Lesson) -> Past:
    """The past in the coordinates, columns and outputs of this task."""
    rows, past = task.rows, state.past
    p, m = rows.X.shape[1], rows.Y.shape[1]
    if past is None:
        solver = cast(Lossless, state.setup.solver)
        return Past.nothing(p, m, solver.discounts, rows.X)
    if began is not None:
        past = past.with_outputs(began)
    if task.transform is not None:
        transform = task.transform
        past = past.changed(lambda sums: sums.turned(transform))
    old = len(past.unit)
    if p > old:
        past = past.with_columns(_before(state, rows, lesson, old))
    return past


def _before(state: StreamState, rows: Rows, lesson: Lesson, old: int) -> Array:
    """What columns that are new were in all rows so far: values of a text that there was are zero,
    others were at the mean of their first task. Nodes that turn their columns have seen to it."""
    p = rows.X.shape[1]
    if state.turned or not state.settings.fit_intercept:
        return np.zeros(p - old)
    zero = np.zeros(p, dtype=bool)
    for own, flags in zip(state.setup.partition, lesson.added, strict=True):
        zero[own[own >= old]] = flags
    return np.where(zero[old:], 0.0, rows.mean(rows.X[:, old:]))


def _error(
    state: StreamState,
    past: Past,
    network: CentralNetwork,
    context: Context,
    task: Gathered,
    lesson: Lesson,
) -> tuple[float, Past]:
    """Of this task, by what is known now."""
    rows, shown = task.rows, state.shown
    Y = np.asarray(lesson.Y, dtype=float)
    if past.best.sums.n == 0:
        return lesson.error(shown.of(0 * Y), shown.of(Y)), past
    found = state.found
    if found is None:
        found, path = past.solved(past.best, state.wish, anew=False)
        past = past.with_path(path)
    if state.labels is None and lesson.weights is None:  # however rows are mixed
        return float(errors(rows, found).sum() / Y.size), past
    root = None if lesson.weights is None else np.sqrt(lesson.weights)
    v = _predicted(state, network, context, rows, found, root)
    return lesson.error(shown.of(v), shown.of(Y)), past


def _predicted(
    state: StreamState,
    network: CentralNetwork,
    context: Context,
    rows: Rows,
    found: Solution,
    root: Array | None,
) -> Array:
    """Every row's own predictions."""
    if context.shown == "mixed":
        own = Each(told(state.setup.partition, context, found.weights))
        v, ones = here(network.total("image", own)), root
        v = v + (found.offset if root is None else np.outer(root, found.offset))
    else:
        v, ones = predictions(rows, found), rows.ones
    if ones is None:
        return v
    there = ones[:, None] > 0  # rows that weigh nothing are not here
    return np.divide(v, ones[:, None], out=np.zeros_like(v), where=there)


def _coefficients(state: StreamState, ended: Coefficients, found: Solution | None) -> Coefficients:
    """What the nodes have told: of columns that are turned, weights; else means alone."""
    if not state.turned:
        return ended
    assert found is not None
    return ended._replace(offset=ended.offset + found.offset)


def _record(
    state: StreamState,
    lesson: Lesson,
    known: tuple[float | None, float | None],
    sent: int,
    seconds: float,
) -> TaskRecord:
    gap = bound = None
    if lesson.errors:
        told = state.gap()
        gap, bound = told.estimate, told.bound
    return TaskRecord(
        task=len(state.tasks) + 1,
        before=known[0],
        after=known[1],
        samples=lesson.X.shape[0],
        bytes=sent,
        seconds=seconds,
        gap=gap,
        gap_bound=bound,
    )


def _round(task: TaskRecord) -> RoundRecord:
    """The one that there is."""
    return RoundRecord(
        task=task["task"],
        round=1,
        residual=None,
        loss=None,
        bound=None,
        bytes=task["bytes"],
        seconds=task["seconds"],
        accuracy=0.0,
        disagreement=0.0,
    )


def _warn_of_replay(task: int) -> None:
    warnings.warn(
        f"task {task} has come before: its rows count again in the sums, but not as news when the "
        f"ridge is chosen",
        ReplayWarning,
        stacklevel=7,
    )
